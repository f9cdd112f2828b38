"""Brightness, contrast and saturation with Numba."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes
from beaufort.ops._numba import kernel, to_byte
from beaufort.ops.values._cpu import look_up

__all__ = ["brighten", "brighter", "lower_contrast", "saturate_colors"]

i32, f32, u8 = np.int32, np.float32, np.uint8


@kernel
def _lower_contrast(images, factor, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    offset = np.empty(line, np.float32)
    sums = np.empty(line, np.uint32)
    totals = np.empty(channels, np.float64)
    for i in range(images.shape[0]):
        sums[:] = 0
        for y in range(height):
            source = images[i, y].reshape(line)
            for x in range(line):
                sums[x] += np.uint32(source[x])
        totals[:] = 0
        for x in range(line):
            totals[x % channels] += np.float64(sums[x])
        for x in range(line):
            mean = totals[x % channels] / (height * width)
            offset[x] = f32(mean - mean * factor)
        scale = f32(factor)
        for y in range(height):
            source = images[i, y].reshape(line)
            target = out[i, y].reshape(line)
            for x in range(line):
                target[x] = to_byte(f32(source[x]) * scale + offset[x], nearest)


def lower_contrast(images: Bytes, factor: float, *, nearest: bool = False) -> Bytes:
    """(x - μ)·c + μ with μ the mean of the channel."""
    out = np.empty_like(images)
    _lower_contrast(images, factor, nearest, out)
    return out


@kernel
def _brighten(images, ratio, black, out):
    pixels = images.reshape(images.size // 3, 3)
    bright = out.reshape(images.size // 3, 3)
    for i in range(len(pixels)):
        red, green, blue = pixels[i, 0], pixels[i, 1], pixels[i, 2]
        value = max(red, green, blue)
        gain = ratio[value]
        lift = black if value == 0 else f32(0)
        bright[i, 0] = u8(i32(f32(red) * gain + lift))
        bright[i, 1] = u8(i32(f32(green) * gain + lift))
        bright[i, 2] = u8(i32(f32(blue) * gain + lift))


def brighten(images: Bytes, amount: float) -> Bytes:
    """V ← clip(V + c) in HSV, which scales R, G and B by V'/V; black becomes grey."""
    after = np.minimum(np.arange(256) / 255 + amount, 1) * 255
    if images.shape[-1] == 1:
        return look_up(images, after.astype(u8))
    out = np.empty_like(images)
    _brighten(images, brighter(after.tobytes()), f32(after[0]), out)
    return out


@lru_cache(maxsize=32)
def brighter(after: bytes) -> NDArray[np.float32]:
    """V'/V for each V, a hair off where single precision would cut V' off to another level."""
    wanted = np.frombuffer(after, np.float64)[1:]
    value = np.arange(1, 256, dtype=np.float32)
    ratio = (wanted / value).astype(np.float32)
    for _ in range(4):
        made, level = np.trunc(value * ratio), np.trunc(wanted)
        ratio = np.where(made < level, np.nextafter(ratio, f32(np.inf)), ratio)
        ratio = np.where(made > level, np.nextafter(ratio, f32(0)), ratio)
    return np.concatenate([np.zeros(1, np.float32), ratio])


@kernel
def _saturate(images, gain, lift, out):
    pixels = images.reshape(images.size // 3, 3)
    vivid = out.reshape(images.size // 3, 3)
    grey_share = min(max(lift, f32(0)), f32(1))
    for i in range(len(pixels)):
        red, green, blue = f32(pixels[i, 0]), f32(pixels[i, 1]), f32(pixels[i, 2])
        value = max(red, green, blue)
        spread = value - min(red, green, blue)
        if spread > f32(0):
            inverse = value / spread  # 1 / S
            ratio = min(gain + lift * inverse, inverse)
            red = value - (value - red) * ratio
            green = value - (value - green) * ratio
            blue = value - (value - blue) * ratio
        else:
            green = value - value * grey_share
            blue = green
        vivid[i, 0] = to_byte(red, False)
        vivid[i, 1] = to_byte(green, False)
        vivid[i, 2] = to_byte(blue, False)


def saturate_colors(images: Bytes, gain: float, lift: float) -> Bytes:
    """S ← clip(a·S + b) in HSV: R, G, B ← V - (V - R, G, B)·S'/S; greys have hue 0, red."""
    out = np.empty_like(images)
    _saturate(images, f32(gain), f32(lift), out)
    return out
