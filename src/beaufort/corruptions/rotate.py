"""Rotate: the digit turned left or right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption
from beaufort.corruptions._geometry import about_center, signs


class Params(NamedTuple):
    """Rotation."""

    angle: float
    """Angle in radians."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw the direction, -1 or 1."""
    return signs(random, 1)[:, 0]


@corruption(
    "digits",
    moves=True,
    draw=draw,
    levels={"mnist": [Params(a) for a in (0.2, 0.4, 0.6, 0.8, 1)]},
    published=2,
)
def rotate(images: Images, p: Params, side: Array, ops: Ops) -> Images:
    """Rotate the image about its center, black outside."""
    sine, cosine = np.sin(p.angle * side), np.cos(p.angle * side)
    matrices = np.array([[cosine, -sine], [sine, cosine]]).transpose(2, 0, 1)
    return about_center(images, matrices, ops)
