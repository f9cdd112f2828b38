"""Maps of one value or one pixel as Triton kernels: a program maps a run of values of one image.

Rounding is that of the CPU backend: products are fused with sums where its compiler fuses them, by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from beaufort.ops.torch._device import beside

__all__ = [
    "add_field",
    "add_noise",
    "blend",
    "brighten",
    "haze",
    "look_up",
    "lower_contrast",
    "multiply_noise",
    "paint",
    "replace",
    "saturate",
]

_ADD, _MULTIPLY, _REPLACE = map(tl.constexpr, range(3))
_BLOCK = 2048


@triton.jit
def _to_byte(value, NEAREST: tl.constexpr):
    """Clip and cut the fraction off, or round half to even: adding 2²³ leaves no room for a fraction."""
    value = tl.minimum(tl.maximum(value, 0.0), 255.0)
    if NEAREST:
        value = (value + 8388608.0) - 8388608.0
    return value.to(tl.int32).to(tl.uint8)


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
        made = _to_byte(tl.fma(scaled, sigma, value), NEAREST)
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


_FIELD, _COVER, _TINT, _HAZE = map(tl.constexpr, range(4))


@triton.jit(do_not_specialize=["a", "b", "c"])
def _map_fields(
    images,
    fields,
    brightest,
    out,
    size,
    a,
    b,
    c,
    KIND: tl.constexpr,
    CHANNELS: tl.constexpr,
    NEAREST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    value = tl.load(images + image * size + at, mask=mask, other=0).to(tl.float32)
    field = tl.load(fields + image * (size // CHANNELS) + at // CHANNELS, mask=mask, other=0.0)
    if KIND == _FIELD:
        made = value + field
    elif KIND == _HAZE:
        top = tl.div_rn(tl.load(brightest + image).to(tl.float32), 255.0)
        gain = tl.div_rn(top, top + a)
        made = tl.fma(value, gain + value * 0, field * (gain * a * 255.0))
    else:
        channel = at % CHANNELS
        color = tl.where(channel == 0, a, tl.where(channel == 1, b, c))
        kept = 1.0 - field if KIND == _COVER else field * 0 + 1.0
        made = tl.fma(value, kept, field * color)
    tl.store(out + image * size + at, _to_byte(made, NEAREST), mask=mask)


def _mapped_fields(
    images: Tensor,
    fields: Tensor,
    kind: tl.constexpr,
    nearest: bool,
    numbers: tuple[float, float, float] = (0.0, 0.0, 0.0),
    brightest: Tensor | None = None,
) -> Tensor:
    out = torch.empty_like(images)
    size = math.prod(images.shape[1:])
    _map_fields[(triton.cdiv(size, _BLOCK), len(images))](
        images,
        fields.contiguous(),
        images if brightest is None else brightest,
        out,
        size,
        *map(float, numbers),
        kind,
        images.shape[-1],
        nearest,
        _BLOCK,
        enable_fp_fusion=False,
    )
    return out


def add_field(images: Tensor, fields: Tensor, nearest: bool) -> Tensor:
    """x + f."""
    return _mapped_fields(images, fields, _FIELD, nearest)


def paint(images: Tensor, masks: Tensor, color: tuple[float, ...], cover: bool, nearest: bool) -> Tensor:
    """x + m·color, or x·(1 - m) + m·color."""
    red, green, blue = color if len(color) == 3 else color * 3
    return _mapped_fields(images, masks, _COVER if cover else _TINT, nearest, (red, green, blue))


def haze(images: Tensor, fields: Tensor, brightest: Tensor, amount: float, nearest: bool) -> Tensor:
    """(x + a·P)·M / (M + a)."""
    return _mapped_fields(images, fields, _HAZE, nearest, (amount, 0.0, 0.0), brightest)


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
    tl.store(out + image * size + at, _to_byte(tl.fma(value, factor, offset), NEAREST), mask=mask)


def lower_contrast(images: Tensor, factor: float, factors: Tensor, nearest: bool) -> Tensor:
    """(x - μ)·c + μ; sums of whole numbers, so that any order gives them."""
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
    """R, G, B times V'/V; black becomes grey."""
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
    grey = value - value * tl.minimum(tl.maximum(lift, 0.0), 1.0)
    red = tl.where(colored, tl.fma(red - value, ratio, value), value)
    green = tl.where(colored, tl.fma(green - value, ratio, value), grey)
    blue = tl.where(colored, tl.fma(blue - value, ratio, value), grey)
    tl.store(out + 3 * at, _to_byte(red, False), mask=mask)
    tl.store(out + 3 * at + 1, _to_byte(green, False), mask=mask)
    tl.store(out + 3 * at + 2, _to_byte(blue, False), mask=mask)


def saturate(images: Tensor, gain: float, lift: float) -> Tensor:
    """S ← clip(a·S + b) in HSV."""
    out = torch.empty_like(images)
    pixels = images.numel() // 3
    grid = (triton.cdiv(pixels, 1024),)
    _saturate[grid](images, out, pixels, float(gain), float(lift), 1024, enable_fp_fusion=False)
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
