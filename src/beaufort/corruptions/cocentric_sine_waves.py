"""Cocentric sine waves: wavy rings around a point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption


class Params(NamedTuple):
    """Strength of the rings."""

    magnitude: float
    """Range in units of 12.8 levels."""


class Rings(NamedTuple):
    """Rings of each image; lengths are fractions of the short side, the center of width and height."""

    column: Array
    row: Array
    waves: Array
    """Number of waves around the center; it is not an integer, so there is a seam."""
    depth: Array
    """Amplitude of the waves."""
    width: Array
    """Width of a ring."""


def draw(random: Random, images: Images, p: Params) -> Rings:
    """Draw the center and the shape of the rings."""
    return Rings(*(random.host.uniform((), 0, high, np.float64) for high in (1, 1, 10, 0.1, 0.1)))


@corruption("unseen", draw=draw, levels={"imagenet": [Params(m) for m in (3, 5, 8, 9, 10)]})
def cocentric_sine_waves(images: Images, p: Params, drawn: Rings, ops: Ops) -> Images:
    """Add rings with a sawtooth profile (despite the name) to all channels."""
    height, width = images.shape[1:3]
    side = min(height, width)
    column, row, waves, depth, ring = (
        ops.lift(np.maximum(one * unit, 1e-9)[:, None, None], images)
        for one, unit in zip(drawn, (width, height, 1, side, side), strict=True)
    )
    rows, columns = ops.grid(images)
    down, across = rows - row, columns - column
    distance = ops.sqrt(across**2 + down**2) + depth * ops.sin(waves * ops.arctan2(across, down))
    saw = distance % ring / ring - 0.5
    return ops.to_bytes(ops.real(images) + 12.8 * p.magnitude * saw[..., None])
