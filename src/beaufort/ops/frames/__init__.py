"""Frames of a film: the middle of a picture that is turned or grows."""

from __future__ import annotations

from typing import Protocol

from beaufort.arrays import Array, Images

__all__ = ["FramesOps"]


class FramesOps(Protocol):
    """Frames of a film: the middle of a picture that is turned or grows."""

    def affine_frame(self, images: Images, matrix: Array, about: tuple[float, float], side: int) -> Images:
        """The middle of a picture under (x, y) ← matrix · (x, y) about a point, cut off to 8 bit.

        Linear between pixels. A position outside the picture is black; its edge is not blended.
        """
