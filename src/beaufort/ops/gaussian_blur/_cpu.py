"""Gaussian filters with Numba."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Array, Bytes
from beaufort.ops._borders import border_index
from beaufort.ops._numba import exact_kernel, inlined, kernel, to_byte

__all__ = ["NARROW", "WIDE", "gaussian", "gaussian_taps", "smooth", "wave_gains"]

i32, f32 = np.int32, np.float32


@lru_cache(maxsize=256)
def gaussian_taps(sigma: float, truncate: float) -> NDArray[np.float64]:
    """Half of a normalised Gaussian: the tap of distance 0, 1, …, R = ⌊truncate·σ + ½⌋."""
    radius = int(truncate * sigma + 0.5)
    if radius == 0:
        return np.ones(1)
    taps = np.exp(-0.5 / sigma**2 * np.arange(-radius, radius + 1) ** 2)
    return np.asarray((taps / taps.sum())[radius:])


@exact_kernel
def _gaussian_exact(images, taps, rows, columns, horizontal, nearest, out):
    height, width, channels = images.shape[1:]
    radius = taps.size - 1
    middle = np.empty((height, width), np.float64)
    for i in range(images.shape[0]):
        for c in range(channels):
            for y in range(height):
                for x in range(width):
                    total = images[i, y, x, c] / 255.0 * taps[0]
                    for k in range(radius, 0, -1):
                        above = images[i, rows[y + radius - k], x, c] / 255.0
                        below = images[i, rows[y + radius + k], x, c] / 255.0
                        total += (above + below) * taps[k]
                    middle[y, x] = total
            for y in range(height):
                for x in range(width):
                    total = middle[y, x]
                    if horizontal:
                        total = total * taps[0]
                        for k in range(radius, 0, -1):
                            left, right = columns[x + radius - k], columns[x + radius + k]
                            total += (middle[y, left] + middle[y, right]) * taps[k]
                    out[i, y, x, c] = to_byte(total * 255.0, nearest)


@kernel
def _gaussian(images, taps, rows, horizontal, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    radius = taps.size - 1
    pad = radius * channels
    row = np.empty(line + 2 * pad, np.float32)
    middle = row[pad : pad + line]
    total = np.empty(line, np.float32)
    for i in range(images.shape[0]):
        lines = images[i].reshape(height, line)
        for y in range(height):
            here = lines[y]
            for x in range(line):
                middle[x] = taps[0] * f32(here[x])
            k = 1
            while k + 1 <= radius:
                a, b = lines[rows[y + radius - k]], lines[rows[y + radius + k]]
                c, d = lines[rows[y + radius - k - 1]], lines[rows[y + radius + k + 1]]
                t, u = taps[k], taps[k + 1]
                for x in range(line):
                    near = f32(i32(a[x]) + i32(b[x]))
                    far = f32(i32(c[x]) + i32(d[x]))
                    middle[x] += t * near + u * far
                k += 2
            if k == radius:
                a, b, t = lines[rows[y]], lines[rows[y + 2 * radius]], taps[k]
                for x in range(line):
                    middle[x] += t * f32(i32(a[x]) + i32(b[x]))
            target = out[i, y].reshape(line)
            if not horizontal:
                for x in range(line):
                    target[x] = to_byte(middle[x], nearest)
                continue
            for x in range(pad):
                row[x] = middle[x % channels]
                row[pad + line + x] = middle[line - channels + x % channels]
            for x in range(line):
                total[x] = taps[0] * middle[x]
            k = 1
            while k + 1 <= radius:
                a, b = row[pad - k * channels :], row[pad + k * channels :]
                c, d = row[pad - (k + 1) * channels :], row[pad + (k + 1) * channels :]
                t, u = taps[k], taps[k + 1]
                for x in range(line):
                    total[x] += t * (a[x] + b[x]) + u * (c[x] + d[x])
                k += 2
            if k == radius:
                a, b, t = row, row[2 * pad :], taps[k]
                for x in range(line):
                    total[x] += t * (a[x] + b[x])
            for x in range(line):
                target[x] = to_byte(total[x], nearest)


def gaussian(images: Bytes, sigma: float, *, horizontal: bool = True, nearest: bool = False) -> Bytes:
    """Gaussian blur, cut at 4σ, the edge repeated outside; only down the columns if not `horizontal`."""
    taps = gaussian_taps(sigma, 4.0)
    radius = len(taps) - 1
    rows = border_index(images.shape[1], radius, radius, "nearest")
    out = np.empty_like(images)
    if radius <= NARROW or not horizontal:
        columns = border_index(images.shape[2], radius, radius, "nearest")
        _gaussian_exact(images, taps, rows, columns, horizontal, nearest, out)
    else:
        _gaussian(images, taps.astype(np.float32), rows, horizontal, nearest, out)
    return out


NARROW = 2
"""Radius, in pixels, up to which a blur is worked out in double precision, in the published order.

