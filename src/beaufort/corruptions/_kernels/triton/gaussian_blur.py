"""Gaussian filters as Triton kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant
from beaufort.corruptions._kernels.borders import border_index
from beaufort.corruptions._kernels.triton.tiles import (
    EXACTLY,
    as_float,
    clamped,
    grid_of,
    row_grid,
    row_tile,
    tile,
    to_byte,
)


@triton.jit
def _down(
    fields, taps, index, out, height, width, radius,
    CHANNELS: tl.constexpr, REPEAT: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    """The weighted sum down each column, two pairs at a time, for the columns outside the image too."""
    line = width * CHANNELS
    image, y, x, inside = tile(height, line, BH, BW)
    fields += image * height * line
    middle = tl.load(fields + y * line + x, inside, 0)
    total = tl.load(taps) * (as_float(middle) if middle.dtype == tl.uint8 else middle)
    for k in range(1, radius, 2):
        near = _above_and_below(fields, k, y, x, height, line, index, radius, inside, REPEAT)
        far = _above_and_below(fields, k + 1, y, x, height, line, index, radius, inside, REPEAT)
        total += tl.fma(tl.load(taps + k), near, tl.load(taps + k + 1) * far)
    if radius % 2 == 1:
        near = _above_and_below(fields, radius, y, x, height, line, index, radius, inside, REPEAT)
        total = tl.fma(tl.load(taps + radius), near, total)
    column, channel = x // CHANNELS, x % CHANNELS
    out += (image * height + y) * (line + 2 * radius * CHANNELS)
    tl.store(out + radius * CHANNELS + x, total, inside)
    first = tl.min(x) // CHANNELS
    if (first < radius) | (first + BW >= width - radius):
        if REPEAT:
            for k in range(radius):
                tl.store(out + k * CHANNELS + x, total, inside & (column == 0))
                tl.store(out + (radius + 1 + k) * CHANNELS + x, total, inside & (column == width - 1))
        else:  # reflected repeatedly at both sides
            last = width + 2 * radius
            times = 1 + radius // (2 * width)
            for k in range(-times, times + 1):
                same = radius + 2 * width * k + column
                over = radius + 2 * width * k - 1 - column
                tl.store(out + same * CHANNELS + channel, total, inside & (same >= 0) & (same < last))
                tl.store(out + over * CHANNELS + channel, total, inside & (over >= 0) & (over < last))


@triton.jit
def _above_and_below(fields, k, y, x, height, line, index, radius, inside, REPEAT: tl.constexpr):
    if REPEAT:
        above, below = clamped(y - k, height), clamped(y + k, height)
    else:
        above = tl.load(index + (radius - k) + y, y < height, 0)
        below = tl.load(index + (radius + k) + y, y < height, 0)
    above = tl.load(fields + above * line + x, inside, 0)
    below = tl.load(fields + below * line + x, inside, 0)
    if above.dtype == tl.uint8:
        pair = as_float(above.to(tl.int32) + below.to(tl.int32))
    else:
        pair = above + below
    return pair


@triton.jit(do_not_specialize=["width"])
def _across(
    fields, taps, out, height, width, radius,
    CHANNELS: tl.constexpr, BYTES: tl.constexpr, NEAREST: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    """The weighted sum along each row, of which there are `radius` more columns on both sides."""
    line = width * CHANNELS
    image, y, x, inside = tile(height, line, BH, BW)
    fields += (image * height + y) * (line + 2 * radius * CHANNELS) + radius * CHANNELS + x
    total = tl.load(taps) * tl.load(fields, inside, 0)
    for k in range(1, radius, 2):
        near = tl.load(fields - k * CHANNELS, inside, 0) + tl.load(fields + k * CHANNELS, inside, 0)
        next = (k + 1) * CHANNELS
        far = tl.load(fields - next, inside, 0) + tl.load(fields + next, inside, 0)
        total += tl.fma(tl.load(taps + k), near, tl.load(taps + k + 1) * far)
    if radius % 2 == 1:
        last = radius * CHANNELS
        near = tl.load(fields - last, inside, 0) + tl.load(fields + last, inside, 0)
        total = tl.fma(tl.load(taps + radius), near, total)
    out += image * height * line + y * line + x
    if BYTES:
        tl.store(out, to_byte(total, NEAREST), inside)
    else:
        tl.store(out, total, inside)


@triton.jit
def _weighed_down(images, levels, taps, y, place, height, line, radius, inside):
    """The weighted sum down a column in double precision, from the farthest pair to the nearest."""
    total = tl.load(levels + tl.load(images + y * line + place, inside, 0)) * tl.load(taps)
    for i in range(radius):
        k = radius - i
        above = tl.load(images + clamped(y - k, height) * line + place, inside, 0)
        below = tl.load(images + clamped(y + k, height) * line + place, inside, 0)
        total += (tl.load(levels + above) + tl.load(levels + below)) * tl.load(taps + k)
    return total


@triton.jit(do_not_specialize=["height", "width"])
def _exact(
    images, levels, taps, out, height, width, radius,
    CHANNELS: tl.constexpr, HORIZONTAL: tl.constexpr, NEAREST: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    line = width * CHANNELS
    image, y, x, inside = row_tile(height, line, BW)
    images += image * height * line
    total = _weighed_down(images, levels, taps, y, x, height, line, radius, inside)
    if HORIZONTAL:
        column, channel = x // CHANNELS, x % CHANNELS
        total *= tl.load(taps)
        for i in range(radius):
            k = radius - i
            left = clamped(column - k, width) * CHANNELS + channel
            right = clamped(column + k, width) * CHANNELS + channel
            pair = _weighed_down(images, levels, taps, y, left, height, line, radius, inside)
            pair += _weighed_down(images, levels, taps, y, right, height, line, radius, inside)
            total += pair * tl.load(taps + k)
    tl.store(out + image * height * line + y * line + x, to_byte(total * 255.0, NEAREST), inside)


@triton.jit
def _product(
    a, b, gains, out, rows, columns, terms, a_image, a_row, a_column, b_image, b_row, b_column,
    WEIGH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Products of matrices, each term added in its turn, whatever their number."""
    across = tl.cdiv(columns, BN)
    tiles = tl.cdiv(rows, BM) * across
    image = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    m = (tile // across) * BM + tl.arange(0, BM)[:, None]
    n = (tile % across) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, terms, BK):
        k = start + tl.arange(0, BK)
        left = a + image * a_image + m * a_row + k[None, :] * a_column
        right = b + image * b_image + k[:, None] * b_row + n * b_column
        left = tl.load(left, (m < rows) & (k[None, :] < terms), 0)
        right = tl.load(right, (k[:, None] < terms) & (n < columns), 0)
        total = tl.dot(left, right, total, input_precision="ieee")
    inside = (m < rows) & (n < columns)
    if WEIGH:
        total *= tl.load(gains + m * columns + n, inside, 0)
    tl.store(out + image * rows * columns + m * columns + n, total, inside)


