"""JPEG there and back, with the integers of libjpeg-turbo, in Numba.

What a file of the baseline format stores is lossless, so nothing is written: colors are turned, halved,
transformed and rounded as the encoder does, and turned back as the decoder does, with `islow` transforms and
the smooth enlargement of the color planes. Every value is that of the library.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes
from beaufort.ops._numba import inlined, kernel, take_apart

__all__ = ["jpeg", "quantization_steps"]

i32, u8, u16, u32, u64, f32 = np.int32, np.uint8, np.uint16, np.uint32, np.uint64, np.float32

_LUMA = """
    16 11 10 16  24  40  51  61  12 12 14 19  26  58  60  55  14 13 16 24  40  57  69  56
    14 17 22 29  51  87  80  62  18 22 37 56  68 109 103  77  24 35 55 64  81 104 113  92
    49 64 78 87 103 121 120 101  72 92 95 98 112 100 103  99"""
_CHROMA = """
    17 18 24 47 99 99 99 99  18 21 26 66 99 99 99 99  24 26 56 99 99 99 99 99
    47 66 99 99 99 99 99 99  99 99 99 99 99 99 99 99  99 99 99 99 99 99 99 99
    99 99 99 99 99 99 99 99  99 99 99 99 99 99 99 99"""


@lru_cache(maxsize=128)
def quantization_steps(quality: int) -> NDArray[np.int32]:
    """The standard's tables at a quality, `(2, 64)`: of brightness and of color, row by row."""
    quality = min(max(quality, 1), 100)
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    tables = np.array([[int(word) for word in text.split()] for text in (_LUMA, _CHROMA)])
    steps: NDArray[np.int32] = np.clip((tables * scale + 50) // 100, 1, 255).astype(np.int32)
    return steps


_BLOCKS = 112
"""Blocks worked on at a time: their 64 values lie in as many rows, and loops over blocks vectorize."""


@inlined
def _odd(a, b, c, d):
    """The rotations that the odd halves of both transforms share."""
    e = i32((a + b + c + d) * 9633)
    ad, bc = i32(-7373 * (a + d)), i32(-20995 * (b + c))
    ac, bd = i32(e - 16069 * (a + c)), i32(e - 3196 * (b + d))
    return (
        i32(2446 * a + ad + ac),
        i32(16819 * b + bc + bd),
        i32(25172 * c + bc + ac),
        i32(12299 * d + ad + bd),
    )


@inlined
def _forward(work, at, step, first):
    """DCT of eight values, times √8; two more bits are kept between the first pass and the second."""
    x0, x1, x2, x3 = work[at], work[at + step], work[at + 2 * step], work[at + 3 * step]
    x4, x5, x6, x7 = work[at + 4 * step], work[at + 5 * step], work[at + 6 * step], work[at + 7 * step]
    bits = 11 if first else 15
    half = i32(1 << (bits - 1))
    for k in range(_BLOCKS):
        a, b, c, d = i32(x0[k] + x7[k]), i32(x1[k] + x6[k]), i32(x2[k] + x5[k]), i32(x3[k] + x4[k])
        e, f, g, h = i32(x3[k] - x4[k]), i32(x2[k] - x5[k]), i32(x1[k] - x6[k]), i32(x0[k] - x7[k])
        outer, inner, across, within = i32(a + d), i32(b + c), i32(a - d), i32(b - c)
        low, high = i32(outer + inner), i32(outer - inner)
        turned = i32((within + across) * 4433 + half)
        seven, five, three, one = _odd(e, f, g, h)
        x0[k] = i32(low << 2) if first else i32((low + 2) >> 2)
        x1[k] = i32(i32(one + half) >> bits)
        x2[k] = i32(i32(turned + across * 6270) >> bits)
        x3[k] = i32(i32(three + half) >> bits)
        x4[k] = i32(high << 2) if first else i32((high + 2) >> 2)
        x5[k] = i32(i32(five + half) >> bits)
        x6[k] = i32(i32(turned - within * 15137) >> bits)
        x7[k] = i32(i32(seven + half) >> bits)


@inlined
def _inverse(work, at, step, bits):
    x0, x1, x2, x3 = work[at], work[at + step], work[at + 2 * step], work[at + 3 * step]
    x4, x5, x6, x7 = work[at + 4 * step], work[at + 5 * step], work[at + 6 * step], work[at + 7 * step]
    half = i32(1 << (bits - 1))
    for k in range(_BLOCKS):
        turned = i32((x2[k] + x6[k]) * 4433)
        inner, outer = i32(turned - x6[k] * 15137), i32(turned + x2[k] * 6270)
        low, high = i32(((x0[k] + x4[k]) << 13) + half), i32(((x0[k] - x4[k]) << 13) + half)
        a, b, c, d = i32(low + outer), i32(high + inner), i32(high - inner), i32(low - outer)
        h, g, f, e = _odd(x7[k], x5[k], x3[k], x1[k])
        x0[k], x7[k] = i32(i32(a + e) >> bits), i32(i32(a - e) >> bits)
        x1[k], x6[k] = i32(i32(b + f) >> bits), i32(i32(b - f) >> bits)
        x2[k], x5[k] = i32(i32(c + g) >> bits), i32(i32(c - g) >> bits)
        x3[k], x4[k] = i32(i32(d + h) >> bits), i32(i32(d - h) >> bits)


@inlined
def _quantize(values, step):
    """Round to multiples of a step, halves up: the half more under the division is exact in float32."""
    scale, offset = f32(1) / f32(8 * step), f32(4 * step) + f32(0.5)
    for k in range(_BLOCKS):
        level = i32(i32((f32(abs(values[k])) + offset) * scale) * step)
        values[k] = level if values[k] >= 0 else i32(-level)


@inlined
def _shown(values):
    for k in range(_BLOCKS):
        values[k] = min(max(i32(values[k] + 128), i32(0)), i32(255))


@kernel
def _round_trip(words, steps):
    """Each 8 × 8 block of a plane transformed, divided by its steps, rounded, and all of that back.

    A word holds the eight bytes of one row of a block. Value (x, y) of all blocks is row 8·x + y of `work`.
    """
    across = words.shape[1]
    total = words.shape[0] // 8 * across
    work = np.zeros((64, _BLOCKS), np.int32)
    for start in range(0, total, _BLOCKS):
        stop = min(start + _BLOCKS, total)
        block = start
        while block < stop:
            column = block % across
            span = min(across - column, stop - block)
            for y in range(8):
                line = words[block // across * 8 + y, column : column + span]
                for x in range(8):
                    target, shift = work[8 * x + y, block - start :], u64(8 * x)
                    for k in range(span):
                        target[k] = i32(i32((line[k] >> shift) & u64(255)) - 128)
            block += span
        for y in range(8):
            _forward(work, y, 8, True)
        for x in range(8):
            _forward(work, 8 * x, 1, False)
        for x in range(8):
            for y in range(8):
                _quantize(work[8 * x + y], steps[8 * y + x])
        for x in range(8):
            _inverse(work, 8 * x, 1, 11)
        for y in range(8):
            _inverse(work, y, 8, 18)
        for i in range(64):
            _shown(work[i])
        block = start
        while block < stop:
            column, at = block % across, block - start
            span = min(across - column, stop - block)
            for y in range(8):
                line = words[block // across * 8 + y, column : column + span]
                a, b, c, d = work[y, at:], work[8 + y, at:], work[16 + y, at:], work[24 + y, at:]
                e, f, g, h = work[32 + y, at:], work[40 + y, at:], work[48 + y, at:], work[56 + y, at:]
                for k in range(span):
                    low = u32(a[k]) | u32(b[k]) << u32(8) | u32(c[k]) << u32(16) | u32(d[k]) << u32(24)
                    high = u32(e[k]) | u32(f[k]) << u32(8) | u32(g[k]) << u32(16) | u32(h[k]) << u32(24)
                    line[k] = u64(u32(low)) | u64(u32(high)) << u64(32)
            block += span


@inlined
def _repeat_edge(plane, height, width):
    """Fill the rest of a plane with its last column and its last row."""
    for y in range(height):
        plane[y, width:] = plane[y, width - 1]
    for y in range(height, plane.shape[0]):
        plane[y] = plane[height - 1]


@kernel
def _to_planes(image, luma, blue, red):
    """Brightness, and the two colors at half the size: means of 2 × 2, rounded down and up in turn."""
    height, width = image.shape[:2]
    wide = 2 * blue.shape[1]
    blues, reds = np.zeros(wide, np.uint16), np.zeros(wide, np.uint16)
    red_bytes, green_bytes, blue_bytes = np.empty((3, width), np.uint8)
    for y in range(height):
        pixels, target = image[y].reshape(3 * width), luma[y]
        take_apart(pixels, red_bytes, green_bytes, blue_bytes)
        for x in range(width):
            r, g, b = i32(red_bytes[x]), i32(green_bytes[x]), i32(blue_bytes[x])
            target[x] = u8(i32(19595 * r + 38470 * g + 7471 * b + 32768) >> 16)
        for x in range(width):
            r, g, b = i32(red_bytes[x]), i32(green_bytes[x]), i32(blue_bytes[x])
            blues[x] += u16(i32(-11059 * r - 21709 * g + 32768 * b + 8421375) >> 16)
            reds[x] += u16(i32(32768 * r - 27439 * g - 5329 * b + 8421375) >> 16)
        if y % 2 == 0 and y < height - 1:
            continue
        times = u16(2 - y % 2)  # an odd last row counts twice
        blues[width:], reds[width:] = blues[width - 1], reds[width - 1]
        blue_row, red_row = blue[y // 2], red[y // 2]
        for x in range(wide // 2):
            offset = u16(1 + x % 2)
            blue_row[x] = u8(u16(times * (blues[2 * x] + blues[2 * x + 1]) + offset) >> u16(2))
            red_row[x] = u8(u16(times * (reds[2 * x] + reds[2 * x + 1]) + offset) >> u16(2))
        blues[:], reds[:] = 0, 0
    _repeat_edge(luma, height, width)
    _repeat_edge(blue, (height + 1) // 2, wide // 2)
    _repeat_edge(red, (height + 1) // 2, wide // 2)


@inlined
def _enlarge(near, far, sums, out):
    """Twice as many columns: three quarters of the nearest value, a quarter of the next, each way."""
    half = sums.size - 2
    for x in range(half):
        sums[x + 1] = u16(3 * u16(near[x]) + u16(far[x]))
    sums[0], sums[half + 1] = sums[1], sums[half]
    for x in range(half):
        middle = u16(3 * sums[x + 1])
        out[2 * x] = i32(u16(middle + sums[x] + u16(8)) >> u16(4)) - i32(128)
        out[2 * x + 1] = i32(u16(middle + sums[x + 2] + u16(7)) >> u16(4)) - i32(128)


@inlined
def _byte(value):
    return u8(min(max(value, i32(0)), i32(255)))


@kernel
def _to_colors(luma, blue, red, out):
    height, width = out.shape[:2]
    half = (width + 1) // 2
    last = (height - 1) // 2
    sums = np.empty(half + 2, np.uint16)
    blues, reds = np.empty(2 * half, np.int32), np.empty(2 * half, np.int32)
    for y in range(height):
        near = y // 2
        far = min(max(near + y % 2 * 2 - 1, 0), last)
        _enlarge(blue[near], blue[far], sums, blues)
        _enlarge(red[near], red[far], sums, reds)
        source, target = luma[y], out[y].reshape(3 * width)
        for x in range(width):
            bright, b, r = i32(source[x]), blues[x], reds[x]
            target[3 * x] = _byte(i32(bright + (i32(91881 * r + 32768) >> 16)))
            target[3 * x + 1] = _byte(i32(bright + (i32(-22554 * b - 46802 * r + 32768) >> 16)))
            target[3 * x + 2] = _byte(i32(bright + (i32(116130 * b + 32768) >> 16)))


@kernel
def _jpeg(images, steps, color_steps, out):
    height, width, channels = images.shape[1:]
    luma = np.empty(((height + 7) // 8 * 8, (width + 7) // 8 * 8), np.uint8)
    blue = np.empty(((height + 15) // 16 * 8, (width + 15) // 16 * 8), np.uint8)
    red = np.empty_like(blue)
    for i in range(images.shape[0]):
        if channels == 3:
            _to_planes(images[i], luma, blue, red)
            _round_trip(blue.view(np.uint64), color_steps)
            _round_trip(red.view(np.uint64), color_steps)
        else:
            luma[:height, :width] = images[i, :, :, 0]
            _repeat_edge(luma, height, width)
        _round_trip(luma.view(np.uint64), steps)
        if channels == 3:
            _to_colors(luma, blue, red, out[i])
        else:
            out[i, :, :, 0] = luma[:height, :width]


def jpeg(images: Bytes, quality: int) -> Bytes:
    """Baseline JPEG, 4:2:0, standard tables; one channel stays one channel."""
    out = np.empty_like(images)
    _jpeg(images, *quantization_steps(int(quality)), out)
    return out
