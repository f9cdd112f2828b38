"""JPEG encoding and decoding with the integer arithmetic of libjpeg-turbo, in Numba.

What a file of the baseline format stores is lossless, so nothing is written: colors are turned, halved,
transformed and rounded as the encoder does, and turned back as the decoder does, with `islow` transforms and
the smooth enlargement of the color planes. Every value is that of the library.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.compiled import copy_values, inlined, kernel, take_apart
from beaufort.corruptions._kernels.cpu.jpeg_blocks import BLOCKS, round_trip, scales_of
from beaufort.corruptions._kernels.cpu.vectors import add, mul, shr

i32, u8, u16, u32 = np.int32, np.uint8, np.uint16, np.uint32

NARROW = 4
"""Columns up to which the library enlarges colors by repeating them, down and across, and not smoothly."""

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
    """Return the standard tables at a quality, `(2, 64)`: luminance and chrominance, row by row."""
    quality = min(max(quality, 1), 100)
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    tables = np.array([[int(word) for word in text.split()] for text in (_LUMA, _CHROMA)])
    steps: NDArray[np.int32] = np.clip((tables * scale + 50) // 100, 1, 255).astype(np.int32)
    return steps


@lru_cache(maxsize=128)
def _tables(quality: int) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    steps = quantization_steps(quality)
    return steps, *scales_of(steps)


@inlined
def _plane(height, width):
    """Allocate the blocks of a plane: its row y is in row y % 8, after the rows y - 8, y - 16, …"""
    blocks = (height + 7) // 8 * ((width + 7) // 8)
    return np.zeros((8, (blocks + BLOCKS - 1) // BLOCKS * BLOCKS * 8), np.uint8)


@inlined
def _row(plane, y, width):
    """Row y of a plane whose rows are so many bytes, a multiple of 8."""
    return plane[y % 8, y // 8 * width : (y // 8 + 1) * width]


@inlined
def _repeat_last_row(plane, height, width):
    """Fill the last blocks."""
    for y in range(height, (height + 7) // 8 * 8):
        copy_values(_row(plane, height - 1, width), _row(plane, y, width))


@inlined
def _weighed(r, g, b, red, green, blue, offset):
    return shr(add(add(mul(r, red), mul(g, green)), add(mul(b, blue), offset)), 16)


@inlined
def _halve(sums, rows, out):
    """Average 2 × 2 values, rounded down and up alternately; a word holds two sums of a column."""
    for x in range(out.size):
        total = add(sums[x] & i32(0xFFFF), shr(sums[x], 16))
        out[x] = u8(shr(add(mul(total, rows), i32(1 + (x & 1))), 2))


@kernel
def _to_planes(image, luma, across, chroma, wide):
    """Return the luminance, and the chrominance at half the size: blue in the left half of each row."""
    height, width = image.shape[:2]
    pairs = np.zeros(wide, np.int32)
    sums = pairs.view(np.uint16)
    blues, reds = sums[:wide], sums[wide:]
    red_bytes, green_bytes, blue_bytes = np.empty((3, width), np.uint8)
    pixels = image.reshape(height, 3 * width)
    for y in range(height):
        target = _row(luma, y, across)
        take_apart(pixels[y], red_bytes, green_bytes, blue_bytes)
        for x in range(width):
            r, g, b = i32(red_bytes[x]), i32(green_bytes[x]), i32(blue_bytes[x])
            target[x] = u8(_weighed(r, g, b, 19595, 38470, 7471, 32768))
            blues[x] += u16(_weighed(r, g, b, -11059, -21709, 32768, 8421375))
            reds[x] += u16(_weighed(r, g, b, 32768, -27439, -5329, 8421375))
        target[width:] = target[width - 1]
        if y % 2 == 1 or y == height - 1:
            blues[width:], reds[width:] = blues[width - 1], reds[width - 1]
            _halve(pairs, i32(2 - y % 2), _row(chroma, y // 2, wide))  # an odd last row counts twice
            sums[:] = 0
    _repeat_last_row(luma, height, across)
    _repeat_last_row(chroma, (height + 1) // 2, wide)


@inlined
def _between(near, far, bias):
    """Three quarters of one sum and a quarter of another, of sums of four."""
    return u16(u16(3 * near + far + bias) >> u16(4))


@inlined
def _enlarge(near, far, half, sums, pairs):
    """Double the columns: three quarters of the nearest value and a quarter of the next, on both sides.

    Both colors are in a row; `half` is how many columns of each there are. Two neighbors make a word.
    """
    wide = near.size
    for x in range(wide):
        sums[x + 1] = u16(3 * u16(near[x]) + u16(far[x]))
    for x in range(wide):
        left = _between(sums[x + 1], sums[x], u16(8))
        pairs[x] = left | u16(_between(sums[x + 1], sums[x + 2], u16(7)) << u16(8))
    for first in (0, wide // 2):  # at the ends, the pixel is its own neighbor
        last = first + half - 1
        left = u16(_between(sums[first + 1], sums[first + 1], u16(8)))
        pairs[first] = (pairs[first] & u16(0xFF00)) | left
        right = u16(_between(sums[last + 1], sums[last + 1], u16(7)))
        pairs[last] = (pairs[last] & u16(0xFF)) | u16(right << u16(8))


@inlined
def _repeat_twice(row, pairs):
    """Double the columns by repeating each value."""
    for x in range(row.size):
        pairs[x] = u16(row[x]) | u16(u16(row[x]) << u16(8))


@inlined
def _byte(value):
    return u8(min(max(value, i32(0)), i32(255)))


@kernel
def _to_colors(luma, across, chroma, wide, out):
    height, width = out.shape[:2]
    half, last = (width + 1) // 2, (height - 1) // 2
    sums, pairs = np.zeros(wide + 2, np.uint16), np.empty(wide, np.uint16)
    colors = pairs.view(np.uint8)
    blues, reds = colors[:wide], colors[wide:]
    pixels = out.reshape(height, 3 * width)
    for y in range(height):
        near = y // 2
        if width > NARROW:
            far = min(max(near + y % 2 * 2 - 1, 0), last)
            _enlarge(_row(chroma, near, wide), _row(chroma, far, wide), half, sums, pairs)
        else:
            _repeat_twice(_row(chroma, near, wide), pairs)
        source, target = _row(luma, y, across), pixels[y]
        for x in range(width):
            bright, b, r = i32(source[x]), i32(blues[x]), i32(reds[x])
            green = _weighed(r, i32(0), b, -46802, 0, -22554, 32768 + 128 * (46802 + 22554))
            target[3 * x] = _byte(add(bright, shr(add(mul(r, 91881), 32768 - 128 * 91881), 16)))
            target[3 * x + 1] = _byte(add(bright, green))
            target[3 * x + 2] = _byte(add(bright, shr(add(mul(b, 116130), 32768 - 128 * 116130), 16)))


@kernel
def _jpeg(images, steps, scales, halves, out):
    height, width, channels = images.shape[1:]
    across, wide = (width + 7) // 8 * 8, (width + 15) // 16 * 16
    luma = _plane(height, across)
    chroma = _plane((height + 1) // 2, wide)
    for i in range(images.shape[0]):
        if channels == 3:
            _to_planes(images[i], luma, across, chroma, wide)
            round_trip(chroma.view(np.uint32), steps[1], scales[1], halves[1])
        else:
            for y in range(height):
                target = _row(luma, y, across)
                copy_values(images[i, y, :, 0], target[:width])
                target[width:] = target[width - 1]
            _repeat_last_row(luma, height, across)
        round_trip(luma.view(np.uint32), steps[0], scales[0], halves[0])
        if channels == 3:
            _to_colors(luma, across, chroma, wide, out[i])
        else:
            for y in range(height):
                copy_values(_row(luma, y, across), out[i, y, :, 0])


def jpeg(images: Bytes, quality: int) -> Bytes:
    images = np.ascontiguousarray(images)
    out = np.empty_like(images)
    _jpeg(images, *_tables(int(quality)), out)
    return out
