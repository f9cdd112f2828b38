"""Shot noise: the image is made of a small number of photons."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Bytes, Field, Images, Ops, Pixels, Random, corruption
from beaufort.corruptions._grain import coarse_shape, enlarge, sample
from beaufort.corruptions._kernels import ops_of


class Params(NamedTuple):
    """Amount of light."""

    photons: float
    """Mean count of a white value."""
    grain: Pixels = 1.0
    """Side of the squares that share one count."""


def draw(random: Random, images: Images, p: Params, *, nearest: bool = False) -> Field:
    """Draw the noisy value of each value, or the deviation per grain if grains are larger than a pixel."""
    if coarse_shape(images, p.grain) == images.shape[1:]:
        return random.poisson_levels(images, p.photons, _levels(p.photons, nearest))
    middle = sample(images, p.grain)
    return ops_of(images).excess(random.poisson(middle, p.photons), p.photons, middle)


@lru_cache(maxsize=64)
def _levels(photons: float, nearest: bool) -> Bytes:
    """Return the 8-bit value of each count up to the first that is white."""
    value = np.minimum(np.arange(math.ceil(photons) + 1) / photons, 1) * 255
    return (np.rint(value) if nearest else value).astype(np.uint8)


_PHOTOS = [Params(c) for c in (60, 25, 12, 5, 3)]


@corruption(
    "noise",
    draw=draw,
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(c) for c in (50, 20, 10, 5, 3)],
        "tiny": [Params(c) for c in (250, 100, 50, 30, 15)],
        "cifar": [Params(c) for c in (500, 250, 100, 75, 50)],
    },
)
def shot_noise(images: Images, p: Params, drawn: Field, ops: Ops) -> Images:
    """Replace each value by a Poisson count with that mean.

    With grains larger than a pixel, the deviation at the middle of a grain is added to all of its pixels.
    """
    if drawn.shape == images.shape:
        return drawn
    return ops.add_noise(images, enlarge(drawn, images, p.grain), 1.0)


shot_noise.for_digits(_PHOTOS, published=5, draw=partial(draw, nearest=True))
