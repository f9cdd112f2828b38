"""The soft disk of a lens that is out of focus."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Images

__all__ = ["DefocusBlurOps"]


class DefocusBlurOps(Protocol):
    """The soft disk of a lens that is out of focus."""

    def defocus(self, images: Images, radius: float, softness: float, *, nearest: bool = False) -> Images:
        """Spread each pixel over a soft disk; outside, the image mirrored."""
