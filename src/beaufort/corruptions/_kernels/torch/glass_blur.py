"""Sweeps in which pixels take the place of others, sequentially defined and computed in parallel.

A copy can be followed back: what a pixel shows after a sweep is what its source showed then, if the sweep had
come by the source before, else what the source showed a sweep ago. Every pixel follows its own trail to the
pixel of the image that it ends at, and no two have to wait for each other.
"""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside
from beaufort.corruptions._kernels import triton_kernels


def copy_sweeps(images: Tensor, offsets: Tensor | NDArray[Any], distance: int) -> Tensor:
    offsets = beside(offsets, images)
    if kernels := triton_kernels("glass_blur", images):
        return kernels.copy_sweeps(images, offsets, distance)
    count, height, width, channels = images.shape
    sweeps, rows, columns = offsets.shape[1:4]
    moves = offsets.reshape(count, sweeps * rows * columns, 2)
    # Rows and columns are counted in the order of the visits, from the last pixel that is moved.
    row = (height - distance - torch.arange(height, device=images.device))[:, None].expand(height, width)
    column = (width - distance - torch.arange(width, device=images.device)).expand(height, width)
    row, column = (at.reshape(1, -1).repeat(count, 1) for at in (row, column))
    sweep = torch.full_like(row, sweeps - 1)
    while True:
        moved = (sweep >= 0) & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        if not moved.any():
            break
        visit = torch.where(moved, (sweep * rows + row) * columns + column, 0)
        right, down = moves.gather(1, visit[..., None].expand(-1, -1, 2)).long().unbind(-1)
        before = (down > 0) | ((down == 0) & (right > 0))
        row, column = torch.where(moved, row - down, row), torch.where(moved, column - right, column)
        sweep = torch.where(moved & ~before, sweep - 1, sweep)
    source = (height - distance - row) * width + width - distance - column
    pixels = images.reshape(count, height * width, channels)
    return pixels.gather(1, source[..., None].expand(-1, -1, channels)).reshape(images.shape)


def swap_sweeps(
    images: Tensor, gates: Tensor | NDArray[Any], offsets: Tensor | NDArray[Any], distance: int
) -> Tensor:
    gates, offsets = beside(gates, images), beside(offsets, images)
    if kernels := triton_kernels("glass_blur", images):
        return kernels.swap_sweeps(images, gates, offsets, distance)
    count, height, width, channels = images.shape
    out = images.reshape(count, height * width, channels).clone()
    rows, columns = gates.shape[2:]
    right, down = offsets.long().unbind(-1)
    there = (down * width + right) * gates  # a closed gate: swapped with itself
    # A visit reaches less than 2d columns away: a row may start when the one before is 2d ahead.
    lag = 2 * distance
    for sweep in range(gates.shape[1]):
        for step in range(columns + lag * (rows - 1)):
            first, last = max(0, -(-(step - columns + 1) // lag)), min(rows - 1, step // lag)
            row = torch.arange(first, last + 1, device=images.device)
            column = step - lag * row
            here = ((height - distance - row) * width + width - distance - column).expand(count, -1)
            other = here + there[:, sweep, row, column]
            here, other = (at[..., None].expand(-1, -1, channels) for at in (here, other))
            values, others = out.gather(1, here), out.gather(1, other)
            out.scatter_(1, other, values)
            out.scatter_(1, here, others)
    return out.reshape(images.shape)
