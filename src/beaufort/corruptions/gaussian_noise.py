"""Gaussian noise: the grain of a sensor in low light."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Field, Images, Ops, Pixels, corruption
from beaufort.corruptions._grain import draw_normals, enlarge


class Params(NamedTuple):
    """Strength of the noise."""

    sigma: float
    """Standard deviation; the intensity range is [0, 1]."""
    grain: Pixels = 1.0
    """Side of the squares that share one value."""


_PHOTOS = [Params(s) for s in (0.08, 0.12, 0.18, 0.26, 0.38)]


@corruption(
    "noise",
    draw=draw_normals,
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(s) for s in (0.09, 0.13, 0.19, 0.27, 0.40)],
        "tiny": [Params(s) for s in (0.04, 0.08, 0.12, 0.15, 0.18)],
        "cifar": [Params(s) for s in (0.04, 0.06, 0.08, 0.09, 0.10)],
    },
)
def gaussian_noise(images: Images, p: Params, noise: Field, ops: Ops, *, nearest: bool = False) -> Images:
    """Add independent normal noise to every channel of every pixel."""
    return ops.add_noise(images, enlarge(noise, images, p.grain), p.sigma, nearest=nearest)


gaussian_noise.for_digits(_PHOTOS, published=5, nearest=True)
