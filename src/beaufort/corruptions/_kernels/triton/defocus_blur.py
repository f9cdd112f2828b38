"""The soft disk of a lens as Triton kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from beaufort._core.device import constant
from beaufort.corruptions._kernels.borders import border_index
from beaufort.corruptions._kernels.triton.tiles import (
    EXACTLY,
    grid_of,
    tile,
    to_byte,
)


@triton.jit
def _running_sums(
    images, rows, columns, sums, height, width, pad,
    CHANNELS: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    """Down each column of the image and what is mirrored around it, the sum of all that is above."""
    tall, line = height + 2 * pad, (width + 2 * pad) * CHANNELS
    across = tl.cdiv(line, BW)
    image = (tl.program_id(0) // across).to(tl.int64)
    x = (tl.program_id(0) % across) * BW + tl.arange(0, BW)[None, :]
    exists = x < line
    place = tl.load(columns + x // CHANNELS, exists, 0) * CHANNELS + x % CHANNELS
    images += image * height * width * CHANNELS
    sums += image * (tall + 1) * line
    before = tl.zeros((1, BW), tl.int32)
    tl.store(sums + x, before, exists)
    for top in range(0, tall, BH):
        y = top + tl.arange(0, BH)[:, None]
        row = tl.load(rows + y, y < tall, 0) * (width * CHANNELS)
        values = tl.load(images + row + place, (y < tall) & exists, 0).to(tl.int32)
        tl.store(sums + (y + 1) * line + x, before + tl.cumsum(values, 0), (y < tall) & exists)
        before += tl.sum(values, 0)[None, :]


@triton.jit
def _tower(sums, half, pitch, inside):
    """The sum of the value at a place and `half` more above and below."""
    return tl.load(sums + (half + 1) * pitch, inside, 0) - tl.load(sums - half * pitch, inside, 0)


@triton.jit(do_not_specialize=["width", "pad"])
def _flat_disk(
    sums, halves, out, height, width, pad, reach, weight,
    RIM: tl.constexpr, CHANNELS: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    """The mean over a disk, for the image and a rim around it."""
    high, line = height + 2 * RIM, (width + 2 * RIM) * CHANNELS
    image, y, x, inside = tile(high, line, BH, BW)
    pitch = (width + 2 * pad) * CHANNELS
    sums += (image * (height + 2 * pad + 1) + pad - RIM + y) * pitch + (pad - RIM) * CHANNELS + x
    count = _tower(sums, tl.load(halves), pitch, inside)
    for d in range(1, reach + 1):
        half = tl.load(halves + d)
        count += _tower(sums - d * CHANNELS, half, pitch, inside)
        count += _tower(sums + d * CHANNELS, half, pitch, inside)
    tl.store(out + (image * high + y) * line + x, count.to(tl.float32) * weight, inside)


@triton.jit
def _rim_down(flat, taps, pitch, inside, RIM: tl.constexpr):
    total = tl.load(taps) * tl.load(flat, inside, 0)
    for k in tl.static_range(1, RIM + 1):
        pair = tl.load(flat - k * pitch, inside, 0) + tl.load(flat + k * pitch, inside, 0)
        total = tl.fma(tl.load(taps + k), pair, total)
    return total


@triton.jit(do_not_specialize=["width", "pad"])
def _soft_disk(
    flat, sums, taps, boxes, weights, out, height, width, pad, count,
    RIM: tl.constexpr, CHANNELS: tl.constexpr, NEAREST: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    """The flat disk with its rim smoothed, and the boxes beyond it."""
    line = width * CHANNELS
    image, y, x, inside = tile(height, line, BH, BW)
    wide = line + 2 * RIM * CHANNELS
    flat += (image * (height + 2 * RIM) + RIM + y) * wide + RIM * CHANNELS + x
    total = tl.load(taps) * _rim_down(flat, taps, wide, inside, RIM)
    for k in tl.static_range(1, RIM + 1):
        pair = _rim_down(flat - k * CHANNELS, taps, wide, inside, RIM)
        pair += _rim_down(flat + k * CHANNELS, taps, wide, inside, RIM)
        total = tl.fma(tl.load(taps + k), pair, total)
    pitch = (width + 2 * pad) * CHANNELS
    sums += (image * (height + 2 * pad + 1) + pad + y) * pitch + pad * CHANNELS + x
    for k in range(count):
        half, d = tl.load(boxes + 2 * k), tl.load(boxes + 2 * k + 1) * CHANNELS
        towers = _tower(sums - d, half, pitch, inside) + _tower(sums + d, half, pitch, inside)
        total = tl.fma(tl.load(weights + k), towers.to(tl.float32), total)
    tl.store(out + image * height * line + y * line + x, to_byte(total, NEAREST), inside)


def defocus(images: Tensor, parts: tuple[Any, ...], *, nearest: bool) -> Tensor:
    """As `Ops.defocus`, with the parts of the disk that the CPU's kernel takes."""
    pad, flat_boxes, flat_heights, weight, taps, heights, boxes, weights = parts
    count, height, width, channels = images.shape
    rim, device = len(taps) - 1, images.device
    index = [
        constant(border_index(size, pad, pad, "mirror").astype(np.int32), device) for size in (height, width)
    ]
    halves = constant(flat_heights[flat_boxes].astype(np.int32), device)
    beyond = constant(np.stack([heights[boxes[:, 0]], boxes[:, 1]], axis=1).astype(np.int32), device)
    line, broad = (width + 2 * pad) * channels, (width + 2 * rim) * channels
    sums = torch.empty((count, height + 2 * pad + 1, line), dtype=torch.int32, device=device)
    flat = torch.empty((count, height + 2 * rim, broad), dtype=torch.float32, device=device)
    out = torch.empty_like(images)
    _running_sums[(count * triton.cdiv(line, 64),)](
        images, *index, sums, height, width, pad, CHANNELS=channels, BH=32, BW=64, **EXACTLY
    )
    grid, shape = grid_of(count, height + 2 * rim, broad)
    _flat_disk[grid](
        sums, halves, flat, height, width, pad, len(flat_boxes) - 1, float(weight),
        RIM=rim, CHANNELS=channels, **shape, **EXACTLY,
    )  # fmt: skip
    grid, shape = grid_of(count, height, width * channels)
    _soft_disk[grid](
        flat, sums, constant(taps, device), beyond, constant(weights, device), out,
        height, width, pad, len(weights),
        RIM=rim, CHANNELS=channels, NEAREST=nearest, **shape, **EXACTLY,
    )  # fmt: skip
    return out
