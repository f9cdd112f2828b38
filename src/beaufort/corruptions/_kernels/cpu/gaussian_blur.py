"""Gaussian filters with Numba."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes, read_only
from beaufort._core.compiled import exact_kernel, exact_part, kernel, to_byte
from beaufort.corruptions._kernels.borders import border_index
from beaufort.corruptions._kernels.cpu.lanes import LANES, fma, load, one, pointer, splat, store

i32, f32 = np.int32, np.float32


@lru_cache(maxsize=256)
def gaussian_taps(sigma: float, truncate: float) -> NDArray[np.float64]:
    """Half of a normalized Gaussian: the tap of distance 0, 1, …, R = ⌊truncate·σ + ½⌋."""
    radius = int(truncate * sigma + 0.5)
    if radius == 0:
        return np.ones(1)
    taps = np.exp(-0.5 / sigma**2 * np.arange(-radius, radius + 1) ** 2)
    return np.asarray((taps / taps.sum())[radius:])


_STRIP = 32
"""Rows blurred at a time: they and those around them are made floats once, and stay in the cache."""


@exact_kernel
def _gaussian_exact(images, taps, rows, horizontal, nearest, out):
    """Filter in double precision, farthest taps first, in the order of SciPy."""
    height, width, channels = images.shape[1:]
    line = width * channels
    radius = taps.size - 1
    pad = radius * channels
    frame = np.empty((_STRIP + 2 * radius, line), np.float64)
    row = np.empty(line + 2 * pad, np.float64)
    middle = row[pad : pad + line]
    total = np.empty(line, np.float64)
    for i in range(images.shape[0]):
        sources, targets = images[i].reshape(height, line), out[i].reshape(height, line)
        for top in range(0, height, _STRIP):
            lines = min(_STRIP, height - top)
            for y in range(lines + 2 * radius):
                source, target = sources[rows[top + y]], frame[y]
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
                shown, found = targets[top + y], total if horizontal else middle
                for x in range(line):
                    shown[x] = to_byte(found[x] * 255.0, nearest)


@exact_part
def _weigh(values, at, step, taps, radius):
    """Return weighted sums around the values from `at` on, nearest first; neighbors are `step` apart."""
    total = splat(one(taps, 0)) * load(values, at)
    for k in range(2, radius + 1, 2):
        near = load(values, at - (k - 1) * step) + load(values, at + (k - 1) * step)
        far = load(values, at - k * step) + load(values, at + k * step)
        total += fma(splat(one(taps, k - 1)), near, splat(one(taps, k)) * far)
    if radius % 2 == 1:
        last = load(values, at - radius * step) + load(values, at + radius * step)
        total = fma(splat(one(taps, radius)), last, total)
    return total


@exact_part
def _weigh_strip(frame, taps, columns, channels, middle, out):
    """Filter the rows of `out`, which have `radius` more rows on both sides in `frame`: vertically first.

    Columns go before rows, so that what is added up stays in the nearest cache.
    """
    rows, wide = out.shape
    radius = taps.size - 1
    pad, line = radius * channels, (columns.size - 2 * radius) * channels
    full = middle.shape[1]
    source, between, target, weights = pointer(frame), pointer(middle), pointer(out), pointer(taps)
    for x in range(0, line, LANES):
        for y in range(rows):
            total = _weigh(source, (y + radius) * wide + x, wide, weights, radius)
            store(between, y * full + pad + x, total)
    for y in range(rows):
        row = middle[y]
        for x in range(radius):
            for c in range(channels):
                row[x * channels + c] = row[pad + columns[x] * channels + c]
                after = columns.size - radius + x
                row[after * channels + c] = row[pad + columns[after] * channels + c]
        for x in range(0, line, LANES):
            store(target, y * wide + x, _weigh(between, y * full + pad + x, channels, weights, radius))


@kernel
def _gaussian(images, taps, rows, columns, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    wide = (line + LANES - 1) // LANES * LANES
    radius = taps.size - 1
    frame = np.zeros((_STRIP + 2 * radius, wide), np.float32)
    middle = np.zeros((_STRIP, wide + 2 * radius * channels), np.float32)
    totals = np.empty((_STRIP, wide), np.float32)
    for i in range(images.shape[0]):
        sources, targets = images[i].reshape(height, line), out[i].reshape(height, line)
        for top in range(0, height, _STRIP):
            lines = min(_STRIP, height - top)
            for y in range(lines + 2 * radius):
                source, target = sources[rows[top + y]], frame[y]
                for x in range(line):
                    target[x] = f32(source[x])
            _weigh_strip(frame, taps, columns, channels, middle, totals[:lines])
            for y in range(lines):
                shown, total = targets[top + y], totals[y]
                for x in range(line):
                    shown[x] = to_byte(total[x], nearest)


def gaussian(images: Bytes, sigma: float, *, horizontal: bool = True, nearest: bool = False) -> Bytes:
    taps = gaussian_taps(sigma, 4.0)
    radius = len(taps) - 1
    rows = border_index(images.shape[1], radius, radius, "nearest")
    columns = border_index(images.shape[2], radius, radius, "nearest")
    out = np.empty_like(images)
    if radius <= NARROW or not horizontal:
        _gaussian_exact(read_only(images), taps, rows, horizontal, nearest, out)
    else:
        _gaussian(read_only(images), taps.astype(np.float32), rows, columns, nearest, out)
    return out


NARROW = 2
"""Radius, in pixels, up to which a blur is worked out in double precision, in the published order.

