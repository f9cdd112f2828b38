"""Snow: flakes in the wind in front of a paler image."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import (
    Array,
    Enlargement,
    Field,
    FractionKept,
    Images,
    Ops,
    Pixels,
    Random,
    corruption,
)
from beaufort.corruptions._sizes import ends


class Params(NamedTuple):
    """Density, size and speed of the flakes."""

    mean: float
    spread: float
    """Mean and standard deviation of the noise that is thresholded to flakes."""
    zoom: Enlargement
    """Enlargement of the noise, which sets the size of flakes."""
    threshold: float
    """Minimum noise value of a flake."""
    radius: Pixels
    sigma: Pixels
    """Motion blur of the flakes."""
    mix: FractionKept
    """Fraction of the image that is not whitened."""


class Smooth(Params):
    """The same constants, with noise enlarged as at the nearest published sizes."""

    __slots__ = ()


class Flakes(NamedTuple):
    """Noise for the flakes, and the wind direction."""

    normals: Field
    angles_deg: Array


def draw(random: Random, images: Images, p: Params) -> Flakes:
    """Draw a normal number per pixel, and a direction within 45° of straight up, in image coordinates."""
    normals = random.normal(images.shape[1:3], np.float64)
    return Flakes(normals, random.host.uniform((), -135, -45, np.float64))


_PHOTOS = [
    Params(0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    Params(0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    Params(0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    Params(0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    Params(0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
]
_SMALL = [
    Params(0.1, 0.2, 1, 0.6, 8, 3, 0.8),
    Params(0.1, 0.2, 1, 0.5, 10, 4, 0.8),
    Params(0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
    Params(0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
    Params(0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
]


@corruption(
    "weather",
    draw=draw,
    smooth=Smooth,
    mixes=True,
    levels={
        "imagenet": _PHOTOS,
        "inception": _PHOTOS,
        "tiny": _SMALL,
        "cifar": [p._replace(mix=mix) for p, mix in zip(_SMALL, (0.95, 0.9, 0.9, 0.85, 0.8), strict=True)],
    },
)
def snow(images: Images, p: Params, flakes: Flakes, ops: Ops, *, nearest: bool = False) -> Images:
    """Whiten the image and add a layer of blurred flakes and the same layer rotated by 180°."""
    like = ends(min(images.shape[1:3])) if isinstance(p, Smooth) else None
    layer = ops.flakes(flakes.normals, p.mean, p.spread, max(p.zoom, 1), p.threshold, like=like)
    blurred = ops.motion(layer, p.radius, p.sigma, flakes.angles_deg)[..., 0]
    return ops.snowfall(images, blurred, p.mix, nearest=nearest)


snow.for_digits(_PHOTOS, published=5, nearest=True)
