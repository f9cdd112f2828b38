"""The interactive page of a grid: one HTML file that needs nothing else.

It shares style, frame and scripts with the report's page. What a reader without scripts must see, one figure
and the table of fits, is written here; all else is drawn by `data/*.js` from one block of JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from beaufort.errors import OptionError
from beaufort.report.frame import as_script, bundle, content_policy, page_file
from beaufort.testbed._drawing import Drawing
from beaufort.testbed._files import write_file
from beaufort.testbed._page_data import page_data
from beaufort.testbed.bands import coefficient_intervals
from beaufort.testbed.correlation import natural_shifts
from beaufort.testbed.figures import legend, scatter_panel
from beaufort.testbed.fit import Knee, Line, fit_shift
from beaufort.testbed.grid import Grid
from beaufort.testbed.legend import title
from beaufort.testbed.scores import Score

__all__ = ["to_page", "write_page"]

_HERE = "beaufort.testbed"
_SHARED = ("base.js", "theme.js")
_OWN = ("fit.js", "plot.js", "testbed.js", "correlation.js")


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
    scripts = [*map(page_file, _SHARED), *(page_file(name, _HERE) for name in _OWN)]
    script = bundle(*scripts)
    named = f"The testbed: {grid.name}"
    return Template(page_file("page.html", _HERE)).substitute(
        title=escape(named),
        policy=escape(content_policy(script)),
        style=page_file("page.css") + page_file("testbed.css", _HERE),
        script=script,
        data=as_script(data),
        sentence=f"{len(grid.models):,} models, {len(grid.settings)} test settings.",
        about=escape(_about(grid)),
        navigation=_navigation(data["correlation"] is not None),
        figure=_figure(grid, shift, clean, scale),
        correlation=page_file("correlation.html", _HERE) if data["correlation"] is not None else "",
        fits=_fits(grid),
        made=_made(grid),
    )


def _first_shift(grid: Grid) -> str:
    shifts = natural_shifts(grid) or [name for name, one in grid.settings.items() if one.clean]
    if not shifts:
        raise OptionError(
            f"the grid {grid.name} has no shift with a standard accuracy; name both with y and x"
        )
    return shifts[0]


def _about(grid: Grid) -> str:
    caveat = grid.facts.get("caveat")
    return f"The baseline is fitted on {grid.fit_rule}." + (f" Beware: {caveat}." if caveat else "")


def _navigation(correlated: bool) -> str:
    titles = {"scatter": "Scatter", "ranking": "Above and below"}
    titles |= {"correlation": "Synthetic and natural"} if correlated else {}
    titles |= {"fits": "Baselines", "made": "How it was made"}
    return "".join(f'<a href="#{name}">{text}</a>' for name, text in titles.items())


def _figure(grid: Grid, shift: str, clean: str, scale: str) -> str:
    drawing = Drawing(620, 540)
    scatter_panel(drawing, (64, 34, 530, 420), grid, shift, x=clean, scale=scale, intervals=False)
    legend(drawing, grid, (64, 512), width=530)
    return drawing.svg()


def _fits(grid: Grid) -> str:
    head = "".join(
        f"<th{kind}>{text}</th>"
        for text, kind in (
            ("Shift", ""),
            ("Standard accuracy", ""),
            ("slope", ' class="num"'),
            ("intercept", ' class="num"'),
            ("r²", ' class="num"'),
            ("n", ' class="num"'),
        )
    )
    rows = []
    for name in natural_shifts(grid):
        try:
            line = fit_shift(grid, name)
        except OptionError:
            continue  # too few models have both
        sides: list[tuple[str, Line]] = [("", line)] if isinstance(line, Line) else []
        if isinstance(line, Knee):
            sides = [(f", up to {line.pivot:.2f} %", line.left), (f", above {line.pivot:.2f} %", line.right)]
        rows += [_fit_row(grid, name, where, side) for where, side in sides]
    return f'<table id="fits-table"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _fit_row(grid: Grid, name: str, where: str, line: Line) -> str:
    cells = [
        f"{value:.3f} <small>[{ends.low:.3f}, {ends.high:.3f}]</small>"
        for value, ends in zip((line.slope, line.intercept), coefficient_intervals(line), strict=True)
    ]
    numbers = "".join(f'<td class="num">{cell}</td>' for cell in [*cells, f"{line.r2:.2f}", str(line.n)])
    clean = title(grid.clean_of(name).name)
    return f'<tr><th scope="row">{escape(title(name) + where)}</th><td>{escape(clean)}</td>{numbers}</tr>'


def _made(grid: Grid) -> str:
    facts = {
        **grid.facts,
        "fit": f"least squares on the stretched axes, on {grid.fit_rule}",
        "intervals": "accuracies: Clopper and Pearson, 99.5 %; lines: 95 %, 1,000 resamples of the models",
    }
    listed = "".join(f"<dt>{escape(key)}</dt><dd>{escape(text)}</dd>" for key, text in facts.items())
    return f'<dl class="made">{listed}</dl>'
