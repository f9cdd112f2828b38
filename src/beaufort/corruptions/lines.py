"""Lines: thin gray strokes across the image."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption


class Params(NamedTuple):
    """Number of lines."""

    magnitude: float
    """Number of lines: a tenth of this times the short side, truncated."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw end points as (row, column, row, column), `(n, lines, 4)`."""
    (height, width), host = images.shape[1:3], random.host
    side = min(height, width)
    angle = host.uniform((), 0, 2 * np.pi, np.float64)
    spread = host.uniform((), 0.1, 1, np.float64)
    bulk = host.reseeded()
    u = bulk.uniform((max(1, int(0.1 * p.magnitude * side)), 3), 0, 1, np.float64)
    angles = angle[:, None] + 2 * np.pi * spread[:, None] * (u[..., 2] - 0.5)
    across = np.stack([np.cos(angles), np.sin(angles)], axis=-1) * np.hypot(height, width) / np.sqrt(2)
    middle = u[..., :2] * (height, width)
    ends: Array = np.concatenate([middle - across, middle + across], axis=-1).astype(np.int64)
    return ends


@corruption("unseen", draw=draw, levels={"cifar": [Params(m) for m in (0.5, 1, 1.5, 2, 2.5)]})
def lines(images: Images, p: Params, ends: Array, ops: Ops) -> Images:
    """Draw antialiased lines in middle gray, one after the other."""
    return ops.gray_lines(images, ends)
