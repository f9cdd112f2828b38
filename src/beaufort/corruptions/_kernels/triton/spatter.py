"""Drops of water and mud as Triton kernels: a program works on a run of pixels of one image."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from beaufort.corruptions._kernels.triton.tiles import (
    EXACTLY,
    to_byte,
    with_field,
)

_BLOCK = 512


@triton.jit
def _cut(fields, constants, out, size, block: tl.constexpr):
    """Where mean + spread·x passes the threshold: 1 in a float32 result, 255 times it in an 8-bit one."""
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    mean, spread, threshold = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    value = tl.load(fields + at, mask=at < size, other=0) * spread + mean
    if out.dtype.element_ty == tl.uint8:
        wet = tl.where(value < threshold, 0, (value * 255).to(tl.int32))
        tl.store(out + at, wet.to(tl.uint8), mask=at < size)
    else:
        tl.store(out + at, (value > threshold).to(tl.float32), mask=at < size)


def liquid(fields: Tensor, constants: Tensor) -> Tensor:
    """8-bit mean + spread·x, 0 below the threshold; beyond 1 it starts again at 0."""
    return _cut_to(fields, constants, torch.uint8)


def spots(fields: Tensor, constants: Tensor) -> Tensor:
    """1 where mean + spread·x is above the threshold, else 0, float32."""
    return _cut_to(fields, constants, torch.float32)


def _cut_to(fields: Tensor, constants: Tensor, dtype: torch.dtype) -> Tensor:
    out = torch.empty(fields.shape, dtype=dtype, device=fields.device)
    grid = (triton.cdiv(fields.numel(), 2 * _BLOCK),)
    _cut[grid](fields, constants, out, fields.numel(), 2 * _BLOCK, enable_fp_fusion=False)
    return out


@triton.jit
def _mirrored(at, height, width):
    """Offsets of the row above, the row, the row below; of the column before and the column after."""
    y, x = at // width, at % width
    top = tl.where(y > 0, y - 1, 1) * width
    low = tl.where(y < height - 1, y + 1, height - 2) * width
    left = tl.where(x > 0, x - 1, 1)
    right = tl.where(x < width - 1, x + 1, width - 2)
    return top, y * width, low, left, x, right


@triton.jit
def _steps(depths, out, counts, height, width, block: tl.constexpr):
    image = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < height * width
    top, here, low, left, x, right = _mirrored(at, height, width)
    source = depths + image * height * width
    total = tl.zeros([block], tl.float64)
    for k in tl.static_range(3):
        row = top if k == 0 else (here if k == 1 else low)
        total += tl.load(source + row + left, mask=written, other=0).to(tl.float64)
        total += tl.load(source + row + x, mask=written, other=0).to(tl.float64)
        total += tl.load(source + row + right, mask=written, other=0).to(tl.float64)
    step = (total * 0.1111111111111111).to(tl.float32).to(tl.int32)
    tl.store(out + image * height * width + at, step.to(tl.uint8), mask=written)
    found = tl.histogram(tl.where(written, step, 31), 32)
    tl.atomic_add(counts + image * 32 + tl.arange(0, 32), found)


def steps(depths: Tensor) -> tuple[Tensor, Tensor]:
    """The mean depth of 3×3 pixels, cut to integers, and how many pixels of each there are."""
    count, height, width = depths.shape
    out = torch.empty(depths.shape, dtype=torch.uint8, device=depths.device)
    counts = torch.zeros((count, 32), dtype=torch.int32, device=depths.device)
    _steps[(count, triton.cdiv(height * width, _BLOCK))](
        depths, out, counts, height, width, _BLOCK, enable_fp_fusion=False
    )
    return out, counts[:, :21]


@triton.jit
def _relief(steps, levels, out, height, width, kinds, block: tl.constexpr):
    image = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < height * width
    top, here, low, left, x, right = _mirrored(at, height, width)
    source = steps + image * height * width
    level = levels + image * kinds
    total = tl.load(level + tl.load(source + here + x, mask=written, other=0)).to(tl.int32)
    total -= 2 * tl.load(level + tl.load(source + top + left, mask=written, other=0)).to(tl.int32)
    total -= tl.load(level + tl.load(source + top + x, mask=written, other=0)).to(tl.int32)
    total -= tl.load(level + tl.load(source + here + left, mask=written, other=0)).to(tl.int32)
    total += tl.load(level + tl.load(source + here + right, mask=written, other=0)).to(tl.int32)
    total += tl.load(level + tl.load(source + low + x, mask=written, other=0)).to(tl.int32)
    total += 2 * tl.load(level + tl.load(source + low + right, mask=written, other=0)).to(tl.int32)
    total = tl.minimum(tl.maximum(total, 0), 255)
    tl.store(out + image * height * width + at, total.to(tl.uint8), mask=written)


def relief(steps: Tensor, levels: Tensor) -> Tensor:
    """The steps at their levels `(n, kinds)`, in the light from the upper left."""
    count, height, width = steps.shape
    out = torch.empty_like(steps)
    grid = (count, triton.cdiv(height * width, _BLOCK))
    _relief[grid](steps, levels, out, height, width, levels.shape[1], _BLOCK, enable_fp_fusion=False)
    return out


@triton.jit
def _shine(water, relief, out, height, width, block: tl.constexpr):
    image = tl.program_id(0).to(tl.int64) * height * width
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < height * width
    top, here, low, left, x, right = _mirrored(at, height, width)
    source = relief + image
    total = tl.zeros([block], tl.int32)
    for k in tl.static_range(3):
        row = top if k == 0 else (here if k == 1 else low)
        total += tl.load(source + row + left, mask=written, other=0).to(tl.int32)
        total += tl.load(source + row + x, mask=written, other=0).to(tl.int32)
        total += tl.load(source + row + right, mask=written, other=0).to(tl.int32)
    light = (2 * total + 9) // 18 * tl.load(water + image + at, mask=written, other=0).to(tl.int32)
    tl.store(out + image + at, light, mask=written)


def shine(water: Tensor, relief: Tensor) -> Tensor:
    """Water times the mean relief of 3×3 pixels, int32."""
    count, height, width = water.shape
    out = torch.empty(water.shape, dtype=torch.int32, device=water.device)
    _shine[(count, triton.cdiv(height * width, _BLOCK))](
        water, relief, out, height, width, _BLOCK, enable_fp_fusion=False
    )
    return out


@triton.jit
def _run_down(layers, rows, weights, out, height, width, count, block: tl.constexpr):
    image = tl.program_id(0).to(tl.int64) * height * width
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < height * width
    y = at // width
    total = tl.zeros([block], tl.float64)
    for k in range(count):
        above = tl.load(rows + k)
        inside = written & (y >= above) & (y - above < height)
        total += tl.load(weights + k) * tl.load(layers + image + (at - above * width), mask=inside, other=0)
    tl.store(out + image + at, total, mask=written)


def run_down(layers: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    """As `Ops.run_down`; how many rows above, int32, and how much of them, float64."""
    count, height, width = layers.shape
    out = torch.empty(layers.shape, dtype=torch.float64, device=layers.device)
    grid = (count, triton.cdiv(height * width, _BLOCK))
    _run_down[grid](
        layers.contiguous(), rows, weights, out, height, width, len(rows), _BLOCK, enable_fp_fusion=False
    )
    return out


@triton.jit(do_not_specialize=["red", "green", "blue"])
def _paint(
    images,
    masks,
    out,
    size,
    red,
    green,
    blue,
    COVER: tl.constexpr,
    CHANNELS: tl.constexpr,
    NEAREST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    at, inside, value, coverage = with_field(images, masks, size, CHANNELS, BLOCK)
    channel = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % CHANNELS
    color = tl.where(channel == 0, red, tl.where(channel == 1, green, blue))
    kept = 1.0 - coverage if COVER else coverage * 0 + 1.0
    tl.store(out + at, to_byte(tl.fma(value, kept, coverage * color), NEAREST), mask=inside)


def paint(images: Tensor, masks: Tensor, color: tuple[float, ...], cover: bool, nearest: bool) -> Tensor:
    """x + m·color, or x·(1 - m) + m·color."""
    red, green, blue = color if len(color) == 3 else color * 3
    out = torch.empty_like(images)
    size = math.prod(images.shape[1:])
    _paint[(triton.cdiv(size, 2048), len(images))](
        images,
        masks.contiguous(),
        out,
        size,
        float(red),
        float(green),
        float(blue),
        cover,
        images.shape[-1],
        nearest,
        2048,
        **EXACTLY,
    )
    return out
