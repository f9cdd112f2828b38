"""Zooms into the middle as a Triton kernel: each pixel is read at many places and averaged."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from beaufort.corruptions._kernels.triton.tiles import (
    EXACTLY,
    as_float,
    row_grid,
    row_tile,
    to_byte,
)


@triton.jit
def _between(upper, lower, left, further, t, s, CHANNELS: tl.constexpr):
    """Between four neighbors: s of the way to the right, t of the way down."""
    a, c = as_float(tl.load(upper + left)), as_float(tl.load(lower + left))
    b = as_float(tl.load(upper + left + CHANNELS, further, 0))
    d = as_float(tl.load(lower + left + CHANNELS, further, 0))
    a, b = tl.fma(c - a, t, a), tl.fma(d - b, t, b)
    return tl.fma(b - a, s, a)


@triton.jit(do_not_specialize=["height", "width"])
def _zoom_average(
    images, rows, row_weight, columns, column_weight, out, height, width, factors, mean,
    CHANNELS: tl.constexpr, NEAREST: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    """A pixel at a time, because its channels weight their places."""
    image, y, x, inside = row_tile(height, width, BW)
    images += image * height * width * CHANNELS
    here = images + (y * width + x) * CHANNELS
    first = as_float(tl.load(here, inside, 0))
    second, third = first, first
    if CHANNELS == 3:
        second, third = as_float(tl.load(here + 1, inside, 0)), as_float(tl.load(here + 2, inside, 0))
    column = tl.minimum(x, width - 1)
    for j in range(factors):
        top = tl.load(rows + j * height + y)
        upper = images + top * (width * CHANNELS)
        lower = images + tl.minimum(top + 1, height - 1) * (width * CHANNELS)
        t = tl.load(row_weight + j * height + y)
        left = tl.load(columns + j * width + column)
        s = tl.load(column_weight + j * width + column)
        further = left + 1 < width  # 0 right of the last column
        left *= CHANNELS
        first += _between(upper, lower, left, further, t, s, CHANNELS)
        if CHANNELS == 3:
            second += _between(upper + 1, lower + 1, left, further, t, s, CHANNELS)
            third += _between(upper + 2, lower + 2, left, further, t, s, CHANNELS)
    out += (image * height * width + y * width + x) * CHANNELS
    tl.store(out, to_byte(first * mean, NEAREST), inside)
    if CHANNELS == 3:
        tl.store(out + 1, to_byte(second * mean, NEAREST), inside)
        tl.store(out + 2, to_byte(third * mean, NEAREST), inside)


def zoom_average(images: Tensor, tables: Sequence[Tensor], mean: float, *, nearest: bool) -> Tensor:
    """As `Ops.zoom_average`; the tables are `(factors, side)`: for rows the one before and the weight of
    the next, then for columns.
    """
    count, height, width, channels = images.shape
    out = torch.empty_like(images)
    grid, shape = row_grid(count, height, width)
    _zoom_average[grid](
        images, *tables, out, height, width, len(tables[0]), mean,
        CHANNELS=channels, NEAREST=nearest, **shape, **EXACTLY,
    )  # fmt: skip
    return out
