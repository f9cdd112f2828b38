"""Translate: the digit moved toward one of the four corners."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.arrays import Bytes, Field
from beaufort.corruptions._affine import signs
from beaufort.corruptions._corruption import WholePixels, corruption
from beaufort.ops import Ops
from beaufort.rng import Random


class Params(NamedTuple):
    """How far it moves."""

    distance: WholePixels
    """In both directions."""


def draw(random: Random, images: Bytes, p: Params) -> Field:
    """The signs of the horizontal and the vertical move."""
    return signs(random, 2)


@corruption("digits", draw=draw, levels={"mnist": [Params(d) for d in (1, 2, 3, 4, 5)]}, published=3)
def translate(images: Bytes, p: Params, side: Field, ops: Ops) -> Bytes:
    """Sample the image at (x ± d, y ± d), black outside."""
    height, width = images.shape[1:3]
    padded = np.pad(images, ((0, 0), (p.distance, p.distance), (p.distance, p.distance), (0, 0)))
    starts = p.distance * (1 + side)
    return np.stack(
        [image[y : y + height, x : x + width] for image, (x, y) in zip(padded, starts, strict=True)]
    )
