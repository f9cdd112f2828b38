"""`beaufort place`: place a model among reference models."""

from __future__ import annotations

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import printable
from beaufort.cli._console import print_json
from beaufort.cli._options import (
    Grid,
    Intervals,
    Json,
    Model,
    OptionalStore,
    Scores,
    Suite,
    Trend,
    parse_intervals,
    parse_trend,
)


def place(
    scores: Scores = None,
    store: OptionalStore = None,
    model: Model = None,
    suite: Suite = None,
    grid: Grid = "paper",
    trend: Trend = None,
    intervals: Intervals = None,
    as_json: Json = False,
) -> None:
    """Place a model in a grid: effective robustness, rank among similar models, neighbors.

    `beaufort place --scores scores.csv --grid timm`

    `beaufort place --store results --model my-net` places a model on the shifts of all suites of a store;
    `--suite` selects one.

    `beaufort place --grid paper+my-nets.csv --model my-net` places a model of the grid.

    A model is placed on each shift for which the scores have the accuracy under the shift and the standard
    accuracy; intervals and verdicts require both numbers of images. Keys of `--intervals`: level, seed.
    `beaufort testbed run` evaluates a model first.
    """
    from beaufort.testbed import load_grid, read_scores
    from beaufort.testbed import place as place_scores

    if (scores is not None and store is not None) or (scores is None and store is None and model is None):
        raise OptionError("pass one of --scores, --store and --model (of the grid)")
    if scores is not None and model is not None:
        raise OptionError("--model requires --store or a model of --grid: scores are of one model")
    if suite is not None and store is None:
        raise OptionError("--suite requires --store")
    fit_on, arguments = parse_trend(trend)
    arguments |= parse_intervals(intervals, level=0.95, seed=720257663)
    loaded = load_grid(grid, fit_on=fit_on)
    if scores is not None:
        placement = place_scores(read_scores(scores), loaded, **arguments)
    elif store is not None:
        placement = place_scores(store, loaded, model=model, suite=suite, **arguments)
    else:
        assert model is not None
        placement = place_scores(loaded.scores(model), loaded, model=model, **arguments)
    if as_json:
        print_json(placement.as_dict())
    else:
        typer.echo(str(placement))
        for warning in placement.warnings:
            typer.echo(f"warning: {printable(warning)}", err=True)
    if not placement.standings:
        raise OptionError(f"the grid {loaded.name} has no shift that the scores have")
