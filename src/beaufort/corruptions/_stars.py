"""A star: rays of random length around a point."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from beaufort.arrays import Array, Images
from beaufort.ops import Ops
from beaufort.rng import HostRandom

__all__ = ["Star", "draw_counts", "draw_lengths", "glow"]


class Star(NamedTuple):
    """One star an image."""

    center: Array
    """Row and column in pixels, `(n, 2)`."""
    counts: Array
    """How many rays it has, `(n,)`."""
    lengths: Array
    """Of the rays, in pixels, `(n, most)`; only as many count as there are rays."""


def draw_counts(random: HostRandom, *shape: int) -> Array:
    """Between 50 and 199 rays."""
    return random.integers(shape, 50, 200)


def draw_lengths(random: HostRandom, counts: Array, length: float) -> Array:
    """The lengths of the rays: normal, by a quarter around the mean."""
    return length + 0.25 * length * random.normal((int(counts.max()),), np.float64)


def glow(images: Images, star: Star, exponent: float, ops: Ops) -> Any:
    """How bright the star is at each pixel, from 0 to 1, `(n, h, w)`."""
    rows, columns = ops.grid(images)
    row, column = (ops.lift(star.center[:, k, None, None], images) for k in (0, 1))
    counts = ops.lift(star.counts.astype(np.int64)[:, None, None], images)
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
