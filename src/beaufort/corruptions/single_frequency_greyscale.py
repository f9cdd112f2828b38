"""Single frequency greyscale: one gray wave across the image."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption
from beaufort.corruptions.rng import draw_permutations


class Params(NamedTuple):
    """Strength of the wave."""

    magnitude: float
    """Amplitude in units of 19.6 levels."""


class Wave(NamedTuple):
    """Wave of each image."""

    frequencies: Array
    """Horizontal and vertical frequency in radians per pixel, `(n, 2)`."""
    phase: Array


def draw(random: Random, images: Images, p: Params) -> Wave:
    """Draw a frequency, a lower one, their order, and a phase."""
    host = random.host
    high = host.uniform((), -np.pi, np.pi, np.float64)
    low = np.abs(high) * host.uniform((), -1, 1, np.float64)
    pair = np.take_along_axis(np.stack([high, low], axis=1), draw_permutations(host, 2), axis=1)
    return Wave(pair, host.uniform((), 0, 2 * np.pi, np.float64))


@corruption("unseen", draw=draw, levels={"imagenet": [Params(m) for m in (1, 1.5, 2, 4.5, 5)]})
def single_frequency_greyscale(images: Images, p: Params, drawn: Wave, ops: Ops) -> Images:
    """Add the same plane wave to all channels."""
    across, down = (ops.lift(drawn.frequencies[:, k, None, None], images) for k in (0, 1))
    rows, columns = ops.grid(images)
    wave = ops.sin(across * columns + down * rows + ops.lift(drawn.phase[:, None, None], images))
    return ops.to_bytes(ops.real(images) + 19.6 * p.magnitude * wave[..., None])
