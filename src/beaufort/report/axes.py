"""The axes of a figure: ranges, ticks and positions of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort.metrics.scales import get_scale
from beaufort.report.drawing import Drawing, Point

Floats = NDArray[np.float64]

_INK, _FAINT, _GRID = "#222", "#666", "#e4e4e0"
# fmt: off
_PERCENTS = (
    0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 97, 98, 99, 99.5, 99.9,
)
# fmt: on
_ROOM = 24
"""Smallest distance of two ticks, in pixels."""


@dataclass(frozen=True)
class Axes:
    """A rectangle of a drawing with a scale on each side."""

    left: float
    top: float
    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    scale: str

    def x(self, value: ArrayLike) -> Floats:
        """Return the horizontal position of values, in pixels."""
        return self.left + self.width * self._fraction(value, self.x_range)

    def y(self, value: ArrayLike) -> Floats:
        """Return the vertical position of values, in pixels from the top."""
        return self.top + self.height * (1 - self._fraction(value, self.y_range))

    def points(self, x: ArrayLike, y: ArrayLike) -> list[Point]:
        """Return the positions of the values that lie inside."""
        found = zip(
            np.asarray(self.x(x)).ravel().tolist(), np.asarray(self.y(y)).ravel().tolist(), strict=True
        )
        return [point for point in found if self._inside(point)]

    def clipped(self, x: ArrayLike, y: ArrayLike) -> list[Point]:
        """Return the positions of a curve, clipped to the frame."""
        across = np.clip(self.x(x), self.left, self.left + self.width)
        down = np.clip(self.y(y), self.top, self.top + self.height)
        return list(zip(across.tolist(), down.tolist(), strict=True))

    def _inside(self, point: Point) -> bool:
        x, y = point
        within = self.left - 0.5 <= x <= self.left + self.width + 0.5
        return within and self.top - 0.5 <= y <= self.top + self.height + 0.5

    def _fraction(self, value: ArrayLike, ends: tuple[float, float]) -> Floats:
        forward = get_scale(self.scale).forward
        low, high = forward(ends)
        z = forward(value)
        held = np.where(np.isinf(z), np.where(z < 0, low, high), z)  # 0 and 100 % may be infinitely far
        return np.asarray((held - low) / (high - low))

    def frame(
        self, drawing: Drawing, x_title: str, y_title: str, heading: str = "", *, unit: str = "%"
    ) -> None:
        """Draw grid lines, ticks with numbers, and titles."""
        right, bottom = self.left + self.width, self.top + self.height
        across = self.ticks(self.x_range, self.x)
        down = self.ticks(self.y_range, self.y)
        drawing.lines([[(x, self.top), (x, bottom)] for _, x in across], _GRID, width=0.7)
        drawing.lines([[(self.left, y), (right, y)] for _, y in down], _GRID, width=0.7)
        for value, x in across:
            drawing.text((x, bottom + 14), _number(value), size=10, anchor="middle", color=_FAINT)
        for value, y in down:
            drawing.text((self.left - 6, y + 3.5), _number(value), size=10, anchor="end", color=_FAINT)
        corners = [(self.left, self.top), (right, self.top), (right, bottom), (self.left, bottom)]
        drawing.lines([[*corners, corners[0]]], _INK, width=0.8)
        middle = self.left + self.width / 2, self.top + self.height / 2
        drawing.text((middle[0], bottom + 31), f"{x_title} ({unit})", anchor="middle", color=_INK)
        drawing.text(
            (self.left - 34, middle[1]), f"{y_title} ({unit})", anchor="middle", color=_INK, upward=True
        )
        if heading:
            drawing.text((self.left, self.top - 8), heading, size=13, bold=True, color=_INK)

    def ticks(
        self, ends: tuple[float, float], position: Callable[[ArrayLike], Floats]
    ) -> list[tuple[float, float]]:
        """Return round values between two ends and their positions."""
        low, high = ends
        if self.scale == "linear":
            candidates: Sequence[float] = _round_numbers(low, high)
        else:
            candidates = [value for value in _PERCENTS if low <= value <= high]
        kept: list[tuple[float, float]] = []
        for value in candidates:
            place = float(position(value))
            if not kept or abs(place - kept[-1][1]) >= _ROOM:
                kept.append((value, place))
        return kept


def _round_numbers(low: float, high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 7)
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def percent_range(values: ArrayLike, scale: str) -> tuple[float, float]:
    """Return the range of an axis for percentages, with a margin."""
    known = get_scale(scale)
    z = known.forward(values)
    z = z[np.isfinite(z)] if np.isfinite(z).any() else np.zeros(1)
    room = 0.05 * max(float(np.ptp(z)), 0.1)
    low, high = known.inverse([z.min() - room, z.max() + room])
    return float(low), float(high)


def point_range(values: ArrayLike) -> tuple[float, float]:
    """Return the range of an axis for differences, with a margin."""
    found = np.asarray(values, np.float64)
    room = 0.06 * max(float(np.ptp(found)), 0.1)
    return float(found.min() - room), float(found.max() + room)
