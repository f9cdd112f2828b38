"""Triton kernels of fog and snow in `weather`.

Compiled without fused products but where `tl.fma` asks for them, so that roundings are those of the CPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["flakes", "plasma", "snowfall"]

_BLOCK = 512


@triton.jit
def _plasma(noise, amplitudes, maps, out, count, side, height, width, levels, block: tl.constexpr):
    """Whole maps, one after the other, in the program's own two buffers of (side / 2)² points.

    A level is one sweep: each cell makes its own center and, once more, those above and to the left,
    which its two edges need. The last level goes to `out`, where the crop is.
    """
    half = side // 2
    first = tl.program_id(0).to(tl.int64)
    buffer = maps + first * 2 * half * half
    lane = tl.arange(0, block)
    for more in range(0, count - tl.program_id(0), tl.num_programs(0)):
        source = noise + (first + more) * (side * side - 1)
        target = out + (first + more) * height * width
        tl.store(buffer + half * half + lane, tl.zeros([block], tl.float32), mask=lane == 0)
        lowest, highest = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32)
        cells = 1
        for level in range(levels):
            tl.debug_barrier()
            size = cells * cells
            last = cells - 1
            amplitude = tl.load(amplitudes + level)
            coarse = buffer + (1 - level % 2) * half * half
            fine = buffer + level % 2 * half * half
            for start in range(0, size, block):
                at = start + lane
                real = at < size
                y, x = at // cells, at & last
                up, low = ((y + last) & last) * cells, ((y + 1) & last) * cells
                left, right = (x + last) & last, (x + 1) & last
                here = y * cells
                above = tl.load(coarse + up + x, mask=real, other=0)
                above_right = tl.load(coarse + up + right, mask=real, other=0)
                before = tl.load(coarse + here + left, mask=real, other=0)
                point = tl.load(coarse + at, mask=real, other=0)
                beside = tl.load(coarse + here + right, mask=real, other=0)
                below_left = tl.load(coarse + low + left, mask=real, other=0)
                below = tl.load(coarse + low + x, mask=real, other=0)
                below_right = tl.load(coarse + low + right, mask=real, other=0)
                center = ((point + beside) + (below + below_right)) * 0.25
                center = tl.fma(tl.load(source + at, mask=real, other=0), amplitude, center)
                over = ((above + above_right) + (point + beside)) * 0.25
                over = tl.fma(tl.load(source + up + x, mask=real, other=0), amplitude, over)
                aside = ((before + point) + (below_left + below)) * 0.25
                aside = tl.fma(tl.load(source + here + left, mask=real, other=0), amplitude, aside)
                on_row = ((center + over) + (point + beside)) * 0.25
                on_row = tl.fma(tl.load(source + size + at, mask=real, other=0), amplitude, on_row)
                on_column = ((center + aside) + (point + below)) * 0.25
                on_column = tl.fma(tl.load(source + 2 * size + at, mask=real, other=0), amplitude, on_column)
                least = tl.minimum(center, tl.minimum(on_row, on_column))
                most = tl.maximum(center, tl.maximum(on_row, on_column))
                lowest = tl.where(real, tl.minimum(lowest, least), lowest)
                highest = tl.where(real, tl.maximum(highest, most), highest)
                if level < levels - 1:
                    place = fine + 4 * here + 2 * x
                    tl.store(place, point, mask=real)
                    tl.store(place + 1, on_row, mask=real)
                    tl.store(place + 2 * cells, on_column, mask=real)
                    tl.store(place + 2 * cells + 1, center, mask=real)
                else:
                    place = target + 2 * y * width + 2 * x
                    seen, seen_right = real & (2 * x < width), real & (2 * x + 1 < width)
                    tl.store(place, point, mask=seen & (2 * y < height))
                    tl.store(place + 1, on_row, mask=seen_right & (2 * y < height))
                    tl.store(place + width, on_column, mask=seen & (2 * y + 1 < height))
                    tl.store(place + width + 1, center, mask=seen_right & (2 * y + 1 < height))
            source += 3 * size
            cells *= 2
        tl.debug_barrier()
        low_point, high_point = tl.min(lowest, axis=0), tl.max(highest, axis=0)
        scale = tl.div_rn(
            tl.full([block], 1.0, tl.float32), high_point - low_point + tl.zeros([block], tl.float32)
        )
        for start in range(0, height * width, block):
            at = start + lane
            value = tl.load(target + at, mask=at < height * width, other=0)
            tl.store(target + at, (value - low_point) * scale, mask=at < height * width)
        tl.debug_barrier()


def plasma(noise: Tensor, amplitudes: Tensor, side: int, height: int, width: int) -> Tensor:
    """As `weather.plasma`, with the amplitude of each level."""
    count = len(noise)
    out = torch.empty((count, height, width), dtype=torch.float32, device=noise.device)
    half = side // 2
    programs = min(count, _PROGRAMS, max(1, _SCRATCH // (8 * half * half)))
    maps = torch.empty((programs, 2, half, half), dtype=torch.float32, device=noise.device)
    _plasma[(programs,)](
        noise,
        amplitudes,
        maps,
        out,
        count,
        side,
        height,
        width,
        len(amplitudes),
        _BLOCK,
        num_warps=8,
        enable_fp_fusion=False,
    )
    return out


_PROGRAMS = 1056
"""How many maps are made at a time: eight for each of the 132 processors of a large GPU."""

_SCRATCH = 1 << 29
"""And how many bytes they may take."""


@triton.jit
def _flakes(normals, places, shares, out, height, width, block: tl.constexpr):
    image = tl.program_id(0).to(tl.int64) * height * width
    at = tl.program_id(1) * block + tl.arange(0, block)
    written = at < height * width
    y, x = at // width, at % width
    top = tl.load(places + y, mask=written, other=0)
    left = tl.load(places + height + x, mask=written, other=0)
    low, right = tl.minimum(top + 1, height - 1) * width, tl.minimum(left + 1, width - 1)
    top *= width
    t = tl.load(shares + y, mask=written, other=0)
    s = tl.load(shares + height + x, mask=written, other=0)
    constants = shares + height + width
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


def flakes(normals: Tensor, places: Tensor, shares: Tensor) -> Tensor:
    """As `weather.flakes`; rows and columns, then their shares and mean, spread, threshold in double."""
    count, height, width = normals.shape
    out = torch.empty((count, height, width, 1), dtype=torch.uint8, device=normals.device)
    grid = (count, triton.cdiv(height * width, _BLOCK))
    _flakes[grid](normals, places, shares, out, height, width, _BLOCK, enable_fp_fusion=False)
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
    mix, share = tl.load(constants), tl.load(constants + 1)
    grey = value
    if channels == 3:
        red = tl.load(source + 3 * pixel, mask=written, other=0).to(tl.float32)
        green = tl.load(source + 3 * pixel + 1, mask=written, other=0).to(tl.float32)
        blue = tl.load(source + 3 * pixel + 2, mask=written, other=0).to(tl.float32)
        grey = tl.fma(red, tl.load(constants + 2), green * tl.load(constants + 3))
        grey = tl.fma(blue, tl.load(constants + 4), grey)
    pale = tl.maximum(value, tl.fma(grey, 1.5, 127.5))
    layer = layers + image * area
    both = tl.load(layer + pixel, mask=written, other=0).to(tl.int32)
    both += tl.load(layer + area - 1 - pixel, mask=written, other=0).to(tl.int32)
    snowy = tl.fma(value, mix, pale * share) + both.to(tl.float32)
    snowy = tl.minimum(tl.maximum(snowy, 0.0), 255.0)
    if nearest:
        snowy = (snowy + 8388608.0) - 8388608.0  # 2²³ leaves no room for a fraction
    tl.store(out + image * area * channels + at, snowy.to(tl.uint8), mask=written)


def snowfall(images: Tensor, layers: Tensor, constants: Tensor, nearest: bool) -> Tensor:
    """As `weather.snowfall`; mix, 1 - mix and the weights of red, green and blue in float32."""
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
