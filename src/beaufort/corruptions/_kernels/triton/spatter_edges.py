"""Edges of 8-bit images and the distance to them as Triton kernels.

A program works on a run of pixels of one image, or on a row.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 512


@triton.jit
def _slopes(images, out, height, width, block: tl.constexpr):
    """|dx| + |dy| in the lower 12 bits, and above them where to: 0 row, 1 column, 2 falling, 3 rising."""
    image = tl.program_id(0).to(tl.int64) * height * width
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < height * width
    y, x = at // width, at % width
    top, low = tl.maximum(y - 1, 0) * width, tl.minimum(y + 1, height - 1) * width
    left, right = tl.maximum(x - 1, 0), tl.minimum(x + 1, width - 1)
    here = y * width
    source = images + image
    a = tl.load(source + top + left, mask=written, other=0).to(tl.int32)
    b = tl.load(source + top + x, mask=written, other=0).to(tl.int32)
    c = tl.load(source + top + right, mask=written, other=0).to(tl.int32)
    d = tl.load(source + here + left, mask=written, other=0).to(tl.int32)
    f = tl.load(source + here + right, mask=written, other=0).to(tl.int32)
    g = tl.load(source + low + left, mask=written, other=0).to(tl.int32)
    h = tl.load(source + low + x, mask=written, other=0).to(tl.int32)
    i = tl.load(source + low + right, mask=written, other=0).to(tl.int32)
    across = (c + 2 * f + i) - (a + 2 * d + g)
    down = (g + 2 * h + i) - (a + 2 * b + c)
    wide = tl.abs(across)
    flat, rise = wide * 13573, tl.abs(down) << 15
    diagonal = tl.where((across ^ down) < 0, 3, 2)
    way = tl.where(rise < flat, 0, tl.where(rise > flat + (wide << 16), 1, diagonal))
    tl.store(out + image + at, (wide + tl.abs(down) + (way << 12)).to(tl.int16), mask=written)


@triton.jit
def _thin(slopes, out, height, width, low, high, block: tl.constexpr):
    """Labels of the pixels that are steeper than the two beside them along the slope."""
    image = tl.program_id(0).to(tl.int64) * height * width
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < height * width
    y, x = at // width, at % width
    packed = tl.load(slopes + image + at, mask=written, other=0).to(tl.int32)
    slope, way = packed & 4095, packed >> 12
    chosen = written & (slope > low)
    down = tl.where(way == 0, 0, 1)
    right = tl.where(way == 1, 0, tl.where(way == 3, -1, 1))
    before = chosen & (y >= down) & (x >= right) & (x - right < width)
    after = chosen & (y + down < height) & (x + right >= 0) & (x + right < width)
    step = down * width + right
    first = tl.load(slopes + image + at - step, mask=before, other=0).to(tl.int32) & 4095
    second = tl.load(slopes + image + at + step, mask=after, other=0).to(tl.int32) & 4095
    steepest = chosen & (slope > first) & ((slope > second) | ((way < 2) & (slope == second)))
    label = tl.where(steepest, tl.where(slope > high, 2, 1), 0)
    tl.store(out + image + at, label.to(tl.uint8), mask=written)


def candidates(images: Tensor, low: int, high: int) -> Tensor:
    """Labels for `connect`: 1 where the slope is above `low` and steepest, 2 where it is above `high` too."""
    count, height, width = images.shape
    slopes = torch.empty(images.shape, dtype=torch.int16, device=images.device)
    labels = torch.empty_like(images)
    grid = (count, triton.cdiv(height * width, _BLOCK))
    _slopes[grid](images, slopes, height, width, _BLOCK, enable_fp_fusion=False)
    _thin[grid](slopes, labels, height, width, low, high, _BLOCK, enable_fp_fusion=False)
    return labels


@triton.jit
def _largest(a, b):
    return tl.maximum(a, b)


@triton.jit
def _smallest(a, b):
    return tl.minimum(a, b)


@triton.jit
def _aside(labels, out, height, width, reach, block: tl.constexpr):
    """One row: how many columns the nearest 2 is off."""
    row = tl.program_id(0).to(tl.int64) * height + tl.program_id(1)
    x = tl.arange(0, block)
    edge = tl.load(labels + row * width + x, mask=x < width, other=0) == 2
    before = tl.associative_scan(tl.where(edge, x, -reach), 0, _largest)
    after = tl.associative_scan(tl.where(edge, x, width + reach), 0, _smallest, reverse=True)
    columns = tl.minimum(tl.minimum(x - before, after - x), reach)
    tl.store(out + row * width + x, columns.to(tl.uint8), mask=x < width)


@triton.jit
def _nearest(aside, table, out, height, width, reach: tl.constexpr, block: tl.constexpr):
    """The nearest of the nearest pixels of all rows around."""
    image = tl.program_id(0).to(tl.int64) * height * width
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < height * width
    y = at // width
    columns = tl.load(aside + image + at, mask=written, other=0).to(tl.int32)
    nearest = tl.load(table + columns)
    for rows in range(1, reach):
        above = tl.load(aside + image + at - rows * width, mask=written & (y >= rows), other=reach)
        below = tl.load(aside + image + at + rows * width, mask=written & (y + rows < height), other=reach)
        columns = tl.minimum(above.to(tl.int32), below.to(tl.int32))
        nearest = tl.minimum(nearest, tl.load(table + rows * (reach + 1) + columns))
    tl.store(out + image + at, nearest, mask=written)


def depths(labels: Tensor, table: Tensor) -> Tensor:
    """As `depths` in torch; `table` holds the distances by rows and columns."""
    count, height, width = labels.shape
    reach = len(table) - 1
    aside = torch.empty_like(labels)
    out = torch.empty(labels.shape, dtype=torch.float32, device=labels.device)
    block = triton.next_power_of_2(width)
    _aside[(count, height)](
        labels,
        aside,
        height,
        width,
        reach,
        block,
        num_warps=max(1, min(8, block // 128)),
        enable_fp_fusion=False,
    )
    grid = (count, triton.cdiv(height * width, _BLOCK))
    _nearest[grid](aside, table, out, height, width, reach, _BLOCK, enable_fp_fusion=False)
    return out
