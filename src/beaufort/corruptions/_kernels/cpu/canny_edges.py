"""Canny's edges, with Numba."""

from __future__ import annotations

import math

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.compiled import exact_kernel

u8 = np.uint8


@exact_kernel
def _outline(images, taps, low, high, out):
    # Exact, because a symmetric digit has ties, and rounding decides them.
    height, width, channels = images.shape[1:]
    radius = taps.size - 1
    epsilon = 2.220446049250313e-16
    source = np.empty((height, width), np.float64)
    half = np.empty((height, width), np.float64)
    smooth = np.empty((height, width), np.float64)
    weight = np.empty((height, width), np.float64)
    down = np.empty((height, width), np.float64)
    across = np.empty((height, width), np.float64)
    steep = np.empty((height, width), np.float64)
    edge = np.empty((height, width), np.uint8)
    stack = np.empty(height * width, np.int64)
    for i in range(images.shape[0] * channels):
        for ones in range(2):
            target = weight if ones == 1 else smooth
            if ones == 1 and i > 0:
                break  # the same for every image
            for y in range(height):
                for x in range(width):
                    value = images[i // channels, y, x, i % channels]
                    source[y, x] = 1.0 if ones == 1 else value / 255.0
            for y in range(height):
                for x in range(width):
                    total = source[y, x] * taps[0]
                    for k in range(radius, 0, -1):
                        above = source[y - k, x] if y - k >= 0 else 0.0
                        below = source[y + k, x] if y + k < height else 0.0
                        total += (above + below) * taps[k]
                    half[y, x] = total
            for y in range(height):
                for x in range(width):
                    total = half[y, x] * taps[0]
                    for k in range(radius, 0, -1):
                        left = half[y, x - k] if x - k >= 0 else 0.0
                        right = half[y, x + k] if x + k < width else 0.0
                        total += (left + right) * taps[k]
                    target[y, x] = total
        for y in range(height):
            for x in range(width):
                smooth[y, x] = smooth[y, x] / (weight[y, x] + epsilon)
        for y in range(height):
            for x in range(width):
                up, low_y = smooth[max(y - 1, 0), x], smooth[min(y + 1, height - 1), x]
                source[y, x] = low_y - up
                left, right = smooth[y, max(x - 1, 0)], smooth[y, min(x + 1, width - 1)]
                half[y, x] = right - left
        for y in range(height):
            for x in range(width):
                left, right = source[y, max(x - 1, 0)], source[y, min(x + 1, width - 1)]
                down[y, x] = source[y, x] * 2.0 + (left + right)
                up, low_y = half[max(y - 1, 0), x], half[min(y + 1, height - 1), x]
                across[y, x] = half[y, x] * 2.0 + (up + low_y)
                steep[y, x] = math.sqrt(down[y, x] * down[y, x] + across[y, x] * across[y, x])
        found = 0
        for y in range(height):
            for x in range(width):
                edge[y, x] = 0
        for y in range(1, height - 1):
            for x in range(1, width - 1):
                here = steep[y, x]
                if not here >= low or here == 0:
                    continue
                gi, gj = down[y, x], across[y, x]
                if abs(gi) >= abs(gj):
                    t = abs(gj) / abs(gi)
                    side = 1 if (gi >= 0) == (gj >= 0) else -1
                    first = steep[y + 1, x] * (1 - t) + steep[y + 1, x + side] * t
                    second = steep[y - 1, x] * (1 - t) + steep[y - 1, x - side] * t
                else:
                    t = abs(gi) / abs(gj)
                    side = 1 if (gi >= 0) == (gj >= 0) else -1
                    first = steep[y, x + 1] * (1 - t) + steep[y + side, x + 1] * t
                    second = steep[y, x - 1] * (1 - t) + steep[y - side, x - 1] * t
                if first <= here and second <= here:
                    edge[y, x] = 1
                    if here >= high:
                        edge[y, x] = 2
                        stack[found] = y * width + x
                        found += 1
        while found > 0:
            found -= 1
            y, x = stack[found] // width, stack[found] % width
            for near_y in range(y - 1, y + 2):
                for near_x in range(x - 1, x + 2):
                    if edge[near_y, near_x] == 1:
                        edge[near_y, near_x] = 2
                        stack[found] = near_y * width + near_x
                        found += 1
        for y in range(height):
            for x in range(width):
                out[i // channels, y, x, i % channels] = u8(255) if edge[y, x] == 2 else u8(0)


def outline(images: Bytes, sigma: float, low: float, high: float) -> Bytes:
    radius = int(4.0 * sigma + 0.5)
    taps = np.exp(-0.5 / (sigma * sigma) * np.arange(radius + 1) ** 2)
    taps /= np.concatenate([taps[:0:-1], taps]).sum()
    out = np.empty_like(images)
    _outline(images, taps, low, high, out)
    return out
