"""Sparkles: five bright stars."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Images, Ops, Random, corruption
from beaufort.corruptions._geometry import Star, draw_stars, glow

_STARS = 5


class Params(NamedTuple):
    """Size of the stars."""

    magnitude: float
    """Length of the rays in percent of the short side."""


def draw(random: Random, images: Images, p: Params) -> list[Star]:
    """Draw the centers and rays of the stars."""
    host, (height, width) = random.host, images.shape[1:3]
    centers = host.uniform((_STARS, 2), 0, 1, np.float64) * (height, width)
    stars = draw_stars(host, centers, 0.01 * p.magnitude * min(height, width))
    return [star._replace(lengths=np.maximum(1, star.lengths)) for star in stars]


@corruption(
    "unseen",
    draw=draw,
    levels={
        "imagenet": [Params(m) for m in (1, 2, 3, 5, 6)],
        "cifar": [Params(m) for m in (0.7, 3.5, 5.6, 6.3, 7)],
    },
)
def sparkles(images: Images, p: Params, stars: list[Star], ops: Ops) -> Images:
    """Lighten the image toward white along the rays of five stars."""
    out = ops.real(images)
    for star in stars:
        before = ops.real(ops.real(out, np.float32))
        out = before + glow(images, star, 1, ops)[..., None] * (255 - before)
    return ops.to_bytes(out)
