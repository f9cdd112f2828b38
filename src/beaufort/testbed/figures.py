"""Figures for papers: the scatter of a shift with its trend, and synthetic against natural robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.files import write_output
from beaufort.metrics.scales import get_scale
from beaufort.report.axes import Axes, percent_range, point_range
from beaufort.report.drawing import Drawing
from beaufort.testbed.correlation import Correlation
from beaufort.testbed.grid import Grid
from beaufort.testbed.own_scores import Score, own_settings
from beaufort.testbed.robustness import accuracy_intervals
from beaufort.testbed.timm_tables import KINDS
from beaufort.testbed.trend import Knee, Trend, band, fit_shift

Box = tuple[float, float, float, float]
"""Left, top, width and height of a panel, in pixels."""

_FIT, _DIAGONAL, _OWN = "#c22", "#555", "#111"


def scatter_panel(
    drawing: Drawing,
    box: Box,
    grid: Grid,
    y: str,
    *,
    x: str | None = None,
    scale: str = "logit",
    least: float = 0,
    trend: Trend | None = None,
    intervals: bool = True,
    own: Mapping[str, float] | None = None,
    heading: str | None = None,
) -> Axes:
    """Accuracy under a shift against standard accuracy, with y = x, the trend and its band.

    Args:
        drawing: canvas to draw on.
        box: place on the canvas.
        grid: the models.
        y: the shift.
        x: the setting of the standard accuracy; the shift's own if None.
        scale: scale of both axes.
        least: models with a lower standard accuracy are not drawn; they stay in the fit.
        trend: another trend than the grid's own.
        intervals: whether each accuracy has its 99.5 % interval.
        own: accuracies of a model to be highlighted, by setting.
        heading: heading of the panel; the name of the shift if None.
    """
    clean, shift = grid.clean_and_shift(y, x)
    line = fit_shift(grid, y, x=x, scale=scale) if trend is None else trend
    first, second = grid.column(clean.name), grid.column(shift.name)
    shown = ~(np.isnan(first) | np.isnan(second)) & (first >= least)
    if not shown.any():
        raise OptionError(f"no model of the grid {grid.name} has both {clean.name} and {shift.name}")
    mine = None
    if own is not None and clean.name in own and shift.name in own:
        mine = own[clean.name], own[shift.name]
    xs = np.append(first[shown], mine[0]) if mine else first[shown]
    ys = np.append(second[shown], mine[1]) if mine else second[shown]
    axes = Axes(*box, percent_range(xs, scale), percent_range(ys, scale), scale)
    axes.frame(
        drawing, title(clean.name), title(shift.name), title(shift.name) if heading is None else heading
    )
    _diagonal(drawing, axes)
    if intervals:
        _intervals(drawing, axes, grid, (clean.name, first), (shift.name, second), shown)
    for look in looks(grid):
        rows = shown & look.models
        drawing.dots(axes.points(first[rows], second[rows]), look.color)
    _trend(drawing, axes, line)
    if mine:
        at = axes.points(*mine)
        drawing.dots(at, "#fff", radius=6.5, opacity=1)
        drawing.dots(at, _OWN, radius=5, opacity=1)
    return axes


def _diagonal(drawing: Drawing, axes: Axes) -> None:
    low, high = max(axes.x_range[0], axes.y_range[0]), min(axes.x_range[1], axes.y_range[1])
    if low < high:
        drawing.lines([axes.points([low, high], [low, high])], _DIAGONAL, dash=(4, 3))


def _intervals(
    drawing: Drawing,
    axes: Axes,
    grid: Grid,
    first: tuple[str, NDArray[np.float64]],
    second: tuple[str, NDArray[np.float64]],
    shown: NDArray[np.bool_],
) -> None:
    """Thin lines for the 99.5 % intervals of both accuracies."""
    for look in looks(grid):
        rows = np.flatnonzero(shown & look.models)
        lines = []
        for across, (name, column) in ((True, first), (False, second)):
            low, high = accuracy_intervals(column[rows], grid.images(name)[rows])
            for row, start, end in zip(rows, low, high, strict=True):
                if not np.isnan(start):
                    ends = [start, end]
                    fixed = [second[1][row] if across else first[1][row]] * 2
                    lines.append(axes.clipped(ends, fixed) if across else axes.clipped(fixed, ends))
        drawing.lines(lines, look.color, width=0.6, opacity=0.3)


def _trend(drawing: Drawing, axes: Axes, line: Trend) -> None:
    """The fit and its band, across the panel; the two sides of a knee apart."""
    scale = get_scale(line.scale)
    low, high = axes.x_range
    sides = [(low, high)]
    if isinstance(line, Knee):
        sides = [(low, min(line.pivot, high)), (max(line.pivot * (1 + 1e-9), low), high)]
    for start, end in sides:
        if start >= end:
            continue
        first, last = scale.forward([start, end])
        xs = scale.inverse(np.linspace(first, last, 60))
        below, above = band(line, xs)
        outline = axes.clipped(xs, below) + axes.clipped(xs, above)[::-1]
        drawing.area(outline, _FIT, opacity=0.18)
        middle = line.predict(xs)
        drawing.lines([axes.points(xs, middle)], _FIT, width=1.5)


def correlation_panel(
    drawing: Drawing, box: Box, grid: Grid, found: Correlation, *, heading: str | None = None
) -> Axes:
    """Effective robustness to a natural shift against that to a synthetic one."""
    x, y = np.array(found.x), np.array(found.y)
    axes = Axes(*box, point_range(x), point_range(y), "linear")
    told = f"r = {found.pearson:.2f}, n = {found.n}".replace("-", "−")
    axes.frame(
        drawing,
        f"ρ, {title(found.synthetic)}",
        f"ρ, {title(found.natural)}",
        told if heading is None else f"{heading}: {told}",
        unit="points",
    )
    drawing.lines([axes.clipped([0, 0], axes.y_range)], _DIAGONAL, dash=(4, 3))
    drawing.lines([axes.clipped(axes.x_range, [0, 0])], _DIAGONAL, dash=(4, 3))
    rows = np.array([grid.place_of[name] for name in found.models])
    for look in looks(grid):
        chosen = look.models[rows]
        drawing.dots(axes.points(x[chosen], y[chosen]), look.color)
    return axes


def legend(
    drawing: Drawing, grid: Grid, at: tuple[float, float], *, width: float, own: str = "", lines: bool = True
) -> None:
    """The colors in rows, and what the lines are."""
    entries = [(look.label, look.color, "dot") for look in looks(grid)]
    if lines:
        entries += [("trend with its 95 % band", _FIT, "line"), ("y = x", _DIAGONAL, "dash")]
    if own:
        entries.append((own, _OWN, "dot"))
    x, y = at
    for label, color, kind in entries:
        wide = 26 + 6.1 * len(label)
        if x + wide > at[0] + width and x > at[0]:
            x, y = at[0], y + 17
        if kind == "dot":
            drawing.dots([(x + 7, y - 3.8)], color, radius=3.4, opacity=1)
        else:
            drawing.lines(
                [[(x, y - 3.8), (x + 15, y - 3.8)]], color, width=1.6, dash=(4, 3) * (kind == "dash")
            )
        drawing.text((x + 19, y), label)
        x += wide


def write_figure(
    grid: Grid,
    path: Path | str,
    *,
    y: str = "imagenetv2",
    x: str | None = None,
    scale: str = "logit",
    least: float = 0,
    own: Sequence[Score] | None = None,
    own_name: str = "your model",
) -> Path:
    """Draw one shift as an SVG or PNG file, by the ending of its name."""
    drawing = Drawing(620, 560)
    mine = None if own is None else {one.name: score.accuracy for one, score in own_settings(grid, own)}
    needed = [setting.name for setting in grid.clean_and_shift(y, x)]
    if mine is not None and (lacking := [name for name in needed if name not in mine]):
        raise OptionError(f"scores must have {' and '.join(needed)} to be drawn, got none for {lacking[0]}")
    scatter_panel(
        drawing,
        (64, 34, 530, 420),
        grid,
        y,
        x=x,
        scale=scale,
        least=least,
        own=mine,
        intervals=len(grid.models) < 600,
    )
    legend(drawing, grid, (64, 512), width=530, own=own_name if mine else "")
    return write_drawing(drawing, path)


def write_drawing(drawing: Drawing, path: Path | str) -> Path:
    """A drawing as a file, by the ending of its name."""
    target = Path(path)
    content = drawing.png() if target.suffix.lower() == ".png" else drawing.svg().encode()
    write_output(target, content)
    return target


# Colors and names


class Look(NamedTuple):
    """Models of one color."""

    label: str
    color: str
    dark: str
    """The color on a dark ground."""
    models: NDArray[np.bool_]


_STANDARD = ("#1a5fa8", "#7fb8f5")
_ROBUST = ("#c2622d", "#f0a070")
_LP = ("#8a3fa0", "#cf9be0")
_MORE = ("#23803f", "#74cf8d")
_OTHER = ("#8b9096", "#8f98a3")

_TYPES: Mapping[str, tuple[str, tuple[str, str]]] = {
    "STANDARD": ("standard training", _STANDARD),
    "ROBUST_INTV": ("robustness intervention", _ROBUST),
    "LP_ADV": ("trained against lp attacks", _LP),
    "MORE_DATA": ("trained with more data", _MORE),
}

_KIND_COLORS: Mapping[str, tuple[str, str]] = {
    "imagenet-1k": _STANDARD,
    "imagenet-1k, distilled": ("#3aa0a0", "#7fd6d6"),
    "imagenet-1k, adversarial": _ROBUST,
    "imagenet-21k": ("#7aa51e", "#b7db6a"),
    "web": _MORE,
    "image-text": ("#b02a5b", "#f08cb0"),
}


def looks(grid: Grid) -> list[Look]:
    """The colors of a grid: by training data for timm's entries, else by type of model.

    Models of type STANDARD that the trend is not fitted on are grey, like all types without a color of
    their own.
    """
    if all(kind in grid.groups for kind in KINDS):
        return [
            Look(kind, *color, grid.groups[kind])
            for kind, color in _KIND_COLORS.items()
            if grid.groups[kind].any()
        ]
    types = np.array(grid.types)
    found, taken = [], np.zeros(len(types), bool)
    for name, (label, color) in _TYPES.items():
        mask = types == name
        if name == "STANDARD" and (mask & grid.fitted).any():
            mask &= grid.fitted
        if mask.any():
            found.append(Look(label, *color, mask))
            taken |= mask
    if not taken.all():
        found.append(Look("other", *_OTHER, ~taken))
    return found


_TITLES: Mapping[str, str] = {
    "val": "ImageNet",
    "imagenetv2-matched-frequency-format-val": "ImageNetV2",
    "imagenetv2-matched-frequency": "ImageNetV2 (original files)",
    "objectnet-1.0-beta": "ObjectNet",
    "val-on-objectnet-classes": "ImageNet (classes of ObjectNet)",
    "imagenet-vid-robust_pm0": "Vid-Robust, anchors",
    "imagenet-vid-robust_pm10": "Vid-Robust, ±10 frames",
    "val-on-vid-robust-classes": "ImageNet (classes of Vid-Robust)",
    "ytbb-robust_pm0": "YTBB-Robust, anchors",
    "ytbb-robust_pm10": "YTBB-Robust, ±10 frames",
    "val-on-ytbb-robust-classes": "ImageNet (classes of YTBB-Robust)",
    "imagenet-a": "ImageNet-A",
    "val-on-imagenet-a-classes": "ImageNet (classes of ImageNet-A)",
    "imagenet-r": "ImageNet-R",
    "val-on-imagenet-r-classes": "ImageNet (classes of ImageNet-R)",
    "imagenet-sketch": "ImageNet-Sketch",
    "imagenet-real": "ImageNet, ReaL labels",
    "avg_corruptions": "mean over corruptions",
    "avg_pgd": "mean over PGD attacks",
}


def title(setting: str) -> str:
    """What a setting is called in a figure."""
    return _TITLES.get(setting, setting)