def gaussian(images: Tensor, taps: NDArray[Any], *, horizontal: bool, nearest: bool) -> Tensor:
    """As `Ops.gaussian`, with single precision taps, in both directions."""
    assert horizontal
    out = torch.empty_like(images)
    _separable(images, taps, "nearest", out, nearest=nearest)
    return out


def smooth(fields: Tensor, taps: NDArray[Any], border: str) -> Tensor:
    """As `Ops.smooth`, by taps."""
    fields = fields.contiguous()
    out = torch.empty_like(fields)
    _separable(fields[..., None], taps, border, out)
    return out


def _separable(
    fields: Tensor, taps: NDArray[Any], border: str, out: Tensor, *, nearest: bool = False
) -> None:
    count, height, width, channels = fields.shape
    weights, radius = constant(taps, fields.device), len(taps) - 1
    rows = constant(border_index(height, radius, radius, border).astype(np.int32), fields.device)
    wide = (count, height, (width + 2 * radius) * channels)
    middle = torch.empty(wide, dtype=weights.dtype, device=fields.device)
    grid, shape = grid_of(count, height, width * channels)
    _down[grid](
        fields, weights, rows, middle, height, width, radius,
        CHANNELS=channels, REPEAT=border == "nearest", **shape, **EXACTLY,
    )  # fmt: skip
    _across[grid](
        middle, weights, out, height, width, radius,
        CHANNELS=channels, BYTES=out.dtype == torch.uint8, NEAREST=nearest, **shape, **EXACTLY,
    )  # fmt: skip


def gaussian_exact(images: Tensor, taps: NDArray[Any], *, horizontal: bool, nearest: bool) -> Tensor:
    """As `Ops.gaussian`, in double precision."""
    count, height, width, channels = images.shape
    levels, weights = (constant(table, images.device) for table in (np.arange(256) / 255.0, taps))
    out = torch.empty_like(images)
    grid, shape = row_grid(count, height, width * channels)
    _exact[grid](
        images, levels, weights, out, height, width, len(taps) - 1,
        CHANNELS=channels, HORIZONTAL=horizontal, NEAREST=nearest, **shape, **EXACTLY,
    )  # fmt: skip
    return out


def smooth_by_waves(fields: Tensor, down: Tensor, across: Tensor, gains: Tensor) -> Tensor:
    """Split each field into waves, weigh them, and put them together again."""
    fields = fields.contiguous()
    weighed = _times(_times(down, fields), across.T, gains)
    return _times(down.T, _times(weighed, across))


def _times(a: Tensor, b: Tensor, gains: Tensor | None = None) -> Tensor:
    """The product of a matrix and a batch of them, or the other way round, each value times its gain."""
    images = len(a) if a.ndim == 3 else len(b)
    (rows, terms), columns = a.shape[-2:], b.shape[-1]
    out = torch.empty((images, rows, columns), dtype=torch.float32, device=b.device)
    strides = (stride for x in (a, b) for stride in (x.stride() if x.ndim == 3 else (0, *x.stride())))
    tiles = triton.cdiv(rows, 64) * triton.cdiv(columns, 64)
    _product[(images * tiles,)](
        a, b, b if gains is None else gains, out, rows, columns, terms, *strides,
        WEIGH=gains is not None, BM=64, BN=64, BK=16, enable_fp_fusion=True,
    )  # fmt: skip
    return out
