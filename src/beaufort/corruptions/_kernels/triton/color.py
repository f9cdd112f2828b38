"""Brightness, contrast and saturation as Triton kernels."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from beaufort.corruptions._kernels.triton.tiles import (
    to_byte,
)

_BLOCK = 2048


@triton.jit
def _sum_channels(images, sums, size, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(images + image * size + at, mask=at < size, other=0).to(tl.int32)
    for channel in tl.static_range(CHANNELS):
        total = tl.sum(tl.where(at % CHANNELS == channel, value, 0))
        tl.atomic_add(sums + image * CHANNELS + channel, total.to(tl.int64), sem="relaxed")


@triton.jit(do_not_specialize=["factor"])
def _lower_contrast(
    images,
    sums,
    factors,
    out,
    size,
    factor,
    CHANNELS: tl.constexpr,
    NEAREST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    value = tl.load(images + image * size + at, mask=mask, other=0).to(tl.float32)
    exact = tl.load(factors)
    channel = at % CHANNELS
    offset = tl.zeros_like(value)
    for own in tl.static_range(CHANNELS):
        mean = tl.load(sums + image * CHANNELS + own).to(tl.float64) / (size // CHANNELS)
        offset = tl.where(channel == own, (mean - mean * exact).to(tl.float32), offset)
    tl.store(out + image * size + at, to_byte(tl.fma(value, factor, offset), NEAREST), mask=mask)


def lower_contrast(images: Tensor, factor: float, factors: Tensor, nearest: bool) -> Tensor:
    """(x - μ)·c + μ; sums of integers, so that any order gives them."""
    out = torch.empty_like(images)
    size, channels = math.prod(images.shape[1:]), images.shape[-1]
    sums = torch.zeros((len(images), channels), dtype=torch.int64, device=images.device)
    grid = triton.cdiv(size, 8192), len(images)
    _sum_channels[grid](images, sums, size, channels, 8192)
    grid = triton.cdiv(size, _BLOCK), len(images)
    _lower_contrast[grid](
        images, sums, factors, out, size, factor, channels, nearest, _BLOCK, enable_fp_fusion=False
    )
    return out


@triton.jit(do_not_specialize=["black"])
def _brighten(images, ratio, out, pixels, black, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < pixels
    red = tl.load(images + 3 * at, mask=mask, other=0).to(tl.int32)
    green = tl.load(images + 3 * at + 1, mask=mask, other=0).to(tl.int32)
    blue = tl.load(images + 3 * at + 2, mask=mask, other=0).to(tl.int32)
    value = tl.maximum(tl.maximum(red, green), blue)
    gain = tl.load(ratio + value, mask=mask, other=0.0)
    lift = tl.where(value == 0, black, 0.0)
    tl.store(out + 3 * at, (red.to(tl.float32) * gain + lift).to(tl.int32).to(tl.uint8), mask=mask)
    tl.store(out + 3 * at + 1, (green.to(tl.float32) * gain + lift).to(tl.int32).to(tl.uint8), mask=mask)
    tl.store(out + 3 * at + 2, (blue.to(tl.float32) * gain + lift).to(tl.int32).to(tl.uint8), mask=mask)


def brighten(images: Tensor, ratio: Tensor, black: float) -> Tensor:
    """R, G, B times V'/V; black becomes gray."""
    out = torch.empty_like(images)
    pixels = images.numel() // 3
    _brighten[(triton.cdiv(pixels, 1024),)](
        images, ratio, out, pixels, float(black), 1024, enable_fp_fusion=False
    )
    return out


@triton.jit(do_not_specialize=["gain", "lift"])
def _saturate(images, out, pixels, gain, lift, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < pixels
    red = tl.load(images + 3 * at, mask=mask, other=0).to(tl.float32)
    green = tl.load(images + 3 * at + 1, mask=mask, other=0).to(tl.float32)
    blue = tl.load(images + 3 * at + 2, mask=mask, other=0).to(tl.float32)
    value = tl.maximum(tl.maximum(red, green), blue)
    spread = value - tl.minimum(tl.minimum(red, green), blue)
    colored = spread > 0
    inverse = tl.div_rn(value, tl.where(colored, spread, 1.0))
    ratio = tl.minimum(tl.fma(inverse, lift + inverse * 0, gain + inverse * 0), inverse)
    ratio = tl.maximum(ratio, 0.0)
    gray = value - value * tl.minimum(tl.maximum(lift, 0.0), 1.0)
    red = tl.where(colored, tl.fma(red - value, ratio, value), value)
    green = tl.where(colored, tl.fma(green - value, ratio, value), gray)
    blue = tl.where(colored, tl.fma(blue - value, ratio, value), gray)
    tl.store(out + 3 * at, to_byte(red, False), mask=mask)
    tl.store(out + 3 * at + 1, to_byte(green, False), mask=mask)
    tl.store(out + 3 * at + 2, to_byte(blue, False), mask=mask)


def saturate(images: Tensor, gain: float, lift: float) -> Tensor:
    """S ← clip(a·S + b) in HSV."""
    out = torch.empty_like(images)
    pixels = images.numel() // 3
    grid = (triton.cdiv(pixels, 1024),)
    _saturate[grid](images, out, pixels, float(gain), float(lift), 1024, enable_fp_fusion=False)
    return out
