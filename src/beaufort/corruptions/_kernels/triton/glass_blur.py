"""Sweeps as Triton kernels: each pixel follows its own trail back to the pixel it came from."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _offset(offsets, visit, mask, HALF: tl.constexpr):
    """Column and row offset of a visit, kept as the two halves of one number."""
    pair = tl.load(offsets + visit, mask, 0).to(tl.int32)
    return (pair << (32 - HALF)) >> (32 - HALF), pair >> HALF


@triton.jit
def _show(images, out, image, size, at, source, inside, CHANNELS: tl.constexpr):
    images += image * size * CHANNELS
    out += image * size * CHANNELS
    for c in tl.static_range(CHANNELS):
        value = tl.load(images + source * CHANNELS + c, inside, 0)
        tl.store(out + at * CHANNELS + c, value, inside)


@triton.jit
def _copy(
    images, offsets, out, height, width, distance, sweeps, blocks,
    CHANNELS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    image = (tl.program_id(0) // blocks).to(tl.int64)
    at = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = at < height * width
    rows, columns = height - 2 * distance, width - 2 * distance
    row, column = height - distance - at // width, width - distance - at % width
    sweep = tl.where(inside, sweeps - 1, -1)
    offsets += image * sweeps * rows * columns
    moved = (sweep >= 0) & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    while tl.max(moved.to(tl.int32), 0) > 0:
        right, down = _offset(offsets, (sweep * rows + row) * columns + column, moved, HALF)
        before = (down > 0) | ((down == 0) & (right > 0))
        row -= down
        column -= right
        sweep -= tl.where(moved & (before == 0), 1, 0)
        moved = moved & (sweep >= 0) & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    source = (height - distance - row) * width + width - distance - column
    _show(images, out, image, height * width, at, source, inside, CHANNELS)


@triton.jit
def _swap(
    images, gates, offsets, out, height, width, distance, sweeps, blocks,
    CHANNELS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """From the last swap that touched a pixel to the one before, and so on.

    Later visits lie further up and left, so they are met in the order of reading.
    """
    image = (tl.program_id(0) // blocks).to(tl.int64)
    at = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = at < height * width
    rows, columns = height - 2 * distance, width - 2 * distance
    gates += image * sweeps * rows * columns
    offsets += image * sweeps * rows * columns
    sweep = tl.where(inside, sweeps - 1, -1)
    source = at
    met = tl.full((BLOCK,), -1, tl.int32)  # the swap that was met last
    while tl.max(sweep, 0) >= 0:
        y, x = source // width, source % width
        first = tl.full((BLOCK,), 2147483647, tl.int32)
        other = source
        for i in range(1 - distance, distance + 1):
            for j in range(1 - distance, distance + 1):
                row, column = height - distance - y - i, width - distance - x - j
                visitor = (y + i) * width + x + j
                near = (sweep >= 0) & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
                near = near & (visitor > met) & (visitor < first)
                visit = (sweep * rows + row) * columns + column
                near = near & (tl.load(gates + visit, near, 0) != 0)
                right, down = _offset(offsets, visit, near, HALF)
                partner = visitor + down * width + right
                near = near & ((visitor == source) | (partner == source))
                other = tl.where(near, tl.where(visitor == source, partner, visitor), other)
                first = tl.where(near, visitor, first)
        found = first < 2147483647
        sweep -= tl.where(found, 0, 1)
        met = tl.where(found, first, -1)
        source = other
    _show(images, out, image, height * width, at, source, inside, CHANNELS)


_BLOCK = 128


def _pairs(offsets: Tensor) -> tuple[Tensor, int]:
    """Both offsets of a visit as one number, and how many bits half of it has."""
    if offsets.dtype not in (torch.int8, torch.int16):
        offsets = offsets.to(torch.int16)
    half = 8 * offsets.element_size()
    return offsets.contiguous().view({8: torch.int16, 16: torch.int32}[half]), half


def copy_sweeps(images: Tensor, offsets: Tensor, distance: int) -> Tensor:
    """As `Ops.copy_sweeps`."""
    count, height, width, channels = images.shape
    pairs, half = _pairs(offsets)
    out = torch.empty_like(images)
    blocks = triton.cdiv(height * width, _BLOCK)
    sizes = height, width, distance, offsets.shape[1], blocks
    _copy[(count * blocks,)](
        images, pairs, out, *sizes, channels, half, _BLOCK, num_warps=1, enable_fp_fusion=False
    )
    return out


def swap_sweeps(images: Tensor, gates: Tensor, offsets: Tensor, distance: int) -> Tensor:
    """As `Ops.swap_sweeps`."""
    count, height, width, channels = images.shape
    pairs, half = _pairs(offsets)
    out = torch.empty_like(images)
    blocks = triton.cdiv(height * width, _BLOCK)
    sizes = height, width, distance, offsets.shape[1], blocks
    opened = gates.contiguous().view(torch.uint8)
    _swap[(count * blocks,)](
        images, opened, pairs, out, *sizes, channels, half, _BLOCK, num_warps=1, enable_fp_fusion=False
    )
    return out
