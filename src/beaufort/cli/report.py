"""`beaufort report`: report the results of a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import byte_size, counted, printable
from beaufort.cli._console import progress_bar
from beaufort.cli._options import (
    Baseline,
    ClusterBy,
    Data,
    Format,
    GroupBy,
    Intervals,
    Labels,
    Models,
    OptionalOutput,
    Seed,
    Suite,
    Title,
    TrainingRuns,
    parse_intervals,
    parse_keys,
    parse_labels,
    parse_number,
    read_column,
    training_run_models,
)

if TYPE_CHECKING:
    from beaufort.report import Examples
    from beaufort.results import Results, Scores


def report(
    stores: Annotated[
        list[str], typer.Argument(help="Directory or URL of a store; several are reported side by side.")
    ],
    *,
    output: OptionalOutput = None,
    format: Format = None,  # noqa: A002  the option's name
    suite: Suite = None,
    seed: Seed = None,
    model: Models = None,
    baseline: Baseline = None,
    data: Data = None,
    examples: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE,model=MODEL,…",
            help="Other images to show: a directory, a dataset, or `scene` for a painted one; with "
            "model=MODEL, its predictions.",
        ),
    ] = None,
    images: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,…",
            help="Images of the format fiftyone. Keys: condition=clean or condition=fog@3 (repeatable); "
            "mistakes=yes for wrong predictions only; limit=N per condition (100 by default).",
        ),
    ] = None,
    labels: Labels = None,
    title: Title = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS,KEY=VALUE,…",
            help="Write a table for a paper: imagenet-c, cifar10-c, mnist-c, … for the layout of papers "
            "about that suite, or a column per `group` of corruptions or per `corruption`. Keys: "
            "measure=error, accuracy or ce; intervals=yes or no; published=yes for the results of the "
            "suite's paper. Or `abstention`: selective prediction and prediction sets by condition.",
        ),
    ] = None,
    cluster_by: ClusterBy = None,
    group_by: GroupBy = None,
    training_runs: TrainingRuns = None,
    intervals: Intervals = None,
) -> None:
    """Report the results of a store as a page, a table or a file for other programs.

    `beaufort report results -o report.html --data imagenet/val`

    `beaufort report results --format md`

    `beaufort report results --table imagenet-c -o table.tex`

    `beaufort report results --data imagenet/val --format fiftyone -o mistakes --images mistakes=yes`

    `beaufort report results --table abstention`

    The page is one self-contained file. `--data` with the dataset of the run shows test images with their
    stored predictions; `--examples` shows images that may be passed on. `--labels` rescores stored
    predictions, if the run stored all logits. Keys of `--intervals`: resamples, seed (also of the examples).
    Formats: html, md, latex, csv, json, card (a section for a model card) and fiftyone (a directory of
    images and predictions); md, latex and csv for a table; md, csv and json for abstention.
    """
    from beaufort.report import (
        ABSTENTION_FORMATS,
        FORMATS,
        TABLE_FORMATS,
        to_table,
        to_text,
        to_text_of_several,
        write_report,
        write_table,
    )
    from beaufort.report.formats import check_output, find_format, write_text
    from beaufort.results import join_results, open_parts, pair_parts, score

    layout = _table_options(table)
    shown = parse_keys("--examples", examples, ["model"], unnamed="source", lists=["model"])
    abstention = layout.get("columns") == "abstention"
    formats = ABSTENTION_FORMATS if abstention else TABLE_FORMATS if layout else (*FORMATS, _FIFTYONE)
    if format is not None and format not in formats:
        raise OptionError(
            f"--format must be one of {', '.join(formats)}{' for a table' * bool(layout)}, got {format!r}"
        )
    default = format or ("md" if layout else "html")
    kind = default if output is None or default == _FIFTYONE else find_format(output, format, formats)
    _check(kind, data, shown)
    exported = _export_options(kind, images, data, output)
    target = Path("report.html") if output is None and kind == "html" else output
    if target is not None and kind != _FIFTYONE:
        check_output(target)
    bootstrap = parse_intervals(intervals, resamples=1000, seed=0)
    scoring = parse_labels(labels)
    locations = tuple(dict.fromkeys(stores))
    selected = model if len(locations) == 1 and model else None  # names of several stores are joined first
    opened = [
        open_parts(one, suite=suite, seed=seed, models=selected, candidates=model or None, **scoring)
        for one in locations
    ]
    clusters = read_column(cluster_by)
    if abstention:
        others = {
            "--baseline": baseline,
            "--group-by": group_by,
            "--training-runs": training_runs,
            "--intervals": intervals,
            "--title": title,
        }
        for name, value in others.items():
            if value:
                raise OptionError(f"--table abstention and {name} cannot be used together")
        text = _abstention(opened, kind, None if selected else model, clusters, layout)
        if target is None:
            typer.echo(printable(text, keep="\n\t"), nl=False)
        else:
            write_text(text, target, kind)
            typer.echo(f"{printable(target)}: {byte_size(target.stat().st_size)}")
        return
    several_scores = []
    for parts in pair_parts(opened):
        results = parts[0] if len(parts) == 1 else join_results(parts)
        wanted = _wanted(results, [*results.cells, *results.incomplete] if selected else model)
        several_scores.append(
            score(
                results,
                baseline=baseline,
                models=wanted,
                clusters=clusters,
                groups=read_column(group_by),
                seeds=training_run_models(training_runs),
                calibration=not layout,
                **bootstrap,
            )
        )
        for name, missing in sorted(results.incomplete.items()) if wanted is None else ():
            typer.echo(
                f"note: {printable(name)} is omitted: {counted(missing, 'condition')} of "
                f"{printable(results.suite)} missing",
                err=True,
            )
    scores = several_scores[0]
    own = scores.suite
    several = len(several_scores) > 1 or bool(own.shifts or own.sequences) or not own.corruptions
    if kind == _FIFTYONE and len(several_scores) == 1 and not own.sequences:
        _export(scores, str(data), Path(str(output)), exported, bootstrap["seed"])
        return
    if several and (data or shown or layout):
        raise OptionError(
            "--data, --examples and --table require a suite of one dataset and its corruptions, got "
            f"{printable(scores.results.part_of or own)}"
        )
    if title is not None and kind not in (("html", "md", "json") if several else ("html",)):
        raise OptionError(f"--title cannot be used with the format {kind}")
    if several:
        from beaufort.testbed import shift_expectations

        text = to_text_of_several(
            several_scores,
            kind,
            title=title,
            clusters=clusters,
            expectations=None if clusters else shift_expectations(several_scores),
        )
    elif layout:
        text = to_table(scores, kind, **layout)
    else:
        text = to_text(scores, kind) if target is None else ""
    if target is None:
        typer.echo(printable(text, keep="\n\t"), nl=False)
        return
    if several:
        write_text(text, target, kind)
    elif layout:
        write_table(scores, target, format=kind, **layout)
    else:
        album = _examples(scores, data, shown, bootstrap["seed"])
        write_report(scores, target, format=kind, examples=album, title=title)
    count = len({model.model for one in several_scores for model in one.models})
    typer.echo(f"{printable(target)}: {counted(count, 'model')}, {byte_size(target.stat().st_size)}")


_FIFTYONE = "fiftyone"


def _export_options(
    kind: str, texts: list[str] | None, data: str | None, output: Path | None
) -> dict[str, Any]:
    """Return the arguments of `export_fiftyone`; none for other formats."""
    values = parse_keys("--images", texts, ["condition", "mistakes", "limit"], lists=["condition"])
    if kind != _FIFTYONE:
        if values:
            raise OptionError(f"--images requires --format {_FIFTYONE}")
        return {}
    if data is None or output is None:
        raise OptionError(f"--format {_FIFTYONE} requires --data and --output, a new directory")
    if values.get("mistakes", "yes") not in ("yes", "no"):
        raise OptionError(f"mistakes in --images must be yes or no, got {values['mistakes']!r}")
    limit = {"limit": parse_number("--images", "limit", values["limit"], int)} if "limit" in values else {}
    return {"conditions": values.get("condition"), "mistakes": values.get("mistakes") == "yes", **limit}


def _export(scores: Scores, data: str, output: Path, options: dict[str, Any], seed: int) -> None:
    from beaufort.report import export_fiftyone

    with progress_bar("images") as progress:
        export_fiftyone(scores, data, output, seed=seed, progress=progress, **options)
    count = sum(1 for _ in (output / "data").rglob("*.png"))
    typer.echo(f"{printable(output)}: {counted(count, 'image')}, {counted(len(scores.models), 'model')}")


def _abstention(
    opened: list[tuple[Results, ...]],
    kind: str,
    models: list[str] | None,
    clusters: dict[str, str] | None,
    layout: dict[str, Any],
) -> str:
    """Return the table of `--table abstention`."""
    from beaufort.report import abstention_table
    from beaufort.results import join_results, pair_parts, score_abstention

    if len(layout) > 1:
        raise OptionError("--table abstention has no keys")
    joined = [parts[0] if len(parts) == 1 else join_results(parts) for parts in pair_parts(opened)]
    found = [
        one for part in joined for one in score_abstention(part, _wanted(part, models), clusters=clusters)
    ]
    return abstention_table(found, kind)


def _table_options(texts: list[str] | None) -> dict[str, Any]:
    """Return the arguments of `to_table`; none without `--table`."""
    values = parse_keys("--table", texts, ["measure", "intervals", "published"], unnamed="columns")
    if values and "columns" not in values:
        raise OptionError(
            "--table must name its columns, such as --table imagenet-c or --table group,measure=ce"
        )
    for key in ("intervals", "published"):
        if key in values:
            if values[key] not in ("yes", "no"):
                raise OptionError(f"{key} in --table must be yes or no, got {values[key]!r}")
            values[key] = values[key] == "yes"
    return values


def _wanted(results: Results, names: list[str] | None) -> list[str] | None:
    for name in names or []:
        if name in results.incomplete:
            missing = counted(results.incomplete[name], "condition")
            raise OptionError(f"{name} lacks {missing} of {results.suite}; `beaufort run` computes them")
    return list(dict.fromkeys(names)) if names else None


def _check(kind: str, data: str | None, examples: dict[str, Any]) -> None:
    if data and examples:
        raise OptionError("--data and --examples cannot be used together")
    if "model" in examples and "source" not in examples:
        raise OptionError("--examples must name its images, such as --examples photos,model=net.onnx")
    if kind == _FIFTYONE and examples:
        raise OptionError(f"--examples cannot be used with the format {kind}; pass --data")
    if kind not in ("html", _FIFTYONE) and (data or examples):
        raise OptionError(f"--data and --examples cannot be used with the format {kind}, which has no images")


def _examples(scores: Scores, data: str | None, examples: dict[str, Any], seed: int) -> Examples | None:
    from beaufort.report import examples_of_data, examples_of_images

    if data is None and not examples:
        return None
    with progress_bar("examples") as progress:
        if data is not None:
            return examples_of_data(scores, data, seed=seed, progress=progress)
        return examples_of_images(
            scores, examples["source"], predict_with=examples.get("model", []), progress=progress
        )
