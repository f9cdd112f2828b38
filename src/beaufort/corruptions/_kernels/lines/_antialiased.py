"""Antialiased lines between whole pixels, by Zingl's form of Bresenham's algorithm."""

from __future__ import annotations

import math

from beaufort._core.compiled import exact_kernel


@exact_kernel
def opacity(r, c, last_r, last_c, out):
    """How opaque one line is at each pixel, into `out`, `(h, w)`; -1 where it does not pass.

    A pixel that is met twice has the later value.
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
