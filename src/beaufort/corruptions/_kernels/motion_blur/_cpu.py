"""Motion along a line, with Numba."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import exact_part, inlined, kernel, to_byte
from beaufort.corruptions._kernels._lanes import LANES, fma, load_floats, one, pointer, splat, store

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
    """Add up rows of a padded image, each from its own start on, by their weights, four at a time."""
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
    """How many pixels each tap is away, down or to the right; halves round down."""
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
    """One-sided motion blur: half a Gaussian that starts at the pixel and runs along the angle.

    The 8-bit result is cut off after a Q16 rounding, as in ImageMagick: a value within 1/514 below
    a whole level counts as that level.
    """
    weights = _half_gaussian(radius, sigma)
    radians, taps = np.deg2rad(np.asarray(angles_deg, np.float64)), weights.size
    along, across = taps * np.cos(radians), taps * np.sin(radians)  # rounds as ImageMagick does
    out = np.empty_like(images)
    _motion(images, weights, along, across, np.hypot(across, along), out)
    return out


@lru_cache(maxsize=64)
def _half_gaussian(radius: float, sigma: float) -> NDArray[np.float32]:
    """The weight of each pixel along the way, from the first on."""
    weights = np.exp(-(np.arange(2 * math.ceil(radius) + 1) ** 2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum(), np.float32)
