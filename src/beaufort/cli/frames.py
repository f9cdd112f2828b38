"""`beaufort frames`: how stable models are over the frames of a video."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list, printable
from beaufort.cli._console import table
from beaufort.cli._options import Json, Suite


def frames(
    store: Annotated[str, typer.Argument(help="Store with predictions for all frames.")],
    sets: Annotated[str, typer.Argument(help="Directory of the frame sets, or their pmsets.json.")],
    *,
    k: Annotated[
        str, typer.Option("-k", help="Number of frames on each side of the anchor, such as 0,5,10.")
    ] = "0,10",
    part: Annotated[
        str | None,
        typer.Option(help="Dataset of the suite to score; by default the first that has all frames."),
    ] = None,
    suite: Suite = None,
    as_json: Json = False,
) -> None:
    """Report how often models are right on an anchor frame and on all frames around it (pm-k).

    `beaufort frames results imagenet-vid-robust -k 0,1,5,10`

    A set of frames counts as correct if the worst frame is. Any k can be scored from a run on all frames.
    """
    from beaufort.data import read_frame_sets
    from beaufort.results import open_parts, pm_scores

    wrong = [one for one in comma_list(k) if not one.isdecimal()]
    if wrong or not comma_list(k):
        raise OptionError(f"-k must be integers such as 0,5,10, got {(wrong or [k])[0]!r}")
    parts = open_parts(store, suite=suite)
    chosen = [results for results in parts if part is None or results.suite.name == part]
    if not chosen:
        names = ", ".join(results.suite.name for results in parts)
        raise OptionError(f"--part must be one of {names}, got {part!r}")
    known = read_frame_sets(sets)
    complete = [one for one in chosen if set(known.frames) <= set(one.predictions(one.models[0]).ids)]
    results = (complete or chosen)[0]
    scores = pm_scores(results, known, [int(one) for one in comma_list(k)])
    if as_json:
        typer.echo(json.dumps([{**asdict(one), "setting": f"pm-{one.k}"} for one in scores], indent=2))
        return
    rows = [
        (printable(one.model), f"pm-{one.k}", f"{one.accuracy:.2%}", str(one.accuracy.n)) for one in scores
    ]
    typer.echo(table([("model", "setting", "accuracy", "anchors"), *rows]))
    for model in results.models:
        typer.echo(f"{printable(model)}: {results.space(model)}")
