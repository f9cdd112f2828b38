"""The interactive page of a grid: one HTML file that needs nothing else.

What a reader without scripts must see, one figure and the table of fits, is in the template; all else is
drawn by `data/*.js` from one block of JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.files import write_output
from beaufort._core.pages import render
from beaufort.report.drawing import Drawing
from beaufort.report.provenance import Fact
from beaufort.testbed.correlation import NOT_STANDARD, Correlation, correlation_table, natural_shifts
from beaufort.testbed.figures import legend, looks, scatter_panel, title
from beaufort.testbed.grid import Grid, Setting
from beaufort.testbed.own_scores import Score, own_settings
from beaufort.testbed.trend import FEW, SEED, Knee, coefficient_intervals, fit_shift

_SCRIPTS = (
    "_core/pages/base.js",
    "_core/pages/theme.js",
    "testbed/fit.js",
    "testbed/plot.js",
    "testbed/testbed.js",
    "testbed/correlation.js",
)


def write_page(
    grid: Grid,
    path: Path | str,
    *,
    y: str | None = None,
    x: str | None = None,
    scale: str = "logit",
    own: Sequence[Score] | None = None,
    own_name: str = "your model",
) -> Path:
    """Write the page of a grid, whole or not at all; see `to_page`."""
    target = Path(path)
    write_output(target, to_page(grid, y=y, x=x, scale=scale, own=own, own_name=own_name).encode())
    return target


def to_page(
    grid: Grid,
    *,
    y: str | None = None,
    x: str | None = None,
    scale: str = "logit",
    own: Sequence[Score] | None = None,
    own_name: str = "your model",
) -> str:
    """The page's text; equal input gives equal bytes.

    Args:
        grid: from `load_grid`.
        y: the shift that is shown first; the grid's first natural shift if None.
        x: the setting of the standard accuracy; the shift's own if None.
        scale: `logit` or `linear`; the reader can change it.
        own: scores of a model that is not in the grid, to be highlighted.
        own_name: what it is called.
    """
    if scale not in {"logit", "linear"}:
        raise OptionError(f"the axes of a page must be logit or linear, got {scale!r}")
    shift = _first_shift(grid) if y is None else grid.setting(y).name
    clean = grid.clean_and_shift(shift, x)[0].name
    data = _page_data(grid, clean, shift, scale, own, own_name)
    fits = list(_fits(grid))
    caveat = grid.facts.get("caveat")
    facts = {
        **grid.facts,
        "fit": f"least squares on the stretched axes, on {grid.fit_rule}",
        "intervals": "accuracies: Clopper and Pearson, 99.5 %; lines: 95 %, 1,000 resamples of the models",
    }
    drawing = Drawing(620, 540)
    scatter_panel(drawing, (64, 34, 530, 420), grid, shift, x=clean, scale=scale, intervals=False)
    legend(drawing, grid, (64, 512), width=530)
    return render(
        "testbed/page.html",
        styles=["testbed/testbed.css"],
        scripts=_SCRIPTS,
        data=data,
        title=f"The testbed: {grid.name}",
        eyebrow="testbed",
        sentence=f"{len(grid.models):,} models, {len(grid.settings)} test settings.",
        about=f"The trend is fitted on {grid.fit_rule}." + (f" Beware: {caveat}." if caveat else ""),
        navigation={
            "scatter": "Scatter",
            "ranking": "Above and below",
            **({"correlation": "Synthetic and natural"} if data["correlation"] is not None else {}),
            **({"fits": "Trends"} if fits else {}),
            "made": "How it was made",
        },
        figure=drawing.svg(),
        fits=fits,
        facts=[Fact(name, (text,)) for name, text in facts.items()],
    )


def _first_shift(grid: Grid) -> str:
    shifts = natural_shifts(grid) or [
        name for name, one in grid.settings.items() if one.clean in grid.settings
    ]
    if not shifts:
        raise OptionError(
            f"the grid {grid.name} has no shift with a standard accuracy; name both with y and x (--y, --x)"
        )
    return shifts[0]


def _fits(grid: Grid) -> Iterator[dict[str, Any]]:
    """Rows of the table of fits; a line with a knee has two."""
    for name in natural_shifts(grid):
        try:
            line = fit_shift(grid, name)
        except OptionError:
            continue  # too few models have both
        for where, side in line.sides:
            values = (side.slope, side.intercept)
            yield {
                "shift": f"{title(name)}, {where}" if where else title(name),
                "clean": title(grid.clean_of(name).name),
                "coefficients": list(zip(values, coefficient_intervals(side), strict=True)),
                "r2": side.r2,
                "n": side.n,
            }


# The numbers that the page draws, as JSON: each accuracy once, in hundred-thousandths of a percent


def _page_data(
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
