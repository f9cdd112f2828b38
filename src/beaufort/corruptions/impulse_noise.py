"""Impulse noise: dead and stuck values, salt and pepper in color."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Field, Images, Ops, Pixels, Random, corruption
from beaufort.corruptions._grain import coarse_shape, enlarge


class Params(NamedTuple):
    """Number of replaced values."""

    share: float
    """Probability that a value is replaced; the name is part of fingerprints."""
    grain: Pixels = 1.0
    """Side of the squares that are replaced together."""


def draw(random: Random, images: Images, p: Params) -> Field:
    """Draw the fate of each value: 0 to keep it, 1 for black, 2 for white."""
    return random.impulses(coarse_shape(images, p.grain), p.share)


_PHOTOS = [Params(a) for a in (0.03, 0.06, 0.09, 0.17, 0.27)]


@corruption(
    "noise",
    draw=draw,
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(a) for a in (0.04, 0.07, 0.10, 0.18, 0.28)],
        "tiny": [Params(a) for a in (0.01, 0.02, 0.05, 0.08, 0.14)],
        "cifar": [Params(a) for a in (0.01, 0.02, 0.03, 0.05, 0.07)],
    },
)
def impulse_noise(images: Images, p: Params, hits: Field, ops: Ops) -> Images:
    """Set some values of single channels to white or black."""
    return ops.replace(images, enlarge(hits, images, p.grain))


impulse_noise.for_digits(_PHOTOS, published=4)
