"""Speckle noise: noise that is stronger where the image is bright."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Field, Images, Ops, Pixels, corruption
from beaufort.corruptions._grain import draw_normals, enlarge


class Params(NamedTuple):
    """Strength of the noise."""

    sigma: float
    """Standard deviation as a fraction of the pixel value."""
    grain: Pixels = 1.0
    """Side of the squares that share one value."""


_PHOTOS = [Params(s) for s in (0.15, 0.2, 0.35, 0.45, 0.6)]


@corruption(
    "noise",
    draw=draw_normals,
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(s) for s in (0.16, 0.21, 0.36, 0.46, 0.61)],
        "tiny": [Params(s) for s in (0.15, 0.2, 0.25, 0.3, 0.35)],
        "cifar": [Params(s) for s in (0.06, 0.1, 0.12, 0.16, 0.2)],
    },
)
def speckle_noise(images: Images, p: Params, noise: Field, ops: Ops, *, nearest: bool = False) -> Images:
    """Add normal noise proportional to each value."""
    return ops.multiply_noise(images, enlarge(noise, images, p.grain), p.sigma, nearest=nearest)


speckle_noise.for_digits(_PHOTOS, published=5, nearest=True)
