"""Flakes and snowfall as Triton kernels."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 512


@triton.jit
def _flakes(normals, places, weights, out, height, width, block: tl.constexpr):
    image = tl.program_id(0).to(tl.int64) * height * width
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < height * width
    y, x = at // width, at % width
    top = tl.load(places + y, mask=written, other=0)
    left = tl.load(places + height + x, mask=written, other=0)
    low, right = tl.minimum(top + 1, height - 1) * width, tl.minimum(left + 1, width - 1)
    top *= width
    t = tl.load(weights + y, mask=written, other=0)
    s = tl.load(weights + height + x, mask=written, other=0)
    constants = weights + height + width
    mean, spread, threshold = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    source = normals + image
    a = tl.load(source + top + left, mask=written, other=0).to(tl.float64)
    b = tl.load(source + top + right, mask=written, other=0).to(tl.float64)
    d = tl.load(source + low + left, mask=written, other=0).to(tl.float64)
    e = tl.load(source + low + right, mask=written, other=0).to(tl.float64)
    near, far = a * (1 - t) + d * t, b * (1 - t) + e * t
    value = (near * (1 - s) + far * s) * spread + mean
    value = tl.where(value < threshold, 0.0, tl.minimum(tl.maximum(value, 0.0), 1.0))
    tl.store(out + image + at, (value * 255).to(tl.int32).to(tl.uint8), mask=written)


def flakes(normals: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """As `Ops.flakes`; rows and columns, then their weights and mean, spread, threshold in double."""
    count, height, width = normals.shape
    out = torch.empty((count, height, width, 1), dtype=torch.uint8, device=normals.device)
    grid = (count, triton.cdiv(height * width, _BLOCK))
    _flakes[grid](normals, places, weights, out, height, width, _BLOCK, enable_fp_fusion=False)
    return out


@triton.jit
def _snowfall(
    images, layers, constants, out, area, channels: tl.constexpr, nearest: tl.constexpr, block: tl.constexpr
):
    image = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < area * channels
    pixel = at // channels
    source = images + image * area * channels
    value = tl.load(source + at, mask=written, other=0).to(tl.float32)
    mix, rest = tl.load(constants), tl.load(constants + 1)
    gray = value
    if channels == 3:
        red = tl.load(source + 3 * pixel, mask=written, other=0).to(tl.float32)
        green = tl.load(source + 3 * pixel + 1, mask=written, other=0).to(tl.float32)
        blue = tl.load(source + 3 * pixel + 2, mask=written, other=0).to(tl.float32)
        gray = tl.fma(red, tl.load(constants + 2), green * tl.load(constants + 3))
        gray = tl.fma(blue, tl.load(constants + 4), gray)
    pale = tl.maximum(value, tl.fma(gray, 1.5, 127.5))
    layer = layers + image * area
    both = tl.load(layer + pixel, mask=written, other=0).to(tl.int32)
    both += tl.load(layer + area - 1 - pixel, mask=written, other=0).to(tl.int32)
    snowy = tl.fma(value, mix, pale * rest) + both.to(tl.float32)
    snowy = tl.minimum(tl.maximum(snowy, 0.0), 255.0)
    if nearest:
        snowy = (snowy + 8388608.0) - 8388608.0  # float32 has no fraction bits at 2²³
    tl.store(out + image * area * channels + at, snowy.to(tl.uint8), mask=written)


def snowfall(images: Tensor, layers: Tensor, constants: Tensor, nearest: bool) -> Tensor:
    """As `Ops.snowfall`; mix, 1 - mix and the weights of red, green and blue in float32."""
    count, height, width, channels = images.shape
    out = torch.empty_like(images)
    grid = (count, triton.cdiv(height * width * channels, _BLOCK))
    _snowfall[grid](
        images,
        layers.contiguous(),
        constants,
        out,
        height * width,
        channels,
        nearest,
        _BLOCK,
        enable_fp_fusion=False,
    )
    return out
