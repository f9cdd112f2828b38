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


_STRIP = 32
"""Rows blurred at a time: they and those around them are made floats once, and stay in the cache."""


@exact_kernel
def _gaussian_exact(images, taps, rows, horizontal, nearest, out):
    """In double precision, the farthest taps first, as SciPy adds them up."""
    height, width, channels = images.shape[1:]
    line = width * channels
    radius = taps.size - 1
    pad = radius * channels
    frame = np.empty((_STRIP + 2 * radius, line), np.float64)
    row = np.empty(line + 2 * pad, np.float64)
    middle = row[pad : pad + line]
    total = np.empty(line, np.float64)
    for i in range(images.shape[0]):
        for top in range(0, height, _STRIP):
            lines = min(_STRIP, height - top)
            for y in range(lines + 2 * radius):
                source, target = images[i, rows[top + y]].reshape(line), frame[y]
                for x in range(line):
                    target[x] = source[x] / 255.0
            for y in range(lines):
                here = frame[y + radius]
                for x in range(line):
                    middle[x] = here[x] * taps[0]
                for k in range(radius, 0, -1):
                    above, below, t = frame[y + radius - k], frame[y + radius + k], taps[k]
                    for x in range(line):
                        middle[x] += (above[x] + below[x]) * t
                if horizontal:
                    for c in range(channels):
                        row[c:pad:channels] = middle[c]
                        row[pad + line + c :: channels] = middle[line - channels + c]
                    for x in range(line):
                        total[x] = middle[x] * taps[0]
                    for k in range(radius, 0, -1):
                        left, right, t = row[pad - k * channels :], row[pad + k * channels :], taps[k]
                        for x in range(line):
                            total[x] += (left[x] + right[x]) * t
                shown, found = out[i, top + y].reshape(line), total if horizontal else middle
                for x in range(line):
                    shown[x] = to_byte(found[x] * 255.0, nearest)


@inlined
def _add_pairs(target, a, b, c, d, t, u):
    """Add two pairs of mirrored taps at once: half as many trips through the target."""
    for x in range(target.size):
        target[x] += t * (a[x] + b[x]) + u * (c[x] + d[x])


@inlined
def _weigh_rows(lines, at, taps, out):
    """Weigh the rows around one, nearest first: row `at[k]` by the tap of k's distance from the middle."""
    radius = taps.size - 1
    here = lines[at[radius]]
    for x in range(out.size):
        out[x] = taps[0] * here[x]
    for k in range(2, radius + 1, 2):
        near, other = lines[at[radius - k + 1]], lines[at[radius + k - 1]]
        far, beyond = lines[at[radius - k]], lines[at[radius + k]]
        _add_pairs(out, near, other, far, beyond, taps[k - 1], taps[k])
    if radius % 2 == 1:
        first, last, t = lines[at[0]], lines[at[2 * radius]], taps[radius]
        for x in range(out.size):
            out[x] += t * (first[x] + last[x])


@inlined
def _weigh_places(row, step, taps, out):
    """Weigh the values around each place of a row, nearest first; neighbors are `step` places apart."""
    radius = taps.size - 1
    middle = radius * step
    here = row[middle:]
    for x in range(out.size):
        out[x] = taps[0] * here[x]
    for k in range(2, radius + 1, 2):
        near, other = row[middle - (k - 1) * step :], row[middle + (k - 1) * step :]
        far, beyond = row[middle - k * step :], row[middle + k * step :]
        _add_pairs(out, near, other, far, beyond, taps[k - 1], taps[k])
    if radius % 2 == 1:
        last, t = row[2 * middle :], taps[radius]
        for x in range(out.size):
            out[x] += t * (row[x] + last[x])


@kernel
def _gaussian(images, taps, rows, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    radius = taps.size - 1
    pad = radius * channels
    frame = np.empty((_STRIP + 2 * radius, line), np.float32)
    at = np.arange(_STRIP + 2 * radius)
    row = np.empty(line + 2 * pad, np.float32)
    middle = row[pad : pad + line]
    total = np.empty(line, np.float32)
    for i in range(images.shape[0]):
        for top in range(0, height, _STRIP):
            lines = min(_STRIP, height - top)
            for y in range(lines + 2 * radius):
                source, target = images[i, rows[top + y]].reshape(line), frame[y]
                for x in range(line):
                    target[x] = f32(source[x])
            for y in range(lines):
                _weigh_rows(frame, at[y:], taps, middle)
                for c in range(channels):
                    row[c:pad:channels] = middle[c]
                    row[pad + line + c :: channels] = middle[line - channels + c]
                _weigh_places(row, channels, taps, total)
                shown = out[i, top + y].reshape(line)
                for x in range(line):
                    shown[x] = to_byte(total[x], nearest)


def gaussian(images: Bytes, sigma: float, *, horizontal: bool = True, nearest: bool = False) -> Bytes:
    """Gaussian blur, cut at 4σ, the edge repeated outside; only down the columns if not `horizontal`."""
    taps = gaussian_taps(sigma, 4.0)
    radius = len(taps) - 1
    rows = border_index(images.shape[1], radius, radius, "nearest")
    out = np.empty_like(images)
    if radius <= NARROW or not horizontal:
        _gaussian_exact(images, taps, rows, horizontal, nearest, out)
    else:
        _gaussian(images, taps.astype(np.float32), rows, nearest, out)
    return out


NARROW = 2
"""Radius, in pixels, up to which a blur is worked out in double precision, in the published order.

It hardly changes the values then, and whether one falls a hair below a whole level, where cutting off the
fraction costs a level, is decided by rounding.
"""


@kernel
def _smooth(fields, taps, rows, columns, out):
    height, width = fields.shape[1:]
    radius = taps.size - 1
    row = np.empty(width + 2 * radius, fields.dtype)
    middle = row[radius : radius + width]
    for i in range(fields.shape[0]):
        for y in range(height):
            _weigh_rows(fields[i], rows[y:], taps, middle)
            for x in range(radius):
                row[x] = middle[columns[x]]
                row[radius + width + x] = middle[columns[radius + width + x]]
            _weigh_places(row, 1, taps, out[i, y])


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
