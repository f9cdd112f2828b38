"""The interactive page of a grid: one HTML file that needs nothing else.

What a reader without scripts must see, one figure and the table of fits, is in the template; all else is
drawn by `data/*.js` from one block of JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from beaufort._core.errors import OptionError
from beaufort._core.pages import render
from beaufort.report.drawing import Drawing
from beaufort.report.provenance import Fact
from beaufort.testbed._files import write_file
from beaufort.testbed._page_data import page_data
from beaufort.testbed.bands import coefficient_intervals
from beaufort.testbed.correlation import natural_shifts
from beaufort.testbed.figures import legend, scatter_panel
from beaufort.testbed.fit import Knee, Line, fit_shift
from beaufort.testbed.grid import Grid
from beaufort.testbed.legend import title
from beaufort.testbed.scores import Score

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
    return write_file(path, to_page(grid, y=y, x=x, scale=scale, own=own, own_name=own_name).encode())


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
        raise OptionError(f"scale of a page must be logit or linear, got {scale!r}; figures have probit too")
    shift = _first_shift(grid) if y is None else grid.setting(y).name
    clean = grid.setting(x).name if x is not None else grid.clean_of(shift).name
    data = page_data(grid, clean, shift, scale, own, own_name)
    fits = list(_fits(grid))
    return render(
        "testbed/page.html",
        styles=["testbed/testbed.css"],
        scripts=_SCRIPTS,
        data=data,
        title=f"The testbed: {grid.name}",
        eyebrow="testbed",
        sentence=f"{len(grid.models):,} models, {len(grid.settings)} test settings.",
        about=_about(grid),
        navigation=_navigation(data["correlation"] is not None, bool(fits)),
        figure=_figure(grid, shift, clean, scale),
        fits=fits,
        facts=_facts(grid),
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


def _about(grid: Grid) -> str:
    caveat = grid.facts.get("caveat")
    return f"The trend is fitted on {grid.fit_rule}." + (f" Beware: {caveat}." if caveat else "")


def _navigation(correlated: bool, fitted: bool) -> dict[str, str]:
    titles = {"scatter": "Scatter", "ranking": "Above and below"}
    titles |= {"correlation": "Synthetic and natural"} if correlated else {}
    titles |= {"fits": "Trends"} if fitted else {}
    return titles | {"made": "How it was made"}


def _figure(grid: Grid, shift: str, clean: str, scale: str) -> str:
    drawing = Drawing(620, 540)
    scatter_panel(drawing, (64, 34, 530, 420), grid, shift, x=clean, scale=scale, intervals=False)
    legend(drawing, grid, (64, 512), width=530)
    return drawing.svg()


def _fits(grid: Grid) -> Iterator[dict[str, Any]]:
    """Rows of the table of fits; a line with a knee has two."""
    for name in natural_shifts(grid):
        try:
            line = fit_shift(grid, name)
        except OptionError:
            continue  # too few models have both
        sides: list[tuple[str, Line]] = [("", line)] if isinstance(line, Line) else []
        if isinstance(line, Knee):
            sides = [(f", up to {line.pivot:.2f} %", line.left), (f", above {line.pivot:.2f} %", line.right)]
        for where, side in sides:
            values = (side.slope, side.intercept)
            yield {
                "shift": title(name) + where,
                "clean": title(grid.clean_of(name).name),
                "coefficients": list(zip(values, coefficient_intervals(side), strict=True)),
                "r2": side.r2,
                "n": side.n,
            }


def _facts(grid: Grid) -> list[Fact]:
    facts = {
        **grid.facts,
        "fit": f"least squares on the stretched axes, on {grid.fit_rule}",
        "intervals": "accuracies: Clopper and Pearson, 99.5 %; lines: 95 %, 1,000 resamples of the models",
    }
    return [Fact(name, (text,)) for name, text in facts.items()]
