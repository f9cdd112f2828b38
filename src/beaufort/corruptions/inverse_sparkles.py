"""Inverse sparkles: the image is seen through a star, and white outside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Images, Ops, Random, corruption
from beaufort.corruptions._geometry import Star, draw_stars, glow


class Params(NamedTuple):
    """Sharpness of the edge."""

    magnitude: float
    """Exponent of the decrease outside the star, in units of 0.13."""


def draw(random: Random, images: Images, p: Params) -> Star:
    """Draw the center and the rays of the star, about a quarter of the short side long."""
    host, (height, width) = random.host, images.shape[1:3]
    center = host.uniform((1, 2), 0.25, 0.75, np.float64) * (height, width)
    return draw_stars(host, center, 0.25 * min(height, width))[0]


@corruption(
    "unseen",
    draw=draw,
    levels={
        "imagenet": [Params(m) for m in (1, 2, 4, 9, 10)],
        "cifar": [Params(m) for m in (1, 1.5, 2.5, 4.5, 5)],
    },
)
def inverse_sparkles(images: Images, p: Params, star: Star, ops: Ops) -> Images:
    """Fade to white outside a star."""
    weight = glow(images, star, 0.13 * p.magnitude, ops)[..., None]
    return ops.to_bytes(255 + weight * (ops.real(images) - 255))
