"""`beaufort report`: the numbers of a store, to read and to pass on."""

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
    Convention,
    Data,
    Format,
    GroupBy,
    Labels,
    LabelSets,
    Models,
    OptionalOutput,
    Resamples,
    Seed,
    StoredSeed,
    Suite,
    Title,
    TrainingRuns,
    column,
    seed_models,
)

if TYPE_CHECKING:
    from beaufort.report import Examples
    from beaufort.results import Results, Scores


def report(
    stores: Annotated[
        list[str], typer.Argument(help="Folder or URL that keeps the answers; several stand side by side.")
    ],
    *,
    output: OptionalOutput = None,
    format: Format = None,  # noqa: A002  the option's name
    suite: Suite = None,
    baseline: Baseline = None,
    model: Models = None,
    data: Data = None,
    pictures: Annotated[
        str | None,
        typer.Option(help="Other images to show: a directory, a dataset, or `scene` for a painted one."),
    ] = None,
    ask: Annotated[
        list[str] | None, typer.Option(help="Model to run on the images of --pictures (repeatable).")
    ] = None,
    labels: Labels = None,
    convention: Convention = None,
    label_sets: LabelSets = None,
    title: Title = None,
    table: Annotated[
        str | None,
        typer.Option(help="A table for a paper with a column a group of corruptions, or a corruption."),
    ] = None,
    measure: Annotated[str, typer.Option(help="Of that table: error, accuracy or ce.")] = "error",
    intervals: Annotated[bool, typer.Option(help="Whether that table has intervals.")] = True,
    published: Annotated[
        bool, typer.Option("--published", help="Results of the suite's paper below one's own in that table.")
    ] = False,
    cluster_by: ClusterBy = None,
    group_by: GroupBy = None,
    training_runs: TrainingRuns = None,
    stored_seed: StoredSeed = None,
    seed: Seed = 0,
    resamples: Resamples = 1000,
) -> None:
    """Write what a store says about its models: one page, or a table.

    `beaufort report results -o report.html --data imagenet/val`

    `beaufort report results --format md`

    `beaufort report mine yours --table group -o table.tex`

    The page is one file that needs no other and no network. `--labels`, `--convention` and `--label-sets`
    rescore stored predictions, if the run kept their logits.
    """
    from beaufort.report import (
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

    about_tables = {
        "--measure": measure != "error",
        "--no-intervals": not intervals,
        "--published": published,
    }
    if table is None and any(about_tables.values()):
        name = next(name for name, given in about_tables.items() if given)
        raise OptionError(f"{name} is about the table of --table, got it without; add --table group")
    known = FORMATS if table is None else TABLE_FORMATS
    if format is not None and format not in known:
        raise OptionError(
            f"--format must be one of {', '.join(known)}{' for a table' * bool(table)}, got {format!r}"
        )
    if output is None:
        kind = format or ("html" if table is None else "md")
    else:
        kind = find_format(output, format, known)
    _check(kind, data, pictures, ask)
    target = Path("report.html") if output is None and kind == "html" else output
    if target is not None:
        check_output(target)
    anew: dict[str, Any] = {"labels": labels, "convention": convention, "label_sets": label_sets}
    opened = [open_parts(one, suite=suite, seed=stored_seed, **anew) for one in dict.fromkeys(stores)]
    clusters = column(cluster_by)
    made = []
    for parts in pair_parts(opened):
        results = parts[0] if len(parts) == 1 else join_results(parts)
        wanted = _wanted(results, model)
        made.append(
            score(
                results,
                baseline=baseline,
                models=wanted,
                clusters=clusters,
                groups=column(group_by),
                seeds=seed_models(training_runs),
                calibration=table is None,
                resamples=resamples,
                seed=seed,
            )
        )
        for name, lacks in sorted(results.incomplete.items()) if wanted is None else ():
            typer.echo(
                f"note: {printable(name)} is left out: it lacks {counted(lacks, 'condition')} of "
                f"{printable(results.suite)}",
                err=True,
            )
    scores = made[0]
    shown = scores.suite
    several = len(made) > 1 or bool(shown.shifts or shown.sequences) or not shown.corruptions
    if several and (data or pictures or table):
        raise OptionError(
            "--data, --pictures and --table must be used with a suite of one data set and its corruptions, "
            f"got {printable(scores.results.part_of or scores.suite)}"
        )
    if title is not None and kind not in (("html", "md", "json") if several else ("html",)):
        raise OptionError(f"--title must be given for a page, got it for the format {kind}, which has none")
    options: dict[str, Any] = {
        "columns": table,
        "measure": measure,
        "intervals": intervals,
        "published": published,
    }
    if several:
        text = to_text_of_several(made, kind, title=title, clusters=clusters)
    elif table is not None:
        text = to_table(scores, kind, **options)
    else:
        text = to_text(scores, kind) if target is None else ""
    if target is None:
        typer.echo(printable(text, keep="\n\t"), nl=False)
        return
    if several:
        write_text(text, target, kind)
    elif table is not None:
        write_table(scores, target, format=kind, **options)
    else:
        examples = _examples(scores, data, pictures, ask or [], seed)
        write_report(scores, target, format=kind, examples=examples, title=title)
    count = len({model.model for one in made for model in one.models})
    typer.echo(f"{printable(target)}: {counted(count, 'model')}, {byte_size(target.stat().st_size)}")


def _wanted(results: Results, names: list[str] | None) -> list[str] | None:
    for name in names or []:
        if name in results.incomplete:
            lacks = results.incomplete[name]
            raise OptionError(
                f"{name} lacks {counted(lacks, 'condition')} of {results.suite}; `beaufort run` makes them"
            )
    return list(dict.fromkeys(names)) if names else None


def _check(kind: str, data: str | None, pictures: str | None, ask: list[str] | None) -> None:
    if data and pictures:
        raise OptionError("--data (test images) and --pictures (other images) must not both be given")
    if ask and not pictures:
        raise OptionError("--ask needs --pictures")
    if kind != "html" and (data or pictures):
        raise OptionError(
            f"--data and --pictures must not be given for the format {kind}, which shows no pictures"
        )


def _examples(
    scores: Scores, data: str | None, pictures: str | None, ask: list[str], seed: int
) -> Examples | None:
    from beaufort.report import examples_of_data, examples_of_images

    if data is None and pictures is None:
        return None
    with progress_bar("pictures") as progress:
        if data is not None:
            return examples_of_data(scores, data, seed=seed, progress=progress)
        assert pictures is not None
        return examples_of_images(scores, pictures, ask=ask, progress=progress)
