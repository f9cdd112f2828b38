"""A picture that turns about its middle while the shutter is open."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Array, Images

__all__ = ["CircularMotionBlurOps"]


class CircularMotionBlurOps(Protocol):
    """A picture that turns about its middle while the shutter is open."""

    def turned(self, images: Images, angles: Array, weights: Array) -> Images:
        """A weighted mean of copies that are turned by `angles`, in radians, with black outside.

        Between pixels a cubic spline runs through the values, mirrored at the borders.
        """
