"""Loops of non-local means over rows of pixels, so that they vectorize."""

from __future__ import annotations

import numpy as np

from beaufort._core.compiled import inlined, kernel

f32 = np.float32

_CUTOFF = f32(5)
"""Distance beyond which a pixel is ignored, as in scikit-image."""


@inlined
def falling(distance):
    """Return exp(−distance) to four digits up to the cutoff: a polynomial of x / 8, to the power of 8."""
    x = distance * f32(-0.125)
    y = f32(1) + x * (
        f32(1)
        + x * (f32(1 / 2) + x * (f32(1 / 6) + x * (f32(1 / 24) + x * (f32(1 / 120) + x * f32(1 / 720)))))
    )
    y = y * y
    y = y * y
    return y * y


@kernel
def differences(planes, line, row, down, edge, right, count, expected):
    """Write squared differences of a row and a shifted row, over all channels, minus the expected ones."""
    for x in range(count):
        line[x] = -expected
    for channel in range(planes.shape[0]):
        here = planes[channel, row, edge:]
        there = planes[channel, row + down, edge + right :]
        for x in range(count):
            step = here[x] - there[x]
            line[x] += step * step


@kernel
def box_sums(apart, column, weight, count, box):
    """Write sums over boxes: first over rows, then over columns."""
    first = apart[0]
    for x in range(count + box - 1):
        column[x] = first[x]
    for one in range(1, box):
        part = apart[one]
        for x in range(count + box - 1):
            column[x] += part[x]
    for x in range(count):
        weight[x] = column[x]
    for one in range(1, box):
        part = column[one:]
        for x in range(count):
            weight[x] += part[x]


@kernel
def add(to, what, count):
    """Add a row to another."""
    for x in range(count):
        to[x] += what[x]


@kernel
def add_product(to, one, other, count):
    """Add the product of two rows to a third."""
    for x in range(count):
        to[x] += one[x] * other[x]


@kernel
def denoise(planes, radius, reach, expected, scale):
    """Return weighted means of planes `(c, h, w)`; undefined in a border of `radius + reach + 1`.

    For each shift, the squared differences of the image and the shifted image are summed over a box of
    2·radius pixels a side around each pixel. That is the distance of two patches, and counts for both of
    their pixels, so half of the shifts suffice.
    """
    channels, height, width = planes.shape
    border = radius + reach + 1
    box = 2 * radius
    total = planes.copy()
    weights = np.ones((height, width), f32)
    apart = np.empty((box, width), f32)
    column = np.empty(width, f32)
    weight = np.empty(width, f32)
    for down in range(reach + 1):
        for right in range(-reach, reach + 1):
            if down == 0 and right <= 0:
                continue
            left = border - max(right, 0)
            count = width - border + max(-right, 0) - left
            edge = left - radius + 1
            for row in range(border - down - radius + 1, height - border + radius):
                line = apart[row % box]
                differences(planes, line, row, down, edge, right, count + box - 1, expected)
                middle = row - radius
                if middle < border - down:
                    continue
                box_sums(apart, column, weight, count, box)
                for x in range(count):
                    distance = max(weight[x], f32(0)) * scale
                    near = falling(min(distance, _CUTOFF))
                    weight[x] = near if distance <= _CUTOFF else f32(0)
                add(weights[middle, left:], weight, count)
                add(weights[middle + down, left + right :], weight, count)
                for channel in range(channels):
                    here = planes[channel, middle, left:]
                    there = planes[channel, middle + down, left + right :]
                    add_product(total[channel, middle, left:], weight, there, count)
                    add_product(total[channel, middle + down, left + right :], weight, here, count)
    for channel in range(channels):
        for row in range(height):
            to, by = total[channel, row], weights[row]
            for x in range(width):
                to[x] /= by[x]
    return total
