"""Soft strokes across digits."""

from __future__ import annotations

from typing import Protocol

from beaufort.arrays import Array, Images

__all__ = ["LinesOps"]


class LinesOps(Protocol):
    """Soft strokes across digits."""

    def strokes(
        self, images: Images, segments: Array, counts: Array, *, unit: float = 1.0, dash: float = 0.0
    ) -> Images:
        """Draw segments (x0, y0, x1, y1) in white, softly: 1 + ln(1 - d/2.3) at vertical distance d."""
