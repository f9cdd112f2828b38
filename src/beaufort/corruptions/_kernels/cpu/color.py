"""Brightness, contrast and saturation with Numba."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.compiled import inlined, kernel, put_together, take_apart
from beaufort.corruptions._kernels.cpu.values import look_up

i32, f32, u8, u16 = np.int32, np.float32, np.uint8, np.uint16


_FEW = 256
"""Rows whose sums fit 16 bits."""


@inlined
def _sum_rows(rows, sums):
    """Sum each column, several 16-bit sums per vector and four rows at a time."""
    few, fours = np.zeros(sums.size, np.uint16), len(rows) // 4 * 4
    for y in range(0, fours, 4):
        a, b, c, d = rows[y], rows[y + 1], rows[y + 2], rows[y + 3]
        for x in range(few.size):
            few[x] += u16(u16(a[x]) + u16(b[x])) + u16(u16(c[x]) + u16(d[x]))
    for y in range(fours, len(rows)):
        row = rows[y]
        for x in range(few.size):
            few[x] += u16(row[x])
    for x in range(few.size):
        sums[x] += few[x]


@kernel
def _lower_contrast(images, factor, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    offset, scale = np.empty(line, np.float32), f32(factor)
    sums = np.empty(line, np.int64)
    for i in range(images.shape[0]):
        rows, lines = images[i].reshape(height, line), out[i].reshape(height, line)
        sums[:] = 0
        for top in range(0, height, _FEW):
            _sum_rows(rows[top : top + _FEW], sums)
        for c in range(channels):
            total = 0
            for x in range(c, line, channels):
                total += sums[x]
            mean = total / (height * width)
            offset[c::channels] = f32(mean - mean * factor)
        for y in range(height):
            source, target = rows[y], lines[y]
            for x in range(line):
                value = f32(source[x]) * scale + offset[x]
                whole = i32(np.rint(value) if nearest else value)
                target[x] = u8(min(max(whole, i32(0)), i32(255)))  # faster than to clip the value


def lower_contrast(images: Bytes, factor: float, *, nearest: bool = False) -> Bytes:
    out = np.empty_like(images)
    _lower_contrast(images, factor, nearest, out)
    return out


_PIXELS = 512
"""Pixels whose three colors are taken apart, worked on in vectors, and put together again."""


@kernel
def _brighten(images, ratio, black, out):
    source, target = images.reshape(images.size), out.reshape(images.size)
    red, green, blue = np.zeros((3, _PIXELS), np.uint8)
    value, gain = np.empty(_PIXELS, np.uint8), np.empty(_PIXELS, np.float32)
    for start in range(0, images.size, 3 * _PIXELS):
        take_apart(source[start : start + 3 * _PIXELS], red, green, blue)
        for x in range(_PIXELS):
            value[x] = max(red[x], green[x], blue[x])
        for x in range(_PIXELS):
            gain[x] = ratio[value[x]]
        for x in range(_PIXELS):
            lift = black if value[x] == 0 else f32(0)
            red[x] = u8(i32(f32(red[x]) * gain[x] + lift))
            green[x] = u8(i32(f32(green[x]) * gain[x] + lift))
            blue[x] = u8(i32(f32(blue[x]) * gain[x] + lift))
        put_together(red, green, blue, target[start : start + 3 * _PIXELS])


def brighten(images: Bytes, amount: float) -> Bytes:
    after, ratio = brighter(amount)
    if images.shape[-1] == 1:
        return look_up(images, after.astype(u8))
    out = np.empty_like(images)
    _brighten(images, ratio, f32(after[0]), out)
    return out


@lru_cache(maxsize=32)
def brighter(amount: float) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Return V' for each V, and V'/V, adjusted where truncation in single precision would change V'."""
    after = np.clip(np.arange(256) / 255 + amount, 0, 1) * 255
    wanted = after[1:]
    value = np.arange(1, 256, dtype=np.float32)
    ratio = (wanted / value).astype(np.float32)
    for _ in range(4):
        made, level = np.trunc(value * ratio), np.trunc(wanted)
        ratio = np.where(made < level, np.nextafter(ratio, f32(np.inf)), ratio)
        ratio = np.where(made > level, np.nextafter(ratio, f32(0)), ratio)
    return after, np.concatenate([np.zeros(1, np.float32), ratio])


@kernel
def _saturate(images, gain, lift, out):
    source, target = images.reshape(images.size), out.reshape(images.size)
    reds, greens, blues = np.zeros((3, _PIXELS), np.uint8)
    gray_fraction = min(max(lift, f32(0)), f32(1))
    for start in range(0, images.size, 3 * _PIXELS):
        take_apart(source[start : start + 3 * _PIXELS], reds, greens, blues)
        for x in range(_PIXELS):
            red, green, blue = reds[x], greens[x], blues[x]
            high, low = max(red, green, blue), min(red, green, blue)
            value, colored = f32(high), high > low
            inverse = value / (f32(u8(high - low)) if colored else f32(1))  # 1 / S
            ratio = max(min(gain + lift * inverse, inverse), f32(0))  # keeps values within 0…255
            gray = value - value * gray_fraction
            reds[x] = u8(i32(value - f32(u8(high - red)) * ratio))
            greens[x] = u8(i32(value - f32(u8(high - green)) * ratio if colored else gray))
            blues[x] = u8(i32(value - f32(u8(high - blue)) * ratio if colored else gray))
        put_together(reds, greens, blues, target[start : start + 3 * _PIXELS])


def saturate_colors(images: Bytes, gain: float, lift: float) -> Bytes:
    out = np.empty_like(images)
    _saturate(images, f32(gain), f32(lift), out)
    return out
