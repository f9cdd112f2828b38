"""Shear: the digit slanted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption
from beaufort.corruptions._geometry import about_center, signs


class Params(NamedTuple):
    """Strength of the shear."""

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
def shear(images: Images, p: Params, side: Array, ops: Ops) -> Images:
    """Shear the image about its center, black outside.

    The matrix is [1, -sin; 0, cos], which also stretches the rows by 1/cos: the meaning of shear
    in scikit-image up to 0.19 and in the published data.
    """
    sine, cosine = np.sin(p.angle * side), np.cos(p.angle * side)
    one, zero = np.ones_like(sine), np.zeros_like(sine)
    matrices = np.array([[one, -sine], [zero, cosine]]).transpose(2, 0, 1)
    return about_center(images, matrices, ops)
