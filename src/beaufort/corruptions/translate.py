"""Translate: the digit moved toward one of the four corners."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Array, Images, Ops, Random, WholePixels, corruption
from beaufort.corruptions._geometry import signs


class Params(NamedTuple):
    """Displacement."""

    distance: WholePixels
    """Displacement along both axes."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw the signs of the horizontal and the vertical displacement."""
    return signs(random, 2)


@corruption(
    "digits", moves=True, draw=draw, levels={"mnist": [Params(d) for d in (1, 2, 3, 4, 5)]}, published=3
)
def translate(images: Images, p: Params, side: Array, ops: Ops) -> Images:
    """Move the image diagonally, black outside."""
    return ops.shift(images, p.distance * side)
