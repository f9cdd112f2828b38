"""Motion along a line as a Triton kernel: each pixel is read at many places and averaged."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant
from beaufort.corruptions._kernels.triton.tiles import (
    EXACTLY,
    as_float,
    clamped,
    row_grid,
    row_tile,
    to_byte,
)


@triton.jit
def _source(down, right, k, y, x, height, width, CHANNELS: tl.constexpr):
    """Where tap k of each pixel of a row is read; the edge is repeated, so it is always inside."""
    row = clamped(y + tl.load(down + k), height) * width
    return (row + clamped(x + tl.load(right + k), width)) * CHANNELS


@triton.jit
def _four(images, a, b, c, d, weights):
    a, b = as_float(tl.load(images + a)), as_float(tl.load(images + b))
    c, d = as_float(tl.load(images + c)), as_float(tl.load(images + d))
    near = tl.fma(tl.load(weights), a, tl.load(weights + 1) * b)
    return near + tl.fma(tl.load(weights + 2), c, tl.load(weights + 3) * d)


@triton.jit(do_not_specialize=["height", "width"])
def _motion(images, weights, down, right, out, height, width, taps, CHANNELS: tl.constexpr, BW: tl.constexpr):
    """A pixel at a time, because its channels share their places."""
    image, y, x, inside = row_tile(height, width, BW)
    images += image * height * width * CHANNELS
    down += image * taps
    right += image * taps
    first = tl.full((BW,), 1 / 514, tl.float32)
    second, third = first, first
    for k in range(0, taps - 3, 4):
        a = _source(down, right, k, y, x, height, width, CHANNELS)
        b = _source(down, right, k + 1, y, x, height, width, CHANNELS)
        c = _source(down, right, k + 2, y, x, height, width, CHANNELS)
        d = _source(down, right, k + 3, y, x, height, width, CHANNELS)
        first += _four(images, a, b, c, d, weights + k)
        if CHANNELS == 3:
            second += _four(images + 1, a, b, c, d, weights + k)
            third += _four(images + 2, a, b, c, d, weights + k)
    for k in range(taps // 4 * 4, taps):
        a = images + _source(down, right, k, y, x, height, width, CHANNELS)
        weight = tl.load(weights + k)
        first = tl.fma(weight, as_float(tl.load(a)), first)
        if CHANNELS == 3:
            second = tl.fma(weight, as_float(tl.load(a + 1)), second)
            third = tl.fma(weight, as_float(tl.load(a + 2)), third)
    out += (image * height * width + y * width + x) * CHANNELS
    tl.store(out, to_byte(first, False), inside)
    if CHANNELS == 3:
        tl.store(out + 1, to_byte(second, False), inside)
        tl.store(out + 2, to_byte(third, False), inside)


def motion(images: Tensor, weights: NDArray[np.float32], down: Tensor, right: Tensor) -> Tensor:
    """As `Ops.motion`, with the weight and the place of each tap."""
    count, height, width, channels = images.shape
    out = torch.empty_like(images)
    grid, shape = row_grid(count, height, width)
    _motion[grid](
        images, constant(weights, images.device), down, right, out, height, width, len(weights),
        CHANNELS=channels, **shape, **EXACTLY,
    )  # fmt: skip
    return out
