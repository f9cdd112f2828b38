"""Cells of pixels as Triton kernels: a program works on a row of cells."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 256


@triton.jit
def _average(
    images, down, across, out, height, width, columns, widest, channels: tl.constexpr, block: tl.constexpr
):
    """One row of cells: the rounded means of its lines of pixels, and the rounded means of those."""
    image, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = tl.program_id(2) * block + tl.arange(0, block)
    line = width * channels
    written = at < columns * channels
    cell = at // channels
    first = tl.load(across + 3 * cell, mask=written, other=0)
    count = tl.load(across + 3 * cell + 1, mask=written, other=0)
    weight = tl.load(across + 3 * cell + 2, mask=written, other=0)
    top, rows, row_weight = tl.load(down + 3 * row), tl.load(down + 3 * row + 1), tl.load(down + 3 * row + 2)
    source = images + image * height * line + first * channels + at % channels
    totals = tl.zeros([block], tl.int32)
    for y in range(top, top + rows):
        sums = tl.zeros([block], tl.int32)
        for k in range(widest):
            sums += tl.load(source + y * line + k * channels, mask=k < count, other=0).to(tl.int32)
        totals += (sums * weight + 2097152) >> 22
    means = (totals * row_weight + 2097152) >> 22
    place = (image * tl.num_programs(1) + row) * columns * channels + at
    tl.store(out + place, means.to(tl.uint8), mask=written)


@triton.jit
def _show(
    cells, rows, columns, out, height, width, down, across, channels: tl.constexpr, block: tl.constexpr
):
    image = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    line = width * channels
    written = at < height * line
    row = tl.load(rows + at // line, mask=written, other=0)
    column = tl.load(columns + at % line // channels, mask=written, other=0)
    place = (image * down + row) * across * channels + column * channels + at % channels
    tl.store(out + image * height * line + at, tl.load(cells + place, mask=written, other=0), mask=written)


def pixel_cells(images: Tensor, down: Tensor, rows: Tensor, across: Tensor, columns: Tensor) -> Tensor:
    """As `Ops.pixel_cells`; for each axis the cells (first, count, weight) and each pixel's cell."""
    count, height, width, channels = images.shape
    cells = torch.empty((count, len(down), len(across), channels), dtype=torch.uint8, device=images.device)
    block = min(256, triton.next_power_of_2(len(across) * channels))
    grid = (count, len(down), triton.cdiv(len(across) * channels, block))
    widest = -(-width // len(across))
    _average[grid](
        images,
        down,
        across,
        cells,
        height,
        width,
        len(across),
        widest,
        channels,
        block,
        num_warps=2,
        enable_fp_fusion=False,
    )
    out = torch.empty_like(images)
    shown = (count, triton.cdiv(height * width * channels, _BLOCK))
    _show[shown](
        cells,
        rows,
        columns,
        out,
        height,
        width,
        len(down),
        len(across),
        channels,
        _BLOCK,
        enable_fp_fusion=False,
    )
    return out
