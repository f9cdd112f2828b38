"""Motion along a line and about the center, with Numba."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes, read_only
from beaufort._core.compiled import exact_part, inlined, kernel, to_byte
from beaufort.corruptions._kernels.cpu.lanes import LANES, fma, load_floats, one, pointer, splat, store

f32 = np.float32


@inlined
def _pad(image, pad, padded):
    """Repeat the first and the last pixel of each row `pad` times."""
    height, width, channels = image.shape
    line = width * channels
    before, rows = pad * channels, image.reshape(height, line)
    for y in range(height):
        source, target = rows[y], padded[y]
        middle, after = target[before : before + line], target[before + line :]
        for x in range(line):
            middle[x] = source[x]
        for x in range(pad):
            for c in range(channels):
                target[x * channels + c] = source[c]
                after[x * channels + c] = source[line - channels + c]


@exact_part
def _weigh_row(padded, starts, weights, line, total):
    """Sum weighted rows of a padded image, each from its own start, four at a time."""
    values, sums, at, by = pointer(padded), pointer(total), pointer(starts), pointer(weights)
    taps = weights.size
    fours = taps // 4 * 4
    for x in range(0, line, LANES):
        lanes = splat(f32(1 / 514))
        for k in range(0, fours, 4):
            a, b = load_floats(values, one(at, k) + x), load_floats(values, one(at, k + 1) + x)
            c, d = load_floats(values, one(at, k + 2) + x), load_floats(values, one(at, k + 3) + x)
            first = fma(splat(one(by, k)), a, splat(one(by, k + 1)) * b)
            second = fma(splat(one(by, k + 2)), c, splat(one(by, k + 3)) * d)
            lanes += first + second
        for k in range(fours, taps):
            lanes = fma(splat(one(by, k)), load_floats(values, one(at, k) + x), lanes)
        store(sums, x, lanes)


@inlined
def _steps(way, length, out):
    """Return the distance of each tap in pixels, down or to the right; halves are rounded down."""
    for k in range(out.size):
        out[k] = int(np.ceil(k * way / length - 0.5))


@kernel
def _motion(images, weights, along, across, length, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    down, right = np.empty((2, weights.size), np.int64)
    reach = 0
    for i in range(images.shape[0]):
        _steps(along[i], length[i], right)
        reach = max(reach, abs(right[-1]))
    long = line + 2 * reach * channels
    values = np.empty(height * long + LANES, np.uint8)
    padded = values[: height * long].reshape(height, long)
    total = np.empty(line + LANES, np.float32)
    starts = np.empty(weights.size, np.int64)
    for i in range(images.shape[0]):
        _steps(across[i], length[i], down)
        _steps(along[i], length[i], right)
        _pad(images[i], reach, padded)
        targets = out[i].reshape(height, line)
        for y in range(height):
            for k in range(weights.size):
                row = min(max(y + down[k], 0), height - 1)
                starts[k] = row * long + (reach + right[k]) * channels
            _weigh_row(values, starts, weights, line, total)
            target = targets[y]
            for x in range(line):
                target[x] = to_byte(total[x], False)


def motion(images: Bytes, radius: float, sigma: float, angles_deg: Array) -> Bytes:
    weights = _half_gaussian(radius, sigma)
    radians, taps = np.deg2rad(np.asarray(angles_deg, np.float64)), weights.size
    along, across = taps * np.cos(radians), taps * np.sin(radians)  # rounds as ImageMagick does
    out = np.empty_like(images)
    _motion(read_only(images), weights, along, across, np.hypot(across, along), out)
    return out


@lru_cache(maxsize=64)
def _half_gaussian(radius: float, sigma: float) -> NDArray[np.float32]:
    """Return the weight of each pixel along the path."""
    weights = np.exp(-(np.arange(2 * math.ceil(radius) + 1) ** 2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum(), np.float32)


ROUNDING = 1e-6
"""More than the sums are off by: a flat image stays as it is."""


@inlined
def _mirrored(at, size):
    """Return the index inside for one beyond the border."""
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
                            factor = weights[k] * down[a] * across[b]
                            for channel in range(channels):
                                total[channel] += factor * coefficients[i, r, c, channel]
                for channel in range(channels):
                    out[i, y, x, channel] = to_byte(total[channel] + ROUNDING, False)


def turned(images: Bytes, angles: Array, weights: Array) -> Bytes:
    from scipy.ndimage import spline_filter1d

    rows = spline_filter1d(images.astype(np.float64), 3, axis=1)
    coefficients = spline_filter1d(rows, 3, axis=2)
    out = np.empty_like(images)
    _turned(coefficients, angles, weights, out)
    return out
