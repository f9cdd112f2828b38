"""Cocentric sine waves: rings around a point, wavy themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption


class Params(NamedTuple):
    """How strong the rings are."""

    magnitude: float
    """12.8 levels from the darkest to the brightest, for each unit."""


class Rings(NamedTuple):
    """Of each image; lengths as shares of the short side, the center as one of the width and height."""

    column: Array
    row: Array
    waves: Array
    """On one turn around the center; not an integer, so there is a seam."""
    depth: Array
    """Of the waves."""
    width: Array
    """Of a ring."""


def draw(random: Random, images: Images, p: Params) -> Rings:
    """The center, and three numbers."""
    return Rings(*(random.host.uniform((), 0, high, np.float64) for high in (1, 1, 10, 0.1, 0.1)))


@corruption("unseen", draw=draw, levels={"imagenet": [Params(m) for m in (3, 5, 8, 9, 10)]})
def cocentric_sine_waves(images: Images, p: Params, drawn: Rings, ops: Ops) -> Images:
    """Add rings to all colors alike. In spite of the name their profile is that of a saw."""
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
