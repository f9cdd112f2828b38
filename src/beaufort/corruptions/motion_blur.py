"""Motion blur: the camera moved while the shutter was open."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Pixels, Random, corruption


class Params(NamedTuple):
    """Motion of the camera."""

    radius: Pixels
    """Half the length of the kernel."""
    sigma: Pixels
    """Standard deviation of the half Gaussian along the kernel."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw a direction in degrees, at most 45° off the horizontal."""
    return random.host.uniform((), -45, 45, np.float64)


_PHOTOS = [Params(10, 3), Params(15, 5), Params(15, 8), Params(15, 12), Params(20, 15)]


@corruption(
    "blur",
    draw=draw,
    bulk=1,  # only a few numbers per image are drawn
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(12, 4), Params(17, 6), Params(17, 9), Params(17, 13), Params(22, 16)],
        "tiny": [Params(10, 1), Params(10, 1.5), Params(10, 2), Params(10, 2.5), Params(12, 3)],
        "cifar": [Params(6, 1), Params(6, 1.5), Params(6, 2), Params(8, 2), Params(9, 2.5)],
        "mnist": _PHOTOS,
    },
)
def motion_blur(images: Images, p: Params, angles_deg: Array, ops: Ops) -> Images:
    """Blur the image in one direction along a straight line."""
    return ops.motion(images, p.radius, p.sigma, angles_deg)
