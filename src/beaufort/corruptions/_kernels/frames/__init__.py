"""Frames of a film: the middle of a picture that is turned, tilted or grows."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Array, Field, Images

__all__ = ["FramesOps"]


class FramesOps(Protocol):
    """Frames of a film: the middle of a picture that is turned, tilted or grows."""

    def affine_frame(self, images: Images, matrix: Array, about: tuple[float, float], side: int) -> Images:
        """The middle of a picture under (x, y) ← matrix · (x, y) about a point, cut off to 8 bit.

        Linear between pixels, in double precision if the matrix is diagonal, else in single. A position
        outside the picture is black; its edge is not blended.
        """

    def perspective_frame(self, images: Images, matrix: Array, side: int) -> Images:
        """The middle of a picture under a perspective map from the frame to the picture, rounded.

        Positions are multiples of 1/32 pixel. Linear between pixels, and black outside is blended in.
        """

    def add_frame(
        self, total: Field, images: Images, matrix: Array, about: tuple[float, float], count: int
    ) -> Images:
        """Add an `affine_frame`, as values from 0 to 1, to a float32 sum: the mean of `count`, cut off.

        The sum is changed in place, and contiguous.
        """
