"""The interactive page of a grid, a self-contained HTML file.

The template contains one figure and the table of fits, which need no scripts; the rest is drawn by
`data/*.js` from a block of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.files import write_output
from beaufort._core.pages import render
from beaufort.metrics.scales import get_scale
from beaufort.report.drawing import Drawing
from beaufort.report.provenance import Fact
from beaufort.testbed.correlation import NOT_STANDARD, correlation_table, natural_shifts
from beaufort.testbed.figures import highlighted, legend, looks, scatter_panel, title
from beaufort.testbed.grid import Grid, Score, Setting
from beaufort.testbed.placement import place
from beaufort.testbed.summary import headline
from beaufort.testbed.trend import FEW, SEED, Knee, coefficient_intervals, fit_shift

_SCRIPTS = (
    "_core/pages/base.js",
    "_core/pages/theme.js",
    "testbed/fit.js",
    "testbed/plot.js",
    "testbed/testbed.js",
    "testbed/correlation.js",
)


def write_page(grid: Grid, path: Path | str, **options: Any) -> Path:
    """Write the page of a grid; options as for `to_page`."""
    target = Path(path)
    write_output(target, to_page(grid, **options).encode())
    return target


def to_page(
    grid: Grid,
    *,
    y: str | None = None,
    x: str | None = None,
    scale: str = "logit",
    highlight: Sequence[str] | None = None,
) -> str:
    """Return the page as HTML; equal input gives equal bytes.

    Args:
        grid: from `load_grid`.
        y: shift that is shown first; the grid's first natural shift by default.
        x: setting of the standard accuracy; the shift's own by default.
        scale: `logit`, `probit` or `linear`; the reader can change it.
        highlight: models to draw as stars, as for `highlighted`.
    """
    get_scale(scale)
    shift = _first_shift(grid) if y is None else grid.setting(y).name
    clean = grid.clean_and_shift(shift, x)[0].name
    stars = highlighted(grid, highlight)
    data = _page_data(grid, clean, shift, scale, stars)
    fits = list(_fits(grid))
    caveat = grid.facts.get("caveat")
    facts = {
        **grid.facts,
        "fit": f"least squares on transformed axes, on {grid.fit_rule}",
        "intervals": "accuracies: Clopper-Pearson, 99.5 %; "
        "lines: bootstrap, 95 %, 1,000 resamples of models; "
        "scatter of models: Student's prediction interval, 95 %",
    }
    drawing = Drawing(620, 540)
    scatter_panel(
        drawing, (64, 34, 530, 420), grid, shift, x=clean, scale=scale, intervals=False, highlight=stars
    )
    legend(drawing, grid, (64, 512), width=530)
    sentence, about = _headline(grid, stars, x, scale)
    return render(
        "testbed/page.html",
        styles=["testbed/testbed.css"],
        scripts=_SCRIPTS,
        data=data,
        title=f"The testbed: {grid.name}",
        eyebrow="testbed",
        sentence=sentence,
        about=[about, f"The trend is fitted on {grid.fit_rule}.", f"Note: {caveat}." if caveat else ""],
        navigation={
            "scatter": "Accuracy",
            "ranking": "Effective robustness",
            **({"correlation": "Synthetic and natural shifts"} if data["correlation"] is not None else {}),
            **({"fits": "Trends"} if fits else {}),
            "made": "Provenance",
        },
        figure=drawing.svg(),
        fits=fits,
        facts=[Fact(name, (text,)) for name, text in facts.items()],
    )


def _headline(grid: Grid, stars: Sequence[str], x: str | None, scale: str) -> tuple[str, str]:
    """Return the answer for the first highlighted model, or the size of the grid."""
    size = f"{len(grid.models):,} models, {len(grid.settings)} test settings."
    for star in stars[:1]:
        with suppress(BeaufortError):  # the model lacks the accuracies of every shift
            placement = place(grid.scores(star), grid, model=star, x=x, scale=scale)
            if placement.standings:
                sentence, details = headline(placement, grid, star)
                return sentence, f"{details} Compared with {size}".strip()
    return size, ""


def _first_shift(grid: Grid) -> str:
    shifts = natural_shifts(grid) or [
        name for name, one in grid.settings.items() if one.clean in grid.settings
    ]
    if not shifts:
        raise OptionError(
            f"the grid {grid.name} has no shift with a standard accuracy; pass a shift, and x (--trend x=…)"
        )
    return shifts[0]


def _fits(grid: Grid) -> Iterator[dict[str, Any]]:
    """Yield rows of the table of fits, two for a trend with a knee."""
    for name in natural_shifts(grid):
        with suppress(OptionError):  # too few models have both
            for where, side in fit_shift(grid, name).sides:
                values = (side.slope, side.intercept)
                yield {
                    "shift": f"{title(name)}, {where}" if where else title(name),
                    "clean": title(grid.clean_of(name).name),
                    "coefficients": list(zip(values, coefficient_intervals(side), strict=True)),
                    "r2": side.r2,
                    "n": side.n,
                }


# Data of the page's scripts, with each accuracy once, in hundred-thousandths of a percent


def _page_data(grid: Grid, clean: str, shift: str, scale: str, stars: Sequence[str]) -> dict[str, Any]:
    settings = {**grid.settings, **grid.aggregates}
    number = {name: k for k, name in enumerate(settings)}
    look = np.zeros(len(grid.models), int)
    colors = []
    for i, one in enumerate(looks(grid)):
        look[one.models] = i
        count = int(one.models.sum())
        colors.append({"label": one.label, "color": one.color, "dark": one.dark, "count": count})
    own = {model: grid.scores(model) for model in (*grid.cells, *grid.added)}
    few: list[list[int]] = []
    return {
        "grid": grid.name,
        "names": list(grid.models),
        "look": look.tolist(),
        "looks": colors,
        "fits": [
            {"label": label, "rule": rule, "models": np.flatnonzero(mask).tolist()}
            for label, (rule, mask) in _fit_sets(grid).items()
        ],
        "pairs": [[grid.row_of[pair.model], grid.row_of[pair.base]] for pair in grid.pairs],
        "origins": {
            grid.row_of[model]: {number[one.setting]: _origin(one) for one in scores}
            for model, scores in own.items()
        },
        "tooFew": FEW,
        "settings": [_setting(grid, one, number, few) for one in settings.values()],
        "values": [_steps(grid.values[name]) for name in grid.settings],
        "few": few,
        "x": number[clean],
        "y": number[shift],
        "scale": scale,
        "seed": SEED,
        "stars": [grid.row_of[name] for name in stars],
        "images": {
            grid.row_of[model]: {number[one.setting]: one.images for one in scores}
            for model, scores in own.items()
        },
        "correlation": _correlation(grid, number),
    }


_FEWEST_FITTED = 10
"""Smallest group of models that the page offers for the fit."""


def _fit_sets(grid: Grid) -> dict[str, tuple[str, NDArray[np.bool_]]]:
    """Return sets of models that the trend can be fitted on, by label: the grid's own first."""
    sets = {"grid's choice": (grid.fit_rule, grid.fitted)}
    sets["all models"] = ("all models", np.ones(len(grid.models), bool))
    types = {
        f"type {kind}": np.array([one == kind for one in grid.types]) for kind in sorted(set(grid.types))
    }
    groups = {f"group {name}": mask for name, mask in grid.groups.items()}
    for label, mask in (types | groups).items():
        if mask.sum() >= _FEWEST_FITTED and not any(
            np.array_equal(mask, known) for _, known in sets.values()
        ):
            sets[label] = (f"the {label.partition(' ')[0]} {label.partition(' ')[2]}", mask)
    return sets


