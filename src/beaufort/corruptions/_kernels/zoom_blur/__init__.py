"""Zooms into the middle."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Images

__all__ = ["Ends", "ZoomBlurOps"]


Ends = tuple[int, int, float]
"""Two sizes, and how far something is on the way from the first to the second."""


class ZoomBlurOps(Protocol):
    """Zooms into the middle."""

    def zoom_average(
        self, images: Images, factors: tuple[float, ...], *, nearest: bool = False, like: Ends | None = None
    ) -> Images:
        """The mean of the image and its zooms into the middle; `like` as for `flakes`."""
