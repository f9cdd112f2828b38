"""Sparkles: five bright stars."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption
from beaufort.corruptions.rng import HostRandom

_STARS = 5

_MOST = 199
"""Rays of a star."""


class Params(NamedTuple):
    """How large the stars are."""

    magnitude: float
    """Their rays are 1 percent of the short side long for each unit."""


class Star(NamedTuple):
    """One star an image."""

    center: Array
    """Row and column in pixels, `(n, 2)`."""
    counts: Array
    """How many rays it has, `(n,)`."""
    lengths: Array
    """Of the rays, in pixels, `(n, 199)`; only as many count as there are rays."""


def draw_stars(random: HostRandom, centers: Array, length: float) -> list[Star]:
    """One star an image for each center, `(n, stars, 2)`, whose rays are about `length` long.

    The lengths are one sequence: a star begins where the one before it ends. It is drawn for the most rays
    that there can be, so that an image's numbers do not depend on the batch.
    """
    bulk = random.reseeded()
    stars = centers.shape[1]
    counts = random.integers((stars,), 50, 200).astype(np.int64)
    normal = bulk.normal((stars * _MOST,), np.float64)
    first = np.cumsum(counts, axis=1) - counts
    found = []
    for k in range(stars):
        own = np.take_along_axis(normal, first[:, k, None] + np.arange(_MOST), axis=1)
        found.append(Star(centers[:, k], counts[:, k], length + 0.25 * length * own))
    return found


def glow(images: Images, star: Star, exponent: float, ops: Ops) -> Any:
    """How bright the star is at each pixel, from 0 to 1, `(n, h, w)`."""
    rows, columns = ops.grid(images)
    row, column = (ops.lift(star.center[:, k, None, None], images) for k in (0, 1))
    counts = ops.lift(star.counts[:, None, None], images)
    down, across = rows - row, columns - column
    turn = (ops.arctan2(across, down) + np.pi) / (2 * np.pi) * counts
    before = ops.floor(turn)
    part = turn - before
    lengths = ops.lift(star.lengths, images)
    image = ops.lift(np.arange(len(star.counts))[:, None, None], images)
    ray = ops.whole(before)
    first, second = lengths[image, ray % counts], lengths[image, (ray + 1) % counts]
    length = first + part * (second - first)
    reach = length**2 / (down**2 + across**2 + 1e-4)
    reach = reach if exponent == 1 else ops.power(reach, exponent)
    return ops.clip((1 - (part - 0.5) ** 2) * reach, 0, 1)


def draw(random: Random, images: Images, p: Params) -> list[Star]:
    """Where the stars are, and their rays."""
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
    """Lighten the picture toward white along the rays of five stars."""
    out = ops.real(images)
    for star in stars:
        before = ops.real(ops.real(out, np.float32))
        out = before + glow(images, star, 1, ops)[..., None] * (255 - before)
    return ops.to_bytes(out)
