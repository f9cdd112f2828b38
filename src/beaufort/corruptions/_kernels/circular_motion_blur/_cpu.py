"""Turning pictures, with Numba."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import spline_filter1d

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import inlined, kernel, to_byte

ROUNDING = 1e-6
"""More than the sums are off by: a flat picture stays as it is."""


@inlined
def _mirrored(at, size):
    """An index beyond the border, as one inside."""
    if at < 0:
        at = -at
    return 2 * size - 2 - at if at >= size else at


@inlined
def _weights(t, out):
    """The four weights of a cubic spline at the fraction t."""
    s = 1 - t
    out[0] = s * s * s / 6
    out[1] = (4 - 6 * t * t + 3 * t * t * t) / 6
    out[2] = (4 - 6 * s * s + 3 * s * s * s) / 6
    out[3] = t * t * t / 6


@kernel
def _turned(coefficients, angles, weights, out):
    count, height, width, channels = coefficients.shape
    middle_row, middle_column = (height - 1) / 2, (width - 1) / 2
    down, across, total = np.empty(4), np.empty(4), np.empty(channels)
    for y in range(height):
        for x in range(width):
            for i in range(count):
                total[:] = 0
                for k in range(angles.size):
                    cosine, sine = math.cos(angles[k]), math.sin(angles[k])
                    v, u = y - middle_row, x - middle_column
                    row = cosine * v + sine * u + middle_row
                    column = cosine * u - sine * v + middle_column
                    if row < 0 or row > height - 1 or column < 0 or column > width - 1:
                        continue
                    top, left = math.floor(row), math.floor(column)
                    _weights(row - top, down)
                    _weights(column - left, across)
                    for a in range(4):
                        r = _mirrored(top - 1 + a, height)
                        for b in range(4):
                            c = _mirrored(left - 1 + b, width)
                            share = weights[k] * down[a] * across[b]
                            for channel in range(channels):
                                total[channel] += share * coefficients[i, r, c, channel]
                for channel in range(channels):
                    out[i, y, x, channel] = to_byte(total[channel] + ROUNDING, False)


def turned(images: Bytes, angles: Array, weights: Array) -> Bytes:
    """A weighted mean of copies that are turned by `angles`, in radians, with black outside.

    Between pixels a cubic spline runs through the values, mirrored at the borders.
    """
    rows = spline_filter1d(images.astype(np.float64), 3, axis=1)
    coefficients = spline_filter1d(rows, 3, axis=2)
    out = np.empty_like(images)
    _turned(coefficients, angles, weights, out)
    return out
