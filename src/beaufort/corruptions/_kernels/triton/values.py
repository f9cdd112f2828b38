"""Look-ups, mixtures, noise, textures and the way back to 8 bit, as Triton kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside
from beaufort.corruptions._kernels.triton.tiles import (
    EXACTLY,
    to_byte,
    with_field,
)

_BLOCK = 2048


@triton.jit
def _look_up(values, table, out, size, last, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    value = tl.load(values + at, mask=mask, other=0).to(tl.int32)
    tl.store(out + at, tl.load(table + tl.minimum(value, last), mask=mask, other=0), mask=mask)


def look_up(values: Tensor, table: Tensor) -> Tensor:
    """The table's value for each value."""
    out = torch.empty(values.shape, dtype=torch.uint8, device=values.device)
    size = values.numel()
    _look_up[(triton.cdiv(size, _BLOCK),)](values, table, out, size, len(table) - 1, _BLOCK)
    return out


_ADD, _MULTIPLY, _REPLACE = map(tl.constexpr, range(3))


@triton.jit(do_not_specialize=["sigma"])
def _map_values(
    images, fields, out, size, sigma, KIND: tl.constexpr, NEAREST: tl.constexpr, BLOCK: tl.constexpr
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    value = tl.load(images + at, mask=mask, other=0)
    field = tl.load(fields + at, mask=mask, other=0)
    if KIND == _REPLACE:
        made = tl.where(field == 0, value, tl.where(field == 2, 255, 0).to(tl.uint8))
    else:
        value = value.to(tl.float32)
        scaled = field if KIND == _ADD else value * field
        made = to_byte(tl.fma(scaled, sigma, value), NEAREST)
    tl.store(out + at, made, mask=mask)


def _mapped(images: Tensor, fields: Tensor, sigma: float, kind: tl.constexpr, nearest: bool) -> Tensor:
    out = torch.empty_like(images)
    size = images.numel()
    _map_values[(triton.cdiv(size, _BLOCK),)](
        images, fields.contiguous(), out, size, float(sigma), kind, nearest, _BLOCK, enable_fp_fusion=False
    )
    return out


def add_noise(images: Tensor, noise: Tensor, sigma: float, nearest: bool) -> Tensor:
    """x + σ·n."""
    return _mapped(images, noise, sigma, _ADD, nearest)


def multiply_noise(images: Tensor, noise: Tensor, sigma: float, nearest: bool) -> Tensor:
    """x + x·n·σ."""
    return _mapped(images, noise, sigma, _MULTIPLY, nearest)


def replace(images: Tensor, hits: Tensor) -> Tensor:
    """Black where the hit is 1, white where it is 2."""
    return _mapped(images, hits, 0.0, _REPLACE, False)


@triton.jit
def _add_field(images, fields, out, size, CHANNELS: tl.constexpr, NEAREST: tl.constexpr, BLOCK: tl.constexpr):
    at, inside, value, field = with_field(images, fields, size, CHANNELS, BLOCK)
    tl.store(out + at, to_byte(value + field, NEAREST), mask=inside)


def add_field(images: Tensor, fields: Tensor, nearest: bool) -> Tensor:
    """x + f."""
    out = torch.empty_like(images)
    size = math.prod(images.shape[1:])
    _add_field[(triton.cdiv(size, _BLOCK), len(images))](
        images, fields.contiguous(), out, size, images.shape[-1], nearest, _BLOCK, **EXACTLY
    )
    return out


@triton.jit
def _blend(images, crops, weights, out, size, line, NEAREST: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    start = tl.load(crops + 2 * image).to(tl.pointer_type(tl.uint8))
    stride = tl.load(crops + 2 * image + 1).to(tl.int32)
    value = tl.load(images + image * size + at, mask=mask, other=0).to(tl.float64)
    over = tl.load(start + (at // line) * stride + at % line, mask=mask, other=0).to(tl.float64)
    made = tl.load(weights) * value + tl.load(weights + 1) * over
    made = tl.minimum(tl.maximum(made, 0.0), 255.0)
    if NEAREST:
        made = (made + 4503599627370496.0) - 4503599627370496.0
    tl.store(out + image * size + at, made.to(tl.int32).to(tl.uint8), mask=mask)


def blend(
    images: Tensor, textures: Sequence[Tensor], crops: NDArray[np.int64], weights: Tensor, nearest: bool
) -> Tensor:
    """a·X + b·F in double precision, each product rounded; an image knows where in memory its crop starts."""
    out = torch.empty_like(images)
    size, channels = math.prod(images.shape[1:]), images.shape[-1]
    bases = np.array([texture.data_ptr() for texture in textures], np.int64)
    strides = np.array([texture.shape[1] * channels for texture in textures], np.int64)
    number, row, column = crops.T
    starts = bases[number] + row * strides[number] + column * channels
    places = beside(np.stack([starts, strides[number]], axis=-1), images)
    line = images.shape[2] * channels
    _blend[(triton.cdiv(size, 1024), len(images))](
        images, places, weights, out, size, line, nearest, 1024, enable_fp_fusion=False
    )
    return out
