"""Figures of the testbed: scatter plots of shifts with their trends, and of effective robustness."""

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
from beaufort.testbed.robustness import accuracy_intervals
from beaufort.testbed.timm_tables import KINDS
from beaufort.testbed.trend import Knee, Trend, band, fit_shift, prediction_interval

Box = tuple[float, float, float, float]
"""Left, top, width and height of a panel, in pixels."""

Floats = NDArray[np.float64]

MOST_STARS = 10
"""If a union adds more models, none is highlighted unless it is named."""

_FIT, _DIAGONAL, _OWN = "#c22", "#555", "#ffc400"


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
    highlight: Sequence[str] = (),
    heading: str | None = None,
) -> Axes:
    """Draw accuracy under a shift against standard accuracy, with y = x, the trend and its band.

    Args:
        drawing: canvas to draw on.
        box: position on the canvas.
        grid: the models.
        y: the shift.
        x: setting of the standard accuracy; the shift's own by default.
        scale: scale of both axes.
        least: lowest standard accuracy that is drawn; all models stay in the fit.
        trend: a different trend than the grid's own.
        intervals: whether to draw the 99.5 % interval of each accuracy.
        highlight: models to draw as stars with their names.
        heading: heading of the panel; the name of the shift by default.
    """
    clean, shift = grid.clean_and_shift(y, x)
    if trend is None:
        trend = fit_shift(grid, y, x=x, scale=scale)
    xs, ys = grid.column(clean.name), grid.column(shift.name)
    visible = ~(np.isnan(xs) | np.isnan(ys)) & (xs >= least)
    if not visible.any():
        raise OptionError(f"no model of the grid {grid.name} has both {clean.name} and {shift.name}")
    stars = [grid.row_of[name] for name in highlight]
    visible[stars] = ~(np.isnan(xs) | np.isnan(ys))[stars]
    x_range, y_range = (percent_range(values[visible], scale) for values in (xs, ys))
    axes = Axes(*box, x_range, y_range, scale)
    axes.frame(
        drawing, title(clean.name), title(shift.name), title(shift.name) if heading is None else heading
    )
    low, high = max(axes.x_range[0], axes.y_range[0]), min(axes.x_range[1], axes.y_range[1])
    if low < high:
        drawing.lines([axes.points([low, high], [low, high])], _DIAGONAL, dash=(4, 3))
    for look in looks(grid) if intervals else ():
        rows = np.flatnonzero(visible & look.models)
        x_bounds, y_bounds = (
            accuracy_intervals(values[rows], grid.images(setting.name)[rows])
            for values, setting in ((xs, clean), (ys, shift))
        )
        lines = [
            axes.clipped([start, end], [ys[row]] * 2)
            for row, start, end in zip(rows, *x_bounds, strict=True)
            if not np.isnan(start)
        ]
        lines += [
            axes.clipped([xs[row]] * 2, [start, end])
            for row, start, end in zip(rows, *y_bounds, strict=True)
            if not np.isnan(start)
        ]
        drawing.lines(lines, look.color, width=0.6, opacity=0.3)
    for look in looks(grid):
        shown = visible & look.models
        shown[stars] = False
        drawing.dots(axes.points(xs[shown], ys[shown]), look.color)
    _draw_trend(drawing, axes, trend)
    for row in (row for row in stars if visible[row]):
        _draw_star(drawing, axes, xs[row], ys[row], grid.models[row])
    return axes


def _draw_star(drawing: Drawing, axes: Axes, x: float, y: float, name: str) -> None:
    """Draw a star with a dark rim, and the name of its model beside it, inside the panel."""
    points = axes.points([x], [y])
    if not points:  # 0 or 100 % on a logit axis
        return
    ((across, down),) = points
    corners = np.pi * np.arange(10) / 5 - np.pi / 2
    for reach, color in ((12.0, "#111"), (9.0, _OWN)):
        radii = np.where(np.arange(10) % 2, 0.42 * reach, reach)
        star = zip(across + radii * np.cos(corners), down + radii * np.sin(corners), strict=True)
        drawing.area(list(star), color, opacity=1)
    left = across > axes.left + axes.width / 2
    anchor, place = ("end", across - 13) if left else ("start", across + 13)
    drawing.text((place, down + 4), name, anchor=anchor, bold=True)


def _draw_trend(drawing: Drawing, axes: Axes, trend: Trend) -> None:
    """Draw the fit, its band and the prediction interval, separately for the two sides of a knee."""
    scale = get_scale(trend.scale)
    low, high = axes.x_range
    sides = [(low, high)]
    if isinstance(trend, Knee):
        sides = [(low, min(trend.pivot, high)), (max(trend.pivot * (1 + 1e-9), low), high)]
    for start, end in sides:
        if start < end:
            first, last = scale.forward([start, end])
            xs = scale.inverse(np.linspace(first, last, 60))
            below, above = band(trend, xs)
            drawing.area(axes.clipped(xs, below) + axes.clipped(xs, above)[::-1], _FIT, opacity=0.18)
            drawing.lines([axes.points(xs, trend.predict(xs))], _FIT, width=1.5)
            ends = [axes.points(xs, bound) for bound in prediction_interval(trend, xs)]
            drawing.lines(ends, _FIT, width=1, dash=(2, 3))


