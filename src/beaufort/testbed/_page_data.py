"""The numbers that the page draws, as JSON: each accuracy once, in hundred-thousandths of a percent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from beaufort._core.errors import BeaufortError
from beaufort.testbed.bands import FEW
from beaufort.testbed.correlation import NOT_STANDARD, Correlation, correlation_table
from beaufort.testbed.fit import SEED, Knee, fit_shift
from beaufort.testbed.grid import Grid
from beaufort.testbed.legend import looks, title
from beaufort.testbed.scores import Score, own_settings
from beaufort.testbed.settings import Setting


def page_data(
    grid: Grid, clean: str, shift: str, scale: str, own: Sequence[Score] | None, own_name: str
) -> dict[str, Any]:
    """What the page's scripts read."""
    known = {**grid.settings, **grid.aggregates}
    place = {name: k for k, name in enumerate(known)}
    mine = {} if own is None else {one.name: score for one, score in own_settings(grid, own)}
    shown = looks(grid)
    look = np.zeros(len(grid.models), int)
    for i, one in enumerate(shown):
        look[one.models] = i
    names, look_of = list(grid.models), look.tolist()
    colors = [
        {"label": one.label, "color": one.color, "dark": one.dark, "count": int(one.models.sum())}
        for one in shown
    ]
    if own is not None:
        names.append(own_name)
        look_of.append(len(colors))
        colors.append({"label": "your own", "color": "#b4470f", "dark": "#ff9d66", "count": 1})
    values = [_steps(grid, name, mine.get(name), own is not None) for name in grid.settings]
    few: list[list[int]] = []
    return {
        "grid": grid.name,
        "names": names,
        "look": look_of,
        "looks": colors,
        "fitted": np.flatnonzero(grid.fitted).tolist(),
        "fitRule": grid.fit_rule,
        "tooFew": FEW,
        "settings": [_setting(grid, one, place, few) for one in known.values()],
        "values": values,
        "few": few,
        "x": place[clean],
        "y": place[shift],
        "scale": scale,
        "seed": SEED,
        "own": {str(place[name]): one.images for name, one in mine.items() if one.images}
        if own is not None
        else None,
        "correlation": _correlation(grid, place),
    }


def _steps(grid: Grid, name: str, mine: Score | None, has_own: bool) -> list[int | None]:
    steps = [None if np.isnan(value) else round(100_000 * value) for value in grid.values[name].tolist()]
    if has_own:
        steps.append(None if mine is None else round(100_000 * mine.accuracy))
    return steps


def _setting(grid: Grid, one: Setting, place: dict[str, int], few: list[list[int]]) -> dict[str, Any]:
    told: dict[str, Any] = {"name": one.name, "title": title(one.name), "kind": one.kind, "n": one.images}
    if one.clean is not None and one.clean in place:
        told["clean"] = place[one.clean]
    if one.members:
        told["members"] = [place[member] for member in one.members]
        told["kind"] = "means"
    elif one.reduced:
        rows = np.flatnonzero(grid.images(one.name) == one.reduced).tolist()
        if rows:
            if rows not in few:
                few.append(rows)
            told |= {"few": few.index(rows), "reduced": one.reduced}
    if one.filter or (grid.values.get(one.name, np.ones(1)) == 0).any():
        told |= _knee(grid, one)
    return told


def _knee(grid: Grid, one: Setting) -> dict[str, Any]:
    try:
        line = fit_shift(grid, one.name)
    except BeaufortError:
        return {}
    if not isinstance(line, Knee):
        return {}
    return {"pivot": line.pivot, "filter": grid.place_of.get(one.filter, -1)}


def _correlation(grid: Grid, place: dict[str, int]) -> dict[str, Any] | None:
    """The map of correlations; None for a grid without synthetic and natural shifts."""
    try:
        found = {(one.synthetic, one.natural): one for one in correlation_table(grid)}
    except BeaufortError:
        return None
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))
    first = next(iter(found))
    return {
        "rows": [place[name] for name in rows],
        "columns": [place[name] for name in columns],
        "cells": [[_cell(found.get((row, column))) for column in columns] for row in rows],
        "models": np.flatnonzero(grid.groups[NOT_STANDARD]).tolist(),
        "row": rows.index(first[0]),
        "column": columns.index(first[1]),
    }


def _cell(one: Correlation | None) -> list[float | int] | None:
    """Pearson's correlation and the number of models; None where too few models have both."""
    return None if one is None else [round(one.pearson, 4), one.n]
