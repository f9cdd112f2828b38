"""Noise as Triton kernels: a program maps a run of values.

Products are fused with sums, by name, where the CPU's compiler fuses them.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from beaufort.corruptions._kernels._tiles import (
    EXACTLY,
    to_byte,
    with_field,
)

_ADD, _MULTIPLY, _REPLACE = map(tl.constexpr, range(3))

_BLOCK = 2048


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
