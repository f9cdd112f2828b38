"""`beaufort place`: where a model stands among reference models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import printable
from beaufort.cli._evaluation import predictions_bar, unread
from beaufort.cli._options import (
    Filter,
    Json,
    Limit,
    Model,
    ModelOptions,
    OptionalStore,
    SeveralData,
    Suite,
    data_by_name,
    model_options,
)
from beaufort.cli._testbed_options import Axis, BootstrapSeed, Clean, FitOn, GridName, Level, ScoresFile

_SUITES = {
    "paper": "imagenet-c",
    "latest": "imagenet-c",
    "robustbench-imagenet": "imagenet-c",
    "robustbench-cifar10": "cifar10-c",
    "robustbench-cifar100": "cifar100-c",
}
"""The suite that a grid is about, where it can be made from clean images."""


def place(
    scores: Annotated[Path | None, typer.Option(help=ScoresFile)] = None,
    store: OptionalStore = None,
    model: Model = None,
    data: SeveralData = None,
    suite: Suite = None,
    options: ModelOptions = None,
    filters: Filter = None,
    limit: Limit = None,
    grid: GridName = "paper",
    x: Clean = None,
    fit_on: FitOn = None,
    axis: Axis = "logit",
    level: Level = 0.95,
    seed: BootstrapSeed = 720257663,
    as_json: Json = False,
) -> None:
    """Place a model: on each shift its effective robustness, its rank among similar models, its neighbors.

    `beaufort place --scores scores.csv --grid timm`

    `beaufort place --model timm:resnet50.a1_in1k --data imagenet/val --grid paper` runs the model first, and
    stores its predictions as `beaufort run` does. The suite is the one that the grid is about by default.

    A shift is placed if the scores have both its accuracy and the standard accuracy that it is compared with.
    The exit code is 1 if images could not be read.
    """
    from beaufort.testbed import load_grid, read_scores
    from beaufort.testbed import place as place_scores

    if (scores is not None) + (data is not None or store is not None) != 1:
        raise OptionError("pass one of --scores, --store and --data")
    if scores is not None and model is not None:
        raise OptionError("--model requires --store or --data: scores are of one model")
    for_runs = {"--suite": suite, "--set": options, "--filter": filters, "--limit": limit}
    if data is None and (unused := [name for name, value in for_runs.items() if value is not None]):
        raise OptionError(f"{unused[0]} requires --data")
    loaded = load_grid(grid, fit_on=fit_on)
    complete = True
    if data is not None:
        store = store or "results"
        model, complete = _run(model, suite or _SUITES.get(grid), data, store, options, filters, limit)
    source = store if scores is None else read_scores(scores)
    assert source is not None
    found = place_scores(source, loaded, model=model, x=x, scale=axis, level=level, seed=seed)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2, allow_nan=False, ensure_ascii=False))
    else:
        typer.echo(str(found))
        for warning in found.warnings:
            typer.echo(f"warning: {printable(warning)}", err=True)
    if not found.standings:
        raise OptionError(f"no score could be placed in the grid {loaded.name}")
    if not complete:
        raise typer.Exit(1)


def _run(
    model: str | None,
    suite: str | None,
    data: list[str],
    store: str,
    options: list[str] | None,
    filters: list[str] | None,
    limit: int | None,
) -> tuple[str, bool]:
    """Run a model and print its notes; return its name, and whether it saw all images."""
    from beaufort.evaluation import LazyModel
    from beaufort.results import evaluate

    if model is None:
        raise OptionError("--data requires --model")
    if suite is None:
        raise OptionError("--suite is required for this grid, which has no suite of its own")
    lazy = LazyModel(model, model_options(options, filter=filters))
    with predictions_bar() as progress:
        found = evaluate([lazy], suite, data_by_name(data), store, limit=limit, progress=progress)
    for note in found.notes:
        typer.echo(f"note: {printable(note)}", err=True)
    if found.problems:
        typer.echo(unread(found), err=True)
    return lazy.spec.name, not found.problems
