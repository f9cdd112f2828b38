"""`beaufort report`: the numbers of a store, to read and to pass on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort.cli._console import counted, printable, progress_bar
from beaufort.cli._options import (
    Baseline,
    ClusterBy,
    Convention,
    GroupBy,
    Labels,
    ResultSeed,
    Seeds,
    SuiteOfStore,
    Truths,
    column,
    seed_models,
)
from beaufort.errors import OptionError

if TYPE_CHECKING:
    from beaufort.report import Examples
    from beaufort.results import Results, Scores

__all__ = ["report"]


def report(
    store: Annotated[str, typer.Argument(help="Folder or URL that keeps the answers.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file; report.html for a page, else standard output."),
    ] = None,
    format: Annotated[  # noqa: A002  the option's name
        str | None,
        typer.Option(help="html, md, latex, csv, json or card; by the ending of the file if not given."),
    ] = None,
    suite: SuiteOfStore = None,
    baseline: Baseline = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model; may be repeated.")] = None,
    data: Annotated[
        str | None, typer.Option(help="The data of the run: shows test images and mistakes.")
    ] = None,
    pictures: Annotated[
        str | None,
        typer.Option(
            help="Other pictures to show instead: a folder, a data set, or scene for a painted one."
        ),
    ] = None,
    ask: Annotated[
        list[str] | None, typer.Option(help="A model to ask about --pictures; may be repeated.")
    ] = None,
    labels: Labels = None,
    convention: Convention = None,
    truths: Truths = None,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    cluster_by: ClusterBy = None,
    group_by: GroupBy = None,
    seeds: Seeds = None,
    seed: ResultSeed = None,
    draw: Annotated[int, typer.Option(help="Seed of what is drawn here: resamples, images, mistakes.")] = 0,
    resamples: Annotated[
        int, typer.Option(min=100, help="Of the calibration error's bootstrap; other intervals need none.")
    ] = 1000,
) -> None:
    """Write what a store says about its models: one page, or a table.

    `beaufort report results -o report.html --data imagenet/val`

    `beaufort report results --format md`

    The page is one file that needs no other and no network. `--labels`, `--convention` and `--truths` score
    stored answers anew, if the run kept their logits.
    """
    from beaufort.report import FORMATS, to_text, write_report
    from beaufort.report.write import check_output
    from beaufort.results import open_results, score

    kind = format or _kind(output)
    if kind not in FORMATS:
        raise OptionError(f"the format {kind!r} came; accepted are {', '.join(FORMATS)}")
    _check(kind, data, pictures, ask)
    target = Path("report.html") if output is None and kind == "html" else output
    if target is not None:
        check_output(target)
    results = open_results(store, suite=suite, seed=seed, labels=labels, convention=convention, truths=truths)
    wanted = _wanted(results, model)
    scores = score(
        results,
        baseline=baseline,
        models=wanted,
        clusters=column(cluster_by),
        groups=column(group_by),
        seeds=seed_models(seeds),
        resamples=resamples,
        seed=draw,
    )
    for name, lacks in sorted(results.incomplete.items()) if wanted is None else ():
        typer.echo(
            f"note: {printable(name)} is left out: it lacks {counted(lacks, 'condition')} of "
            f"{printable(results.suite)}",
            err=True,
        )
    examples = _examples(scores, data, pictures, ask or [], draw)
    if target is None:
        typer.echo(printable(to_text(scores, kind), keep="\n\t"), nl=False)
        return
    write_report(scores, target, format=kind, examples=examples, title=title)
    size = target.stat().st_size
    typer.echo(f"{printable(target)}: {counted(len(scores.models), 'model')}, {size / 1e6:.2f} MB")


def _wanted(results: Results, names: list[str] | None) -> list[str] | None:
    for name in names or []:
        if name in results.incomplete:
            lacks = results.incomplete[name]
            raise OptionError(
                f"{name} lacks {counted(lacks, 'condition')} of {results.suite}; `beaufort run` makes what "
                "is missing"
            )
    return list(dict.fromkeys(names)) if names else None


_ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".tex": "latex", ".csv": "csv", ".json": "json"}


def _kind(output: Path | None) -> str:
    if output is None:
        return "html"
    kind = _ENDINGS.get(output.suffix.lower())
    if kind is None:
        raise OptionError(
            f"the output {output} came without --format, and its ending says none; accepted endings are "
            f"{', '.join(_ENDINGS)}"
        )
    return kind


def _check(kind: str, data: str | None, pictures: str | None, ask: list[str] | None) -> None:
    if data and pictures:
        raise OptionError("--data and --pictures came; --data shows test images, --pictures others: give one")
    if ask and not pictures:
        raise OptionError("--ask came without --pictures; it says whom to ask about those")
    if kind != "html" and (data or pictures):
        raise OptionError(f"the format {kind} shows no pictures; leave out --data and --pictures")


def _examples(
    scores: Scores, data: str | None, pictures: str | None, ask: list[str], draw: int
) -> Examples | None:
    from beaufort.report import examples_of_data, examples_of_pictures

    if data is None and pictures is None:
        return None
    with progress_bar("pictures") as progress:
        if data is not None:
            return examples_of_data(scores, data, seed=draw, progress=progress)
        assert pictures is not None
        return examples_of_pictures(scores, pictures, ask=ask, progress=progress)