def correlation_panel(
    drawing: Drawing, box: Box, grid: Grid, correlation: Correlation, *, heading: str | None = None
) -> Axes:
    """Draw effective robustness to a natural shift against that to a synthetic shift."""
    x, y = np.array(correlation.x), np.array(correlation.y)
    axes = Axes(*box, point_range(x), point_range(y), "linear")
    numbers = f"r = {correlation.pearson:.2f}, n = {correlation.n}".replace("-", "−")
    axes.frame(
        drawing,
        f"ρ, {title(correlation.synthetic)}",
        f"ρ, {title(correlation.natural)}",
        numbers if heading is None else f"{heading}: {numbers}",
        unit="points",
    )
    drawing.lines([axes.clipped([0, 0], axes.y_range)], _DIAGONAL, dash=(4, 3))
    drawing.lines([axes.clipped(axes.x_range, [0, 0])], _DIAGONAL, dash=(4, 3))
    draw_models(drawing, axes, grid, correlation.models, x, y)
    return axes


def draw_models(
    drawing: Drawing, axes: Axes, grid: Grid, models: Sequence[str], x: Floats, y: Floats
) -> None:
    """Draw a dot for each model in its color."""
    rows = np.array([grid.row_of[name] for name in models])
    for look in looks(grid):
        chosen = look.models[rows]
        drawing.dots(axes.points(x[chosen], y[chosen]), look.color)


def legend(
    drawing: Drawing, grid: Grid, at: tuple[float, float], *, width: float, own: str = "", lines: bool = True
) -> None:
    """Draw the meaning of colors and lines, in rows."""
    entries = [(look.label, look.color, "dot") for look in looks(grid)]
    if lines:
        entries += [
            ("trend with its 95 % band", _FIT, "line"),
            ("95 % of models like the fitted ones", _FIT, "dots"),
            ("y = x", _DIAGONAL, "dash"),
        ]
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
            dash = {"line": (), "dash": (4, 3), "dots": (2, 3)}[kind]
            drawing.lines([[(x, y - 3.8), (x + 15, y - 3.8)]], color, width=1.6, dash=dash)
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
    highlight: Sequence[str] | None = None,
) -> Path:
    """Draw one shift as an SVG or PNG file, by the suffix of its name; models as for `highlighted`."""
    drawing = Drawing(620, 560)
    stars = highlighted(grid, highlight)
    first, second = (grid.column(setting.name) for setting in grid.clean_and_shift(y, x))
    for name in highlight or ():
        if np.isnan(first[grid.row_of[name]] + second[grid.row_of[name]]):
            raise OptionError(f"{name} lacks one of the two accuracies of the figure")
    scatter_panel(
        drawing,
        (64, 34, 530, 420),
        grid,
        y,
        x=x,
        scale=scale,
        least=least,
        highlight=stars,
        intervals=len(grid.models) < 600,
    )
    legend(drawing, grid, (64, 512), width=530, own="highlighted" if stars else "")
    return write_drawing(drawing, path)


def highlighted(grid: Grid, names: Sequence[str] | None) -> list[str]:
    """Return the models to highlight: those named, or up to ten that a union has beside its first grid."""
    if names is None:
        return list(grid.added) if len(grid.added) <= MOST_STARS else []
    for name in names:
        if name not in grid.row_of:
            grid.scores(name)  # an error with similar names
    return list(names)


def write_drawing(drawing: Drawing, path: Path | str) -> Path:
    """Write a drawing as SVG or PNG, by the suffix of the file name."""
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
    """Color on a dark background."""
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
    """Return the colors of a grid: by training data for timm's entries, else by type of model.

    Types without a color, and models of type STANDARD that the trend is not fitted on, are gray.
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
    "imagenetv2-threshold-0.7-format-val": "ImageNetV2, threshold-0.7",
    "imagenetv2-threshold0.7": "ImageNetV2, threshold-0.7 (original files)",
    "imagenetv2-top-images-format-val": "ImageNetV2, top-images",
    "imagenetv2-topimages": "ImageNetV2, top-images (original files)",
    "imagenetv2-matched-frequency-format-val_subsampled_class_1_8": "ImageNetV2, an eighth of the classes",
    "val_subsampled_class_1_8": "ImageNet, an eighth of the classes",
    "stylized_imagenet": "Stylized-ImageNet",
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
    """Return the name of a setting in figures."""
    return _TITLES.get(setting, setting)
