"""Strokes across digits and photos."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Array, Images

__all__ = ["LinesOps"]


class LinesOps(Protocol):
    """Strokes across digits and photos."""

    def strokes(
        self, images: Images, segments: Array, counts: Array, *, unit: float = 1.0, dash: float = 0.0
    ) -> Images:
        """Draw segments (x0, y0, x1, y1) in white, softly: 1 + ln(1 - d/2.3) at vertical distance d."""

    def gray_lines(self, images: Images, ends: Array) -> Images:
        """Draw antialiased lines between whole (row, column, row, column), `(n, lines, 4)`, in middle grey.

        One after the other: values are cut off to 8 bit after each.
        """