It hardly changes the values then, and whether one falls a hair below a whole level, where cutting off the
fraction costs a level, is decided by rounding.
"""


@kernel
def _smooth(fields, taps, rows, columns, gain, out):
    height, width = fields.shape[1:]
    wide = (width + LANES - 1) // LANES * LANES
    radius = taps.size - 1
    frame = np.zeros((_STRIP + 2 * radius, wide), fields.dtype)
    middle = np.zeros((_STRIP, wide + 2 * radius), fields.dtype)
    totals = np.zeros((_STRIP, wide), fields.dtype)  # zeros are not needed, but compile fastest
    for i in range(fields.shape[0]):
        for top in range(0, height, _STRIP):
            lines = min(_STRIP, height - top)
            for y in range(lines + 2 * radius):
                source, target = fields[i, rows[top + y]], frame[y]
                for x in range(width):
                    target[x] = source[x]
            _weigh_strip(frame, taps, columns, 1, middle, totals[:lines])
            for y in range(lines):
                shown, total = out[i, top + y], totals[y]
                for x in range(width):
                    shown[x] = gain * total[x]


@kernel
def _smooth_by_waves(fields, down, down_gain, across, across_gain, out):
    """Transform each field into the given waves, multiply by the gains, and transform back."""
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


def smooth(
    fields: Array, sigma: float, *, truncate: float = 4.0, border: str = "nearest", gain: float = 1.0
) -> Array:
    factor = fields.dtype.type(gain)
    if sigma == 0:
        return fields if gain == 1 else fields * factor
    taps = gaussian_taps(sigma, truncate).astype(fields.dtype)
    radius = len(taps) - 1
    height, width = fields.shape[1:]
    out = np.empty_like(fields)
    if border == "reflect" and radius > WIDE:
        down = (wave.astype(fields.dtype) for wave in wave_gains(height, sigma, truncate))
        across = (wave.astype(fields.dtype) for wave in wave_gains(width, sigma, truncate))
        _smooth_by_waves(fields, *down, *across, out)
        out *= factor
    else:
        rows = border_index(height, radius, radius, border)
        columns = border_index(width, radius, radius, border)
        _smooth(fields, taps, rows, columns, factor, out)
    return out


@lru_cache(maxsize=16)
def wave_gains(size: int, sigma: float, truncate: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the cosine waves that pass a wide Gaussian, and their gains.

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
