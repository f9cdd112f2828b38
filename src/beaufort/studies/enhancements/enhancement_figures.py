"""A figure for each question: what every arm changes, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from beaufort.metrics.stats import Estimate
from beaufort.report.axes import Axes, point_range
from beaufort.report.drawing import Drawing, diverging
from beaufort.studies.enhancements.arm_predictions import CIFAR
from beaufort.studies.enhancements.findings import OFF_THE_LINE, ArmRow, StudyFinding
from beaufort.studies.enhancements.mce_statistics import Contributions
from beaufort.studies.enhancements.style_claims import StyleRow

_COLORS = ("#1a5fa8", "#c2622d", "#666666")
_SECOND = {"ten-crop": "relative mCE", "small": OFF_THE_LINE, "aggregation": OFF_THE_LINE}
"""What a claim is about beside mCE, where it is not noise CE."""
_STEP = 26


def shown_metrics(design: str) -> tuple[str, str, str]:
    """The three numbers that a question's figure shows of each arm."""
    return "mCE", _SECOND.get(design, "noise CE"), "clean error"


def draw_finding(finding: StudyFinding) -> Drawing:
    """Every arm a row: how much three of its numbers are above the control's, in points."""
    metrics = shown_metrics(finding.design)
    rows = [row for row in finding.rows if row.differences]
    height = _STEP * len(rows)
    drawing = Drawing(760, height + 130)
    values = [0.0]
    for row in rows:
        values += [x for _, change in _changes(row, metrics) for x in (change.low, change.high)]
    axes = Axes(290, 40, 440, height, point_range(values), (0, len(rows)), "linear")
    drawing.text((16, 22), finding.question, size=13, bold=True)
    seen: set[tuple[str, str]] = set()
    for place, row in enumerate(rows):
        again = f" against {row.control}" if (row.group, row.arm) in seen else ""
        seen.add((row.group, row.arm))
        # the interval of one training is over images alone
        once = " (1 seed)" if row.group == CIFAR and row.seeds == 1 else ""
        label = f"{row.group}: {row.arm}{again}{once}"
        _draw_row(drawing, axes, row, label, metrics, 40 + _STEP * (place + 0.5))
    zero = float(axes.x(0))
    drawing.lines([[(zero, 40), (zero, 40 + height)]], "#555", dash=(4, 3))
    corners = [(290.0, 40.0), (730.0, 40.0), (730.0, 40.0 + height), (290.0, 40.0 + height)]
    drawing.lines([[*corners, corners[0]]], "#222", width=0.8)
    for value, x in axes.ticks(axes.x_range, axes.x):
        drawing.text((x, height + 56), f"{value:g}".replace("-", "−"), size=10, anchor="middle", color="#666")
    what = "change against the control" + ", distance from the line" * (OFF_THE_LINE in metrics)
    drawing.text((510, height + 76), f"{what} (points); left is better", anchor="middle")
    for place, (name, color) in enumerate(zip(metrics, _COLORS, strict=True)):
        at = (300 + 130 * place, height + 104)
        drawing.dots([at], color, radius=3.2)
        drawing.text((at[0] + 8, at[1] + 4), name)
    return drawing


def _changes(row: ArmRow, metrics: Sequence[str]) -> list[tuple[int, Estimate]]:
    """What there is of the numbers, with their places; the distance from a line is a difference by itself."""
    found = {
        **row.differences,
        **{name: row.numbers[name] for name in (OFF_THE_LINE,) if name in row.numbers},
    }
    return [(place, found[name]) for place, name in enumerate(metrics) if name in found]


def _draw_row(
    drawing: Drawing, axes: Axes, row: ArmRow, label: str, metrics: Sequence[str], y: float
) -> None:
    drawing.text((280, y + 4), label, size=10, anchor="end")
    for place, change in _changes(row, metrics):
        at, color = y + 6 * (place - 1), _COLORS[place]
        low, middle, high = (float(axes.x(value)) for value in (change.low, change.value, change.high))
        drawing.lines([[(low, at), (high, at)]], color, width=1.6)
        drawing.dots([(middle, at)], color, radius=2.6)


_CELL = 34


def draw_gains(gains: Mapping[tuple[str, str], Contributions]) -> Drawing:
    """What tuning on one corruption (rows) gains under each (columns), in points of CE; red is a gain."""
    columns, rows = (list(dict.fromkeys(key[place] for key in gains)) for place in (1, 0))
    means = {key: float(one.values.mean()) for key, one in gains.items()}
    most = max(map(abs, means.values())) or 1
    left, top = 150, 150
    drawing = Drawing(max(left + _CELL * len(columns) + 16, 480), top + _CELL * len(rows) + 16)
    drawing.text(
        (16, 22), "Gain in CE (points) by what was tuned on (rows) and tested on (columns)", bold=True
    )
    for place, name in enumerate(columns):
        drawing.text((left + _CELL * (place + 0.5) + 4, top - 8), name, size=10, upward=True)
    for down, tuned in enumerate(rows):
        drawing.text((left - 8, top + _CELL * (down + 0.5) + 4), tuned, size=10, anchor="end")
        for across, tested in enumerate(columns):
            mean = means[tuned, tested]
            at = (left + _CELL * across, top + _CELL * down)
            drawing.box(at, (_CELL - 1, _CELL - 1), diverging(mean / most))
            look = "#fff" if abs(mean) > 0.6 * most else "#222"
            text = f"{mean:z.0f}".replace("-", "−")
            drawing.text(
                (at[0] + _CELL / 2, at[1] + _CELL / 2 + 4), text, size=10, anchor="middle", color=look
            )
    return drawing


def draw_styles(rows: Sequence[StyleRow]) -> Drawing:
    """The CE of Stylized-ImageNet against the largest CE of a corruption; equal on the dashed line."""
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
