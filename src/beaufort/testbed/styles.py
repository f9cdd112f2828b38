"""Style transfer beside the corruptions of ImageNet-C, for the standard networks of the testbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from beaufort._core.text import csv_text
from beaufort.corruptions import get_corruption_names
from beaufort.metrics.stats import Estimate
from beaufort.report.axes import Axes, point_range
from beaufort.report.drawing import Drawing
from beaufort.testbed.load import load_grid

_IMAGES = 50_000
"""Number of images behind every accuracy of the testbed."""
_Z = 1.96


@dataclass(frozen=True)
class StyleRow:
    """CEs of one standard network of the testbed, in percent."""

    network: str
    style: float
    """Of Stylized-ImageNet."""
    worst: str
    """The corruption with the largest CE."""
    worst_ce: float
    mce: float
    gap: Estimate
    """Style's CE minus the largest CE of a corruption."""


@lru_cache(maxsize=1)
def styles_in_testbed() -> tuple[StyleRow, ...]:
    """Return every standard network but AlexNet, whose errors are the divisor.

    Predictions for single images are not published, so the interval of a gap assumes the worst about how
    errors coincide: deviations add up, not variances.
    """
    grid = load_grid("paper")
    columns = {
        name: np.stack(
            [1 - grid.column(one) / 100 for one in grid.setting(f"imagenet-c.{name}_on-disk").members], axis=1
        )
        for name in get_corruption_names("common")
    }
    styled = 1 - grid.column("stylized_imagenet") / 100
    complete = np.isfinite(styled) & np.all(
        [np.isfinite(one).all(axis=1) for one in columns.values()], axis=0
    )
    base = grid.row_of["alexnet"]
    rows = []
    for row in np.flatnonzero(grid.fitted & complete):
        if row == base:
            continue
        errors = {name: values[row] for name, values in columns.items()}
        ces = {name: errors[name].sum() / columns[name][base].sum() for name in errors}
        worst = max(ces, key=lambda name: float(ces[name]))
        style = styled[row] / styled[base]
        spread = _deviation(styled[row]) / styled[base]
        spread += sum(map(_deviation, errors[worst])) / columns[worst][base].sum()
        gap, width = 100 * float(style - ces[worst]), _Z * 100 * float(spread)
        mce = 100 * float(np.mean(list(ces.values())))
        interval = Estimate(gap, gap - width, gap + width, _IMAGES)
        rows.append(
            StyleRow(grid.models[row], 100 * float(style), worst, 100 * float(ces[worst]), mce, interval)
        )
    return tuple(rows)


def _deviation(error: float) -> float:
    return float(np.sqrt(error * (1 - error) / _IMAGES))


def styles_csv(rows: Sequence[StyleRow]) -> str:
    """Return Stylized-ImageNet beside the hardest corruption for each network, in percent."""
    head = ("network", "style_ce", "hardest", "hardest_ce", "mce", "gap", "gap_low", "gap_high")
    lines = (
        (
            *(one.network, f"{one.style:.2f}", one.worst, f"{one.worst_ce:.2f}", f"{one.mce:.2f}"),
            *(f"{x:.2f}" for x in (one.gap.value, one.gap.low, one.gap.high)),
        )
        for one in rows
    )
    return csv_text(head, lines)


def draw_styles(rows: Sequence[StyleRow]) -> Drawing:
    """Draw the CE of Stylized-ImageNet against the largest CE of a corruption."""
    drawing = Drawing(620, 500)
    x, y = [one.worst_ce for one in rows], [one.style for one in rows]
    ends = point_range([*x, *y])
    axes = Axes(62, 34, 520, 400, ends, ends, "linear")
    axes.frame(drawing, "largest CE of a corruption", "CE of Stylized-ImageNet", "Style against corruptions")
    drawing.lines([axes.points(ends, ends)], "#111", width=1.0, dash=(5, 3))
    drawing.dots(axes.points(x, y), "#1a5fa8", radius=2.6)
    for one in rows:
        if one.network in ("resnet50", "vgg19", "densenet161", "squeezenet1_1"):
            at = axes.points([one.worst_ce], [one.style])[0]
            drawing.dots([at], "#c2622d", radius=3.2)
            outside = at[0] + 6 + 6 * len(one.network) > axes.left + axes.width
            place, anchor = (at[0] - 6, "end") if outside else (at[0] + 6, "start")
            drawing.text((place, at[1] + 4), one.network, size=9, anchor=anchor)
    drawing.text((62, 488), f"{len(rows)} standard networks of the testbed; divided by its AlexNet", size=9)
    return drawing
