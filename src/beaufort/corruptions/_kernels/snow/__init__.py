"""Flakes, and the snowfall that is made of them."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Field, Images
from beaufort.corruptions._kernels.zoom_blur import Ends

__all__ = ["SnowOps"]


class SnowOps(Protocol):
    """Flakes, and the snowfall that is made of them."""

    def flakes(
        self,
        normals: Field,
        mean: float,
        spread: float,
        factor: float,
        threshold: float,
        *,
        like: Ends | None = None,
    ) -> Images:
        """A layer of grains `(n, h, w, 1)`: normal noise zoomed into the middle, only the brightest left.

        The middle is a crop of whole pixels. With `like` it is where it would be between two other sizes.
        """

    def snowfall(self, images: Images, layers: Images, mix: float, *, nearest: bool = False) -> Images:
        """Whiten the image, then add the layer and the layer turned by 180°."""
