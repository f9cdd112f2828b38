"""Motion along a line, with Numba."""

from __future__ import annotations

import math

import numpy as np

from beaufort.arrays import Array, Bytes
from beaufort.ops._numba import kernel, to_byte

__all__ = ["motion"]

f32 = np.float32


@kernel
def _motion(images, weights, down, right, reach, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    pad = reach * channels
    padded = np.empty((height, line + 2 * pad), np.uint8)
    total = np.empty(line, np.float32)
    taps = weights.size
    for i in range(images.shape[0]):
        for y in range(height):
            source, target = images[i, y].reshape(line), padded[y]
            middle = target[pad : pad + line]
            for x in range(line):
                middle[x] = source[x]
            for x in range(pad):
                target[x] = source[x % channels]
                target[pad + line + x] = source[line - channels + x % channels]
        for y in range(height):
            total[:] = f32(1 / 514)
            k = 0
            while k + 3 < taps:
                a = padded[min(max(y + down[i, k], 0), height - 1)][pad + right[i, k] * channels :]
                b = padded[min(max(y + down[i, k + 1], 0), height - 1)][pad + right[i, k + 1] * channels :]
                c = padded[min(max(y + down[i, k + 2], 0), height - 1)][pad + right[i, k + 2] * channels :]
                d = padded[min(max(y + down[i, k + 3], 0), height - 1)][pad + right[i, k + 3] * channels :]
                t, u, v, w = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
                for x in range(line):
                    total[x] += t * f32(a[x]) + u * f32(b[x]) + (v * f32(c[x]) + w * f32(d[x]))
                k += 4
            while k < taps:
                a = padded[min(max(y + down[i, k], 0), height - 1)][pad + right[i, k] * channels :]
                t = weights[k]
                for x in range(line):
                    total[x] += t * f32(a[x])
                k += 1
            target = out[i, y].reshape(line)
            for x in range(line):
                target[x] = to_byte(total[x], False)


def motion(images: Bytes, radius: float, sigma: float, angles_deg: Array) -> Bytes:
    """One-sided motion blur: half a Gaussian that starts at the pixel and runs along the angle.

    The 8-bit result is cut off after a Q16 rounding, as in ImageMagick: a value within 1/514 below
    a whole level counts as that level.
    """
    taps = np.arange(2 * math.ceil(radius) + 1)
    weights = np.exp(-(taps**2) / (2 * sigma**2))
    weights /= weights.sum()
    radians = np.deg2rad(np.asarray(angles_deg, np.float64))[:, None]
    down = np.ceil(taps * np.sin(radians) - 0.5).astype(np.int64)
    right = np.ceil(taps * np.cos(radians) - 0.5).astype(np.int64)
    reach = int(np.abs(right).max())
    out = np.empty_like(images)
    _motion(images, weights.astype(np.float32), down, right, reach, out)
    return out
