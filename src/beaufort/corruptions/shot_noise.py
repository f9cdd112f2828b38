"""Shot noise: light comes in whole photons, and too few of them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Bytes, Field, Images, Ops, Pixels, Random, corruption
from beaufort.corruptions._grain import coarse_shape, enlarge, sample


class Params(NamedTuple):
    """How little light there is."""

    photons: float
    """Mean count of a white value."""
    grain: Pixels = 1.0
    """Side of the squares that share one count."""


def draw(random: Random, images: Images, p: Params) -> Field:
    """What Poisson counts look like, one a value; with grains larger than a pixel, one count a grain."""
    return _draw(random, images, p, nearest=False)


def draw_digits(random: Random, images: Images, p: Params) -> Field:
    """As for photos, rounded."""
    return _draw(random, images, p, nearest=True)


def _draw(random: Random, images: Images, p: Params, *, nearest: bool) -> Field:
    if coarse_shape(images, p.grain) == images.shape[1:]:
        return random.poisson_levels(images, p.photons, _levels(p.photons, nearest))
    return random.poisson(sample(images, p.grain), p.photons)


@lru_cache(maxsize=64)
def _levels(photons: float, nearest: bool) -> Bytes:
    """The 8-bit value of each count up to the first that is white."""
    value = np.minimum(np.arange(math.ceil(photons) + 1) / photons, 1) * 255
    return (np.rint(value) if nearest else value).astype(np.uint8)


@corruption(
    "noise",
    draw=draw,
    levels={
        "imagenet": [Params(c) for c in (60, 25, 12, 5, 3)],
        "inception": [Params(c) for c in (50, 20, 10, 5, 3)],
        "tiny": [Params(c) for c in (250, 100, 50, 30, 15)],
        "cifar": [Params(c) for c in (500, 250, 100, 75, 50)],
    },
)
def shot_noise(images: Images, p: Params, drawn: Field, ops: Ops) -> Images:
    """Replace each value by a Poisson count of photons with that mean.

    With grains larger than a pixel, what the count of the middle pixel differs by is added to all.
    """
    return _render(images, p, drawn, ops)


@shot_noise.at("mnist", draw=draw_digits, levels=[Params(c) for c in (60, 25, 12, 5, 3)], published=5)
def digits(images: Images, p: Params, drawn: Field, ops: Ops) -> Images:
    """As for photos, rounded."""
    return _render(images, p, drawn, ops)


def _render(images: Images, p: Params, drawn: Field, ops: Ops) -> Images:
    if drawn.shape == images.shape:
        return drawn
    excess = ops.excess(drawn, p.photons, sample(images, p.grain))
    return ops.add_noise(images, enlarge(excess, images, p.grain), 1.0)
