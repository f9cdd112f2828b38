"""A figure for each question: the change of mCE of every arm with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from beaufort.reproduce.enhancements.about_style import StyleRow
from beaufort.reproduce.enhancements.findings import ArmRow, StudyFinding
from beaufort.testbed._axes import Axes, point_range
from beaufort.testbed._drawing import Drawing

__all__ = ["draw_finding", "draw_styles"]

_METRICS = {"mCE": "#1a5fa8", "noise CE": "#c2622d", "clean error": "#666666"}
_STEP = 26


def draw_finding(finding: StudyFinding) -> Drawing:
    """Every arm a row: the change of mCE, of noise CE and of the clean error, in points."""
    rows = [row for row in finding.rows if row.differences]
    height = _STEP * len(rows)
    drawing = Drawing(760, height + 130)
    values = [0.0]
    for row in rows:
        values += [x for name in _METRICS for x in (row.differences[name].low, row.differences[name].high)]
    axes = Axes(290, 40, 440, height, point_range(values), (0, len(rows)), "linear")
    drawing.text((16, 22), finding.question, size=13, bold=True)
    for place, row in enumerate(rows):
        _draw_row(drawing, axes, row, 40 + _STEP * (place + 0.5))
    zero = float(axes.x(0))
    drawing.lines([[(zero, 40), (zero, 40 + height)]], "#555", dash=(4, 3))
    corners = [(290.0, 40.0), (730.0, 40.0), (730.0, 40.0 + height), (290.0, 40.0 + height)]
    drawing.lines([[*corners, corners[0]]], "#222", width=0.8)
    for value, x in axes._ticks(axes.x_range, axes.x):
        drawing.text((x, height + 56), f"{value:g}".replace("-", "−"), size=10, anchor="middle", color="#666")
    drawing.text((510, height + 76), "change against the control (points); left is better", anchor="middle")
    for place, (name, color) in enumerate(_METRICS.items()):
        at = (300 + 130 * place, height + 104)
        drawing.dots([at], color, radius=3.2)
        drawing.text((at[0] + 8, at[1] + 4), name)
    return drawing


def _draw_row(drawing: Drawing, axes: Axes, row: ArmRow, y: float) -> None:
    drawing.text((280, y + 4), f"{row.group}: {row.arm}", size=10, anchor="end")
    for place, (name, color) in enumerate(_METRICS.items()):
        change = row.differences[name]
        at = y + 6 * (place - 1)
        low, middle, high = (float(axes.x(value)) for value in (change.low, change.value, change.high))
        drawing.lines([[(low, at), (high, at)]], color, width=1.6)
        drawing.dots([(middle, at)], color, radius=2.6)


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
            drawing.text((at[0] + 6, at[1] + 4), one.network, size=9)
    drawing.text((62, 488), f"{len(rows)} standard networks of the testbed; divided by its AlexNet", size=9)
    return drawing
