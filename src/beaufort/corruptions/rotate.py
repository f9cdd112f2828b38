"""Rotate: the digit turned to the left or the right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption
from beaufort.corruptions._geometry import about_center, signs


class Params(NamedTuple):
    """How far it is turned."""

    angle: float
    """In radians."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """To which side."""
    return signs(random, 1)[:, 0]


@corruption(
    "digits",
    moves=True,
    draw=draw,
    levels={"mnist": [Params(a) for a in (0.2, 0.4, 0.6, 0.8, 1)]},
    published=2,
)
def rotate(images: Images, p: Params, side: Array, ops: Ops) -> Images:
    """Turn the image about its middle, black outside."""
    sine, cosine = np.sin(p.angle * side), np.cos(p.angle * side)
    matrices = np.array([[cosine, -sine], [sine, cosine]]).transpose(2, 0, 1)
    return about_center(images, matrices, ops)
