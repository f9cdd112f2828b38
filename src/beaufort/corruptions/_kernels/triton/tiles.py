"""Helpers of all GPU filters: tiles of images, and loading and storing of their values.

A program works on a tile of one image: some rows, and some places in them, which are columns × channels, or
on places of a single row where they are looked up. Kernels are compiled without fused products; where the
processor's kernels fuse, `fma` is used. Most are not specialized to lines of a multiple of 16 bytes: they
read next to the position that they write, and threads that write 16 bytes would read far from each other.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

EXACTLY: dict[str, Any] = {"enable_fp_fusion": False}
"""How such a kernel is launched."""


@triton.jit
def tile(height, line, BH: tl.constexpr, BW: tl.constexpr):
    """The image that a program works on, its rows, the places in them, and which of these exist."""
    across = tl.cdiv(line, BW)
    tiles = tl.cdiv(height, BH) * across
    image = (tl.program_id(0) // tiles).to(tl.int64)
    within = tl.program_id(0) % tiles
    y = (within // across) * BH + tl.arange(0, BH)[:, None]
    x = (within % across) * BW + tl.arange(0, BW)[None, :]
    return image, y, x, (y < height) & (x < line)


@triton.jit
def row_tile(height, line, BW: tl.constexpr):
    """As `tile`, but a single row."""
    across = tl.cdiv(line, BW)
    row = tl.program_id(0) // across
    x = (tl.program_id(0) % across) * BW + tl.arange(0, BW)
    return (row // height).to(tl.int64), row % height, x, x < line


@triton.jit
def clamped(at, size):
    return tl.minimum(tl.maximum(at, 0), size - 1)


@triton.jit
def to_byte(value, NEAREST: tl.constexpr):
    value = tl.minimum(tl.maximum(value, 0.0), 255.0)
    if NEAREST:  # rounds half to even: larger floats are integers
        if value.dtype == tl.float64:
            value = (value + 4503599627370496.0) - 4503599627370496.0
        else:
            value = (value + 8388608.0) - 8388608.0
    return value.to(tl.int32).to(tl.uint8)


@triton.jit
def as_float(value):
    """Integers of 0 to 2²³ - 1 as they stand in the last bits of 2²³ + n; converting is slower."""
    return (value.to(tl.int32) | 0x4B000000).to(tl.float32, bitcast=True) - 8388608.0


def grid_of(count: int, height: int, line: int) -> tuple[tuple[int], dict[str, int]]:
    """The programs, and the tile of each."""
    wide = min(64, triton.next_power_of_2(line))
    high = min(1024 // wide, triton.next_power_of_2(height))
    shape = {"BH": high, "BW": wide, "num_warps": max(1, high * wide // 256)}
    return (count * triton.cdiv(height, high) * triton.cdiv(line, wide),), shape


def row_grid(count: int, height: int, line: int) -> tuple[tuple[int], dict[str, int]]:
    """As `grid_of`, a program for a row or a part of one."""
    wide = min(256, triton.next_power_of_2(line))
    return (count * height * triton.cdiv(line, wide),), {"BW": wide, "num_warps": max(1, wide // 128)}


@triton.jit
def with_field(images, fields, size, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """A run of values of one image: places, which of them exist, the values, the field at their pixels."""
    image = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    value = tl.load(images + image * size + at, mask=inside, other=0).to(tl.float32)
    field = tl.load(fields + image * (size // CHANNELS) + at // CHANNELS, mask=inside, other=0.0)
    return image * size + at, inside, value, field