def _origin(score: Score) -> str:
    """Return where an accuracy comes from."""
    parts = (score.source, score.date, score.preprocessing and f"preprocessing {score.preprocessing}")
    key = score.fingerprint and f"fingerprint {score.fingerprint[:12]}"
    return ", ".join(part for part in (*parts, key) if part)


def _steps(percent: Iterable[float]) -> list[int | None]:
    return [None if np.isnan(value) else round(100_000 * float(value)) for value in percent]


def _setting(grid: Grid, one: Setting, number: dict[str, int], few: list[list[int]]) -> dict[str, Any]:
    """Return facts about a setting; `few` collects the sets of models that ran on fewer images."""
    facts: dict[str, Any] = {"name": one.name, "title": title(one.name), "kind": one.kind, "n": one.images}
    if one.clean in number:
        facts["clean"] = number[one.clean]
    if one.members:
        facts |= {"members": [number[member] for member in one.members], "kind": "means"}
    elif one.reduced and (rows := np.flatnonzero(grid.images(one.name) == one.reduced).tolist()):
        if rows not in few:
            few.append(rows)
        facts |= {"few": few.index(rows), "reduced": one.reduced}
    if one.filter or (grid.values.get(one.name, np.ones(1)) == 0).any():
        with suppress(BeaufortError):
            trend = fit_shift(grid, one.name)
            if isinstance(trend, Knee):
                facts |= {"pivot": trend.pivot, "filter": grid.row_of.get(one.filter, -1)}
    return facts


def _correlation(grid: Grid, number: dict[str, int]) -> dict[str, Any] | None:
    """Return the table of correlations; None for a grid without synthetic and natural shifts."""
    try:
        found = {(one.synthetic, one.natural): one for one in correlation_table(grid)}
    except BeaufortError:
        return None
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))
    first = next(iter(found))
    cells = {pair: [round(one.pearson, 4), one.n] for pair, one in found.items()}
    return {
        "rows": [number[name] for name in rows],
        "columns": [number[name] for name in columns],
        "cells": [[cells.get((row, column)) for column in columns] for row in rows],
        "models": np.flatnonzero(grid.groups[NOT_STANDARD]).tolist(),
        "row": rows.index(first[0]),
        "column": columns.index(first[1]),
    }