It hardly changes the values then, and whether one falls a hair below a whole level, where cutting off the
fraction costs a level, is decided by rounding.
"""


@inlined
def _add_pairs(target, a, b, c, d, t, u):
    """Add two pairs of mirrored taps at once: half as many trips through the target."""
    for x in range(target.size):
        target[x] += t * (a[x] + b[x]) + u * (c[x] + d[x])


@kernel
def _smooth(fields, taps, rows, columns, out):
    height, width = fields.shape[1:]
    radius = taps.size - 1
    row = np.empty(width + 2 * radius, fields.dtype)
    middle = np.empty(width, fields.dtype)
    for i in range(fields.shape[0]):
        field = fields[i]
        for y in range(height):
            here, at = field[y], y + radius
            for x in range(width):
                middle[x] = taps[0] * here[x]
            for k in range(2, radius + 1, 2):
                near, other = field[rows[at - k + 1]], field[rows[at + k - 1]]
                far, beyond = field[rows[at - k]], field[rows[at + k]]
                _add_pairs(middle, near, other, far, beyond, taps[k - 1], taps[k])
            if radius % 2 == 1:
                first, last, t = field[rows[y]], field[rows[y + 2 * radius]], taps[radius]
                for x in range(width):
                    middle[x] += t * (first[x] + last[x])
            for x in range(width + 2 * radius):
                row[x] = middle[columns[x]]
            target = out[i, y]
            for x in range(width):
                target[x] = taps[0] * middle[x]
            for k in range(2, radius + 1, 2):
                near, other = row[radius - k + 1 :], row[radius + k - 1 :]
                far, beyond = row[radius - k :], row[radius + k :]
                _add_pairs(target, near, other, far, beyond, taps[k - 1], taps[k])
            if radius % 2 == 1:
                last = row[2 * radius :]
                for x in range(width):
                    target[x] += taps[radius] * (row[x] + last[x])


@kernel
def _smooth_by_waves(fields, down, down_gain, across, across_gain, out):
    """Split each field into the given waves, weigh them, and put them together again."""
    height, width = fields.shape[1:]
    for i in range(fields.shape[0]):
        columns = np.zeros((len(down), width), fields.dtype)
        coefficients = np.zeros((len(down), len(across)), fields.dtype)
        lines = np.zeros((len(down), width), fields.dtype)
        for k in range(len(down)):
            for y in range(height):
                t = down[k, y]
                for x in range(width):
                    columns[k, x] += t * fields[i, y, x]
            for x in range(width):
                t = columns[k, x]
                for j in range(len(across)):
                    coefficients[k, j] += t * across[j, x]
            for j in range(len(across)):
                t = coefficients[k, j] * down_gain[k] * across_gain[j]
                for x in range(width):
                    lines[k, x] += t * across[j, x]
        out[i] = 0
        for y in range(height):
            for k in range(len(down)):
                t = down[k, y]
                for x in range(width):
                    out[i, y, x] += t * lines[k, x]


WIDE = 128
"""Radius, in pixels, from which smoothing goes by waves instead of taps."""


def smooth(fields: Array, sigma: float, *, truncate: float = 4.0, border: str = "nearest") -> Array:
    """Gaussian smoothing of float fields `(n, h, w)`; the dtype is kept."""
    if sigma == 0:
        return fields
    taps = gaussian_taps(sigma, truncate).astype(fields.dtype)
    radius = len(taps) - 1
    height, width = fields.shape[1:]
    out = np.empty_like(fields)
    if border == "reflect" and radius > WIDE:
        down = (wave.astype(fields.dtype) for wave in wave_gains(height, sigma, truncate))
        across = (wave.astype(fields.dtype) for wave in wave_gains(width, sigma, truncate))
        _smooth_by_waves(fields, *down, *across, out)
    else:
        rows = border_index(height, radius, radius, border)
        columns = border_index(width, radius, radius, border)
        _smooth(fields, taps, rows, columns, out)
    return out


@lru_cache(maxsize=16)
def wave_gains(size: int, sigma: float, truncate: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The cosine waves that a wide Gaussian lets through, and the gain of each.

    With the mirrored border a symmetric filter is diagonal in the DCT-II basis, and wave k has the
    gain Σ taps·cos(πkj/size). The true gain dies out at k ≈ 5·size/(πσ); the cut at `truncate`·σ
    leaves ripples below 0.4 %/k, of which the first 64 are kept.
    """
    taps = gaussian_taps(sigma, truncate)
    count = min(size, math.ceil(5 * size / (math.pi * sigma)) + 64)
    k = np.arange(count)[:, None]
    distance = np.arange(len(taps))
    gain = (np.cos(np.pi * k * distance / size) * taps * np.where(distance, 2, 1)).sum(axis=1)
    basis = np.cos(np.pi * k * (np.arange(size) + 0.5) / size) * np.sqrt(np.where(k, 2, 1) / size)
    return basis, gain
