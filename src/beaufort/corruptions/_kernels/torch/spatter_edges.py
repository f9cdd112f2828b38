"""Edges of 8-bit images and the distance to them, as OpenCV has them, in torch."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.torch.canny_edges import connect, framed


def canny(images: Tensor, low: int, high: int) -> Tensor:
    """Canny's edges of uint8 images `(n, h, w)`: Sobel's slopes, |dx| + |dy|; uint8, 2 on an edge."""
    if kernels := triton_kernels("spatter_edges", images):
        return connect(kernels.candidates(images, low, high))
    height, width = images.shape[1:]
    wide = framed(images, "nearest").int()
    lines = wide[:, :-2] + 2 * wide[:, 1:-1] + wide[:, 2:]
    across = lines[:, :, 2:] - lines[:, :, :-2]
    lines = wide[:, :, :-2] + 2 * wide[:, :, 1:-1] + wide[:, :, 2:]
    down = lines[:, 2:] - lines[:, :-2]
    slope = across.abs() + down.abs()
    around = torch.nn.functional.pad(slope, (1, 1, 1, 1))

    def beats(down: int, right: int) -> Tensor:
        return slope > around[:, 1 + down : 1 + down + height, 1 + right : 1 + right + width]

    # tan 22.5° in 15 bits; tan 67.5° is 2 more. Of two equal neighbors on a row or a column one is an edge.
    flat, rise = across.abs() * 13573, down.abs() << 15
    on_row = beats(0, -1) & (slope >= around[:, 1:-1, 2:])
    on_column = beats(-1, 0) & (slope >= around[:, 2:, 1:-1])
    falling = beats(-1, -1) & beats(1, 1)
    rising = beats(-1, 1) & beats(1, -1)
    diagonal = torch.where((across ^ down) < 0, rising, falling)
    steepest = torch.where(rise > flat + (across.abs() << 16), on_column, diagonal)
    steepest = torch.where(rise < flat, on_row, steepest)
    return connect((steepest & (slope > low)).byte() + (steepest & (slope > high)).byte())


REACH = 20
"""Distance, in pixels, at which depths end."""


def depths(labels: Tensor) -> Tensor:
    """Return the distance of each pixel to the nearest 2, at most 20, float32.

    It is measured in steps of 1 to a side, 1.4 across a corner, and 2.1969 like a knight in chess. The
    fewer columns off an edge pixel of a row is, the nearer it is, so that one a row is looked at.
    """
    table = constant(_steps(), labels.device)
    if kernels := triton_kernels("spatter_edges", labels):
        return kernels.depths(labels, table)
    height, width = labels.shape[1:]
    x = torch.arange(width, device=labels.device)
    before = torch.where(labels == 2, x, -REACH).cummax(2).values
    after = torch.where(labels == 2, x, width + REACH).flip(2).cummin(2).values.flip(2)
    aside = torch.minimum(x - before, after - x).clamp(max=REACH)
    aside = torch.nn.functional.pad(aside, (0, 0, REACH, REACH), value=REACH)
    nearest = table[0][aside[:, REACH : REACH + height]]
    for rows in range(1, REACH):
        above, below = aside[:, REACH - rows :][:, :height], aside[:, REACH + rows :][:, :height]
        nearest = torch.minimum(nearest, table[rows][torch.minimum(above, below)])
    return nearest


@lru_cache(maxsize=1)
def _steps() -> NDArray[np.float32]:
    """The distance of two pixels by how many rows and columns they are apart, at most 20.

    Straight steps are added up first, knights' last, in float32, as OpenCV's scans mostly have them.
    """
    table = np.zeros((REACH + 1, REACH + 1), np.float32)
    for rows, columns in np.ndindex(*table.shape):
        long, short = max(rows, columns), min(rows, columns)
        knights = min(short, long - short)
        distance = np.float32(0)
        for step in [1.0] * (long - short - knights) + [1.4] * (short - knights) + [2.1969] * knights:
            distance += np.float32(step)
        table[rows, columns] = min(distance, np.float32(REACH))
    return table
