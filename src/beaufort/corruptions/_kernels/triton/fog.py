"""Fractals and haze as Triton kernels."""

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
    """As `Ops.plasma`, with the amplitude of each level."""
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


@triton.jit(do_not_specialize=["amount"])
def _haze(
    images,
    fields,
    brightest,
    out,
    size,
    amount,
    CHANNELS: tl.constexpr,
    NEAREST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    at, inside, value, field = with_field(images, fields, size, CHANNELS, BLOCK)
    top = tl.div_rn(tl.load(brightest + tl.program_id(1)).to(tl.float32), 255.0)
    gain = tl.div_rn(top, top + amount)
    made = tl.fma(value, gain + value * 0, field * (gain * amount * 255.0))
    tl.store(out + at, to_byte(made, NEAREST), mask=inside)


def haze(images: Tensor, fields: Tensor, brightest: Tensor, amount: float, nearest: bool) -> Tensor:
    """(x + a·P)·M / (M + a)."""
    out = torch.empty_like(images)
    size = math.prod(images.shape[1:])
    _haze[(triton.cdiv(size, 2048), len(images))](
        images,
        fields.contiguous(),
        brightest,
        out,
        size,
        float(amount),
        images.shape[-1],
        nearest,
        2048,
        **EXACTLY,
    )
    return out
