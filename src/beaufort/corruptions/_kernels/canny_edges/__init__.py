"""Outlines of digits."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Images

__all__ = ["CannyEdgesOps"]


class CannyEdgesOps(Protocol):
    """Outlines of digits."""

    def outline(self, images: Images, sigma: float, low: float, high: float) -> Images:
        """Canny's edges in white on black, with scikit-image's smoothing, slopes and ties."""
