"""Strokes, with Numba."""

from __future__ import annotations

import math

import numpy as np

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import exact_kernel, kernel, to_byte


@exact_kernel
def opacity(r, c, last_r, last_c, out):
    """Write the opacity of one line at each pixel to `out`, `(h, w)`; -1 where it does not pass.

    A pixel that is visited twice has the later value.
    """
    height, width = out.shape
    out[:] = -1
    tall, wide = abs(last_r - r), abs(last_c - c)
    step_r, step_c = (1 if r < last_r else -1), (1 if c < last_c else -1)
    length = math.sqrt(wide * wide + tall * tall) if wide or tall else 1.0
    error = wide - tall
    while True:
        _put(out, r, c, height, width, abs(error - wide + tall) / length)
        before, old = error, c
        if 2 * before >= -wide:
            if c == last_c:
                break
            if before + tall < length:
                _put(out, r + step_r, c, height, width, abs(before + tall) / length)
            error -= tall
            c += step_c
        if 2 * before <= tall:
            if r == last_r:
                break
            if wide - before < length:
                _put(out, r, old + step_c, height, width, abs(wide - before) / length)
            error += wide
            r += step_r


@exact_kernel
def _put(out, r, c, height, width, value):
    if 0 <= r < height and 0 <= c < width:
        out[r, c] = 1 - value


f32 = np.float32


@kernel
def _strokes(images, segments, counts, unit, dash, out):
    height, width, channels = images.shape[1:]
    reach = 2.3 * (1 - math.exp(-1.0)) * unit
    canvas = np.empty((height, width), np.float32)
    for i in range(images.shape[0]):
        for c in range(channels):
            for y in range(height):
                for x in range(width):
                    canvas[y, x] = f32(images[i, y, x, c])
            for s in range(counts[i]):
                x0, y0, x1, y1 = segments[i, s, 0], segments[i, s, 1], segments[i, s, 2], segments[i, s, 3]
                if x0 == x1:
                    continue
                slope = (y1 - y0) / (x1 - x0)
                for x in range(max(math.floor(x0), 0), min(math.ceil(x1), width)):
                    if dash > 0 and int(x / dash) % 2 == 0:
                        continue
                    line = y0 + slope * (x - x0)
                    for y in range(
                        max(math.ceil(line - reach), 0), min(math.floor(line + reach) + 1, height)
                    ):
                        light = 1 + math.log(1 - abs(y - line) / (2.3 * unit))
                        if light > 0:
                            canvas[y, x] = min(canvas[y, x] + f32(light * 255), f32(255))
            for y in range(height):
                for x in range(width):
                    out[i, y, x, c] = to_byte(canvas[y, x], True)


def strokes(images: Bytes, segments: Array, counts: Array, *, unit: float = 1.0, dash: float = 0.0) -> Bytes:
    out = np.empty_like(images)
    _strokes(images, segments, counts, unit, dash, out)
    return out


@exact_kernel
def _gray_lines(ends, out):
    height, width, channels = out.shape[1:]
    opaque = np.empty((height, width))
    for i in range(out.shape[0]):
        for line in range(ends.shape[1]):
            r, c, last_r, last_c = ends[i, line]
            opacity(r, c, last_r, last_c, opaque)
            for y in range(height):
                for x in range(width):
                    o = opaque[y, x]
                    if o >= 0:
                        for k in range(channels):
                            out[i, y, x, k] = np.uint8((1 - o) * out[i, y, x, k] + o * 128)


def gray_lines(images: Bytes, ends: Array) -> Bytes:
    out = images.copy()
    _gray_lines(ends, out)
    return out
