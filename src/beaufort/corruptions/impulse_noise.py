"""Impulse noise: dead and stuck values, salt and pepper in color."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.arrays import Bytes, Field
from beaufort.corruptions._corruption import Pixels, corruption
from beaufort.corruptions._grain import coarse_shape, enlarge
from beaufort.ops import Ops
from beaufort.rng import Random


class Params(NamedTuple):
    """How many values are hit."""

    share: float
    """Probability of a value to be replaced."""
    grain: Pixels = 1.0
    """Side of the squares that are hit together."""


class Hits(NamedTuple):
    """Which values are replaced, and which of those by white."""

    replaced: Field
    salt: Field


def draw(random: Random, images: Bytes, p: Params) -> Hits:
    """Two coins a value."""
    shape = coarse_shape(images, p.grain)
    return Hits(random.bernoulli(shape, p.share), random.bernoulli(shape, 0.5))


_KEPT = (np.arange(256) / 255 * 255).astype(np.uint8)
"""A value there and back through [0, 1]: truncation lowers some by one, as published."""
_SAME = np.arange(256, dtype=np.uint8)


@corruption(
    "noise",
    draw=draw,
    levels={
        "imagenet": [Params(a) for a in (0.03, 0.06, 0.09, 0.17, 0.27)],
        "inception": [Params(a) for a in (0.04, 0.07, 0.10, 0.18, 0.28)],
        "tiny": [Params(a) for a in (0.01, 0.02, 0.05, 0.08, 0.14)],
        "cifar": [Params(a) for a in (0.01, 0.02, 0.03, 0.05, 0.07)],
    },
)
def impulse_noise(images: Bytes, p: Params, hits: Hits, ops: Ops) -> Bytes:
    """Set some values of single channels to white or black."""
    replaced, salt = (enlarge(field, images, p.grain) for field in hits)
    return ops.replace(images, replaced, salt, _KEPT)


@impulse_noise.at(
    "mnist", draw=draw, levels=[Params(a) for a in (0.03, 0.06, 0.09, 0.17, 0.27)], published=4
)
def digits(images: Bytes, p: Params, hits: Hits, ops: Ops) -> Bytes:
    """As for photos, rounded: what is not hit stays as it is."""
    return ops.replace(images, *hits, _SAME)
