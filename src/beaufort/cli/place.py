"""`beaufort place`: place a model among reference models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import printable
from beaufort.cli._console import print_json
from beaufort.cli._evaluation import predictions_bar, unread
from beaufort.cli._options import (
    Filter,
    Grid,
    Intervals,
    Json,
    Limit,
    Model,
    ModelOptions,
    OptionalStore,
    Scores,
    SeveralData,
    Suite,
    Trend,
    data_by_name,
    model_options,
    parse_intervals,
    parse_trend,
)

if TYPE_CHECKING:
    from beaufort.results import Run

_SUITES = {
    "paper": "imagenet-c",
    "latest": "imagenet-c",
    "robustbench-imagenet": "imagenet-c",
    "robustbench-cifar10": "cifar10-c",
    "robustbench-cifar100": "cifar100-c",
}
"""The suite of each grid whose settings can be made from clean images."""


def place(
    scores: Scores = None,
    store: OptionalStore = None,
    model: Model = None,
    data: SeveralData = None,
    suite: Suite = None,
    options: ModelOptions = None,
    filters: Filter = None,
    limit: Limit = None,
    grid: Grid = "paper",
    trend: Trend = None,
    intervals: Intervals = None,
    as_json: Json = False,
) -> None:
    """Place a model in a grid: effective robustness, rank among similar models, neighbors.

    `beaufort place --scores scores.csv --grid timm`

    `beaufort place --model timm:resnet50.a1_in1k --data imagenet/val --grid paper` evaluates the model first
    and stores its predictions as `beaufort run` does, by default on the suite of the grid.

    `beaufort place --store results --model my-net` places a model on the shifts of all suites of a store;
    `--suite` selects one.

    A model is placed on each shift for which the scores have the accuracy under the shift and the standard
    accuracy; intervals and verdicts require both numbers of images. Keys of `--intervals`: level, seed. The
    exit code is 1 if images could not be read.
    """
    from beaufort.testbed import load_grid, read_scores
    from beaufort.testbed import place as place_scores

    if (scores is not None) + (data is not None or store is not None) != 1:
        raise OptionError("pass one of --scores, --store and --data")
    if scores is not None and model is not None:
        raise OptionError("--model requires --store or --data: scores are of one model")
    if scores is not None and suite is not None:
        raise OptionError("--suite requires --store or --data")
    for_runs = {"--set": options, "--filter": filters, "--limit": limit}
    if data is None and (unused := [name for name, value in for_runs.items() if value is not None]):
        raise OptionError(f"{unused[0]} requires --data")
    fit_on, arguments = parse_trend(trend)
    arguments |= parse_intervals(intervals, level=0.95, seed=720257663)
    loaded = load_grid(grid, fit_on=fit_on)
    problems = False
    if data is not None:
        store = store or "results"
        suite = suite or _SUITES.get(grid)
        model, run = _run(model, suite, data, store, options, filters, limit)
        problems = bool(run.problems)
    source = store if scores is None else read_scores(scores)
    assert source is not None
    placement = place_scores(source, loaded, model=model, suite=suite, **arguments)
    if as_json:
        print_json(placement.as_dict())
    else:
        typer.echo(str(placement))
        for warning in placement.warnings:
            typer.echo(f"warning: {printable(warning)}", err=True)
    if not placement.standings:
        raise OptionError(f"the grid {loaded.name} has no shift that the scores have")
    if problems:
        raise typer.Exit(1)


def _run(
    model: str | None,
    suite: str | None,
    data: list[str],
    store: str,
    options: list[str] | None,
    filters: list[str] | None,
    limit: int | None,
) -> tuple[str, Run]:
    """Evaluate a model, and print the notes of the run."""
    from beaufort.evaluation import LazyModel
    from beaufort.results import evaluate

    if model is None:
        raise OptionError("--data requires --model")
    if suite is None:
        raise OptionError("--suite is required for this grid, which has no suite of its own")
    lazy = LazyModel(model, model_options(options, filter=filters))
    with predictions_bar() as progress:
        run = evaluate([lazy], suite, data_by_name(data), store, limit=limit, progress=progress)
    for note in run.notes:
        typer.echo(f"note: {printable(note)}", err=True)
    if run.problems:
        typer.echo(unread(run), err=True)
    return lazy.spec.name, run
