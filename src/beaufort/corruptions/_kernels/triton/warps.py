"""Warps as Triton kernels: a program works on a run of pixels of one image."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 256


@triton.jit
def _mix(a, b, d, e, s, t):
    """Between four neighbors: s of the way to the right, t of the way down."""
    upper = tl.fma(b - a, s, a)
    lower = tl.fma(e - d, s, d)
    return tl.fma(lower - upper, t, upper)


@triton.jit
def _byte(value, nearest: tl.constexpr):
    """Clip to 0…255 and cut the fraction off, or round half to even where `nearest`."""
    value = tl.minimum(tl.maximum(value, 0.0), 255.0)
    if nearest:
        value = (value + 8388608.0) - 8388608.0  # float32 has no fraction bits at 2²³
    return value.to(tl.uint8)


@triton.jit
def _inside(at, size, margin, border: tl.constexpr):
    """The pixels that stand at a whole coordinate and at the next; far outside, all is one pixel.

    The image is mirrored with the edge doubled (`reflect`) or without (`mirror`).
    """
    if border == "reflect":
        period = 2 * size
        last = period - 1
    else:
        period = tl.maximum(2 * size - 2, 1)
        last = period
    at = tl.minimum(tl.maximum(at, -margin), size + margin - 1).to(tl.int32)
    at = (at + margin // period * period + period) % period
    after = tl.where(at + 1 < period, at + 1, 0)
    return tl.where(at < size, at, last - at), tl.where(after < size, after, last - after)


@triton.jit
def _affine(
    images,
    maps,
    out,
    height,
    width,
    margin,
    channels: tl.constexpr,
    border: tl.constexpr,
    block: tl.constexpr,
):
    image = tl.program_id(0).to(tl.int64)
    pixel = tl.program_id(1) * block + tl.arange(0, block)
    line = width * channels
    written = pixel < height * width
    across, down = (pixel % width).to(tl.float64), (pixel // width).to(tl.float64)
    m = maps + image * 6
    from_x = tl.load(m) * across + (tl.load(m + 1) * down + tl.load(m + 2))
    from_y = tl.load(m + 3) * across + (tl.load(m + 4) * down + tl.load(m + 5))
    if border == "zero":
        from_x, from_y = from_x + 1, from_y + 1
    left, top = tl.floor(from_x), tl.floor(from_y)
    s, t = (from_x - left).to(tl.float32), (from_y - top).to(tl.float32)
    if border == "zero":
        seen = written & (from_x > 0) & (from_y > 0) & (from_x < width + 1) & (from_y < height + 1)
        left, top = tl.where(seen, left, 0).to(tl.int32) - 1, tl.where(seen, top, 0).to(tl.int32) - 1
        near, far, upper, lower = left, left + 1, top, top + 1
        first, second = seen & (left >= 0), seen & (left < width - 1)
        a_seen, b_seen = first & (top >= 0), second & (top >= 0)
        d_seen, e_seen = first & (top < height - 1), second & (top < height - 1)
    else:
        near, far = _inside(left, width, margin, border)
        upper, lower = _inside(top, height, margin, border)
        a_seen, b_seen, d_seen, e_seen = written, written, written, written
    near, far, upper, lower = near * channels, far * channels, upper * line, lower * line
    source = images + image * height * line
    target = out + image * height * line + pixel * channels
    for c in tl.static_range(channels):
        a = tl.load(source + (upper + near + c), mask=a_seen, other=0).to(tl.float32)
        b = tl.load(source + (upper + far + c), mask=b_seen, other=0).to(tl.float32)
        d = tl.load(source + (lower + near + c), mask=d_seen, other=0).to(tl.float32)
        e = tl.load(source + (lower + far + c), mask=e_seen, other=0).to(tl.float32)
        tl.store(target + c, _mix(a, b, d, e, s, t), mask=written)


def affine(images: Tensor, maps: Tensor, border: str) -> Tensor:
    """As `Ops.affine`; `maps` is float64 `(n, 2, 3)`."""
    count, height, width, channels = images.shape
    out = torch.empty(images.shape, dtype=torch.float32, device=images.device)
    grid = (count, triton.cdiv(height * width, _BLOCK))
    margin = 2 * max(height, width)
    _affine[grid](images, maps, out, height, width, margin, channels, border, _BLOCK, enable_fp_fusion=False)
    return out


@triton.jit
def _displace(
    images,
    right,
    down,
    out,
    height,
    width,
    margin,
    channels: tl.constexpr,
    nearest: tl.constexpr,
    block: tl.constexpr,
):
    image = tl.program_id(0).to(tl.int64)
    pixel = tl.program_id(1) * block + tl.arange(0, block)
    area, line = height * width, width * channels
    written = pixel < area
    from_x = (pixel % width).to(tl.float32) + tl.load(right + image * area + pixel, mask=written, other=0)
    from_y = (pixel // width).to(tl.float32) + tl.load(down + image * area + pixel, mask=written, other=0)
    left, top = tl.floor(from_x), tl.floor(from_y)
    s, t = from_x - left, from_y - top
    near, far = _inside(left, width, margin, "reflect")
    upper, lower = _inside(top, height, margin, "reflect")
    near, far, upper, lower = near * channels, far * channels, upper * line, lower * line
    source = images + image * height * line
    target = out + image * height * line + pixel * channels
    for c in tl.static_range(channels):
        a = tl.load(source + (upper + near + c), mask=written, other=0)
        b = tl.load(source + (upper + far + c), mask=written, other=0)
        d = tl.load(source + (lower + near + c), mask=written, other=0)
        e = tl.load(source + (lower + far + c), mask=written, other=0)
        tl.store(target + c, _byte(_mix(a, b, d, e, s, t), nearest), mask=written)


def displace(images: Tensor, right: Tensor, down: Tensor, nearest: bool) -> Tensor:
    """As `Ops.displace`."""
    count, height, width, channels = images.shape
    out = torch.empty(images.shape, dtype=torch.uint8, device=images.device)
    grid = (count, triton.cdiv(height * width, _BLOCK))
    margin = 2 * max(height, width)
    _displace[grid](
        images.contiguous(),
        right.contiguous(),
        down.contiguous(),
        out,
        height,
        width,
        margin,
        channels,
        nearest,
        _BLOCK,
        enable_fp_fusion=False,
    )
    return out


@triton.jit
def _displace_zero(images, right, down, out, height, width, channels: tl.constexpr, block: tl.constexpr):
    image = tl.program_id(0).to(tl.int64)
    pixel = tl.program_id(1) * block + tl.arange(0, block)
    area, line = height * width, width * channels
    written = pixel < area
    from_x = tl.load(right + image * area + pixel, mask=written, other=0).to(tl.float64) + pixel % width
    from_y = tl.load(down + image * area + pixel, mask=written, other=0).to(tl.float64) + pixel // width
    seen = written & (from_x >= 0) & (from_y >= 0) & (from_x <= width - 1) & (from_y <= height - 1)
    left, top = tl.floor(from_x), tl.floor(from_y)
    s, t = (from_x - left).to(tl.float32), (from_y - top).to(tl.float32)
    left, top = tl.where(seen, left, 0).to(tl.int32), tl.where(seen, top, 0).to(tl.int32)
    near, far = left * channels, tl.minimum(left + 1, width - 1) * channels
    upper, lower = top * line, tl.minimum(top + 1, height - 1) * line
    source = images + image * height * line
    target = out + image * height * line + pixel * channels
    for c in tl.static_range(channels):
        a = tl.load(source + (upper + near + c), mask=seen, other=0)
        b = tl.load(source + (upper + far + c), mask=seen, other=0)
        d = tl.load(source + (lower + near + c), mask=seen, other=0)
        e = tl.load(source + (lower + far + c), mask=seen, other=0)
        value = tl.where(seen, _mix(a, b, d, e, s, t), 0)
        tl.store(target + c, _byte(value, True), mask=written)


def displace_zero(images: Tensor, right: Tensor, down: Tensor) -> Tensor:
    """As `Ops.displace_zero`."""
    count, height, width, channels = images.shape
    out = torch.empty(images.shape, dtype=torch.uint8, device=images.device)
    grid = (count, triton.cdiv(height * width, _BLOCK))
    _displace_zero[grid](
        images.contiguous(),
        right.contiguous(),
        down.contiguous(),
        out,
        height,
        width,
        channels,
        _BLOCK,
        enable_fp_fusion=False,
    )
    return out
