"""Motion along a straight line."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Array, Images

__all__ = ["MotionBlurOps"]


class MotionBlurOps(Protocol):
    """Motion along a straight line."""

    def motion(self, images: Images, radius: float, sigma: float, angles_deg: Array) -> Images:
        """One-sided motion blur: half a Gaussian that starts at the pixel and runs along the angle."""
