"""The soft disk of a lens, with Numba."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.compiled import exact_part, kernel, to_byte
from beaufort.corruptions._kernels.borders import border_index
from beaufort.corruptions._kernels.cpu.lanes import LANES, fma, load, load_floats, one, pointer, splat, store

i32, f32 = np.int32, np.float32


@exact_part
def _flatten(sums, center, heights, boxes, sides, channels, weight, count, flat):
    """Compute a row of the flat disk: one box per column; at distance d on both sides, box `boxes[d]`."""
    running, tall, total, found = pointer(sums), pointer(sides), pointer(count), pointer(flat)
    number = pointer(boxes)
    whole, size, reach = sums.shape[1], flat.size - LANES, boxes.size - 1
    for k in range(heights.size):
        low, high = (center + 1 + heights[k]) * whole, (center - heights[k]) * whole
        for x in range(0, size + 2 * reach * channels, LANES):
            store(tall, k * whole + x, load(running, low + x) - load(running, high + x))
    for x in range(0, size, LANES):
        at = reach * channels + x
        lanes = load(tall, one(number, 0) * whole + at)
        for d in range(1, boxes.size):
            row = one(number, d) * whole + at
            lanes += load(tall, row - d * channels) + load(tall, row + d * channels)
        store(total, x, lanes)
    for x in range(0, size, LANES):
        store(found, x, load_floats(total, x) * splat(weight))


@exact_part
def _soften(flat, y, taps, channels, line, soft, out):
    """Smooth a row of the flat disk with the rows around it, vertically and horizontally."""
    source, between, target, weights = pointer(flat), pointer(soft), pointer(out), pointer(taps)
    wide, rim = flat.shape[1], taps.size - 1
    for x in range(0, line + 2 * rim * channels, LANES):
        at = (y + rim) * wide + x
        lanes = splat(one(weights, 0)) * load(source, at)
        for k in range(1, rim + 1):
            pair = load(source, at - k * wide) + load(source, at + k * wide)
            lanes = fma(splat(one(weights, k)), pair, lanes)
        store(between, x, lanes)
    for x in range(0, line, LANES):
        at = rim * channels + x
        lanes = splat(one(weights, 0)) * load(between, at)
        for k in range(1, rim + 1):
            pair = load(between, at - k * channels) + load(between, at + k * channels)
            lanes = fma(splat(one(weights, k)), pair, lanes)
        store(target, x, lanes)


@kernel
def _defocus(
    images,
    rows,
    columns,
    pad,
    flat_boxes,
    flat_heights,
    weight,
    taps,
    heights,
    boxes,
    weights,
    nearest,
    zero,
    out,
):
    height, width, channels = images.shape[1:]
    line = width * channels
    rim = taps.size - 1
    strip = 64
    whole = (width + 2 * pad) * channels
    broad = (width + 2 * rim) * channels  # a line with the padding that the rim needs on both sides
    sums = np.zeros((strip + 2 * pad + 1, whole + LANES), zero.dtype)
    sides = np.zeros((flat_heights.size, whole + LANES), zero.dtype)
    extra = np.empty((heights.size, whole), np.float32)
    flat = np.zeros((strip + 2 * rim, broad + LANES), np.float32)
    tall = np.empty(whole, zero.dtype)
    count = np.empty(broad + LANES, zero.dtype)
    soft = np.zeros(broad + 2 * LANES, np.float32)
    total = np.empty(line + LANES, np.float32)
    for i in range(images.shape[0]):
        sources, targets = images[i].reshape(height, line), out[i].reshape(height, line)
        for top in range(0, height, strip):
            lines = min(strip, height - top)
            for y in range(lines + 2 * pad):  # running sums down the columns
                above, below = sums[y], sums[y + 1]
                source = sources[rows[top + y]]
                edge = pad * channels
                middle, middle_above = below[edge : edge + line], above[edge : edge + line]
                for x in range(line):
                    middle[x] = middle_above[x] + i32(source[x])
                for x in range(pad):
                    left, right = columns[x] * channels, columns[width + pad + x] * channels
                    for c in range(channels):
                        before, after = x * channels + c, edge + line + x * channels + c
                        below[before] = above[before] + i32(source[left + c])
                        below[after] = above[after] + i32(source[right + c])
            for y in range(lines + 2 * rim):  # the flat disk: a box a column
                center = y + pad - rim
                _flatten(sums, center, flat_heights, flat_boxes, sides, channels, weight, count, flat[y])
            for y in range(lines):  # its soft rim
                _soften(flat, y, taps, channels, line, soft, total)
                for k in range(heights.size):  # the rim that the published kernel adds
                    low, high = sums[y + pad + 1 + heights[k]], sums[y + pad - heights[k]]
                    column = extra[k]
                    for x in range(whole):
                        tall[x] = low[x] - high[x]
                    for x in range(whole):
                        column[x] = f32(tall[x])
                for k in range(weights.size):
                    c = extra[boxes[k, 0]][(pad - boxes[k, 1]) * channels :]
                    d = extra[boxes[k, 0]][(pad + boxes[k, 1]) * channels :]
                    t = weights[k]
                    for x in range(line):
                        total[x] += t * (c[x] + d[x])
                row = targets[top + y]
                for x in range(line):
                    row[x] = to_byte(total[x], nearest)


def defocus(images: Bytes, radius: float, softness: float, *, nearest: bool = False) -> Bytes:
    """Spread each pixel over a soft disk; outside, the image mirrored.

    The flat disk is one box a column, and boxes come from running sums; its rim is smoothed by a small
    Gaussian after that. What the published kernel has beyond the two, at its edge, is added as boxes.
    """
    height, width = images.shape[1:3]
    parts = disk_parts(radius, softness)
    pad = parts[0]
    rows = border_index(height, pad, pad, "mirror")
    columns = border_index(width, pad, pad, "mirror")
    out = np.empty_like(images)
    _defocus(images, rows, columns, *parts, nearest, _zero(parts[3]), out)
    return out


def _zero(weight: float) -> NDArray[Any]:
    """Return a zero of the type of the sums, which depends on the weight of a pixel.

    In 16 bits running sums may overflow, as long as the sum of a whole disk of white pixels does not.
    """
    return np.zeros(1, np.uint16 if 255 / weight < 1 << 16 else np.int32)


def disk(radius: float, softness: float) -> NDArray[np.float32]:
    """The published kernel: a flat disk on a square grid, its rim smoothed by a Gaussian.

    The grid reaches from -8 to 8, or to the radius if that is larger; the Gaussian has 3 taps, beyond
    radius 8 it has 5, and mirrors the grid at its edge. Where the disk touches that edge, at radius 8
    and above, this adds mass, and the image brightens by one percent.

    >>> round(float(disk(8, 0.5).sum()), 4)
    1.013
    """
    reach = 8 if radius <= 8 else math.ceil(radius)
    at = np.arange(-reach, reach + 1)
    kernel_ = (at[:, None] ** 2 + at**2 <= radius**2).astype(np.float32)
    kernel_ /= kernel_.sum()
    taps = _rim_taps(radius, softness)
    window = np.concatenate([taps[:0:-1], taps])
    half = len(taps) - 1
    for axis in (0, 1):
        padded = np.pad(kernel_, [(half, half) if axis == a else (0, 0) for a in (0, 1)], mode="reflect")
        views = np.lib.stride_tricks.sliding_window_view(padded, len(window), axis=axis)
        kernel_ = (views @ window).astype(np.float32)
    return kernel_


def _rim_taps(radius: float, softness: float) -> NDArray[np.float64]:
    half = 1 if radius <= 8 else 2
    taps = np.exp(-(np.arange(half + 1) ** 2) / (2 * softness**2))
    return np.asarray(taps / (2 * taps[1:].sum() + taps[0]))


@lru_cache(maxsize=64)
def disk_parts(radius: float, softness: float) -> tuple[Any, ...]:
    """Return the disk as `_defocus` takes it: padding, flat boxes, their weight, rim taps, boxes beyond."""
    whole = int(radius)
    half_heights = np.array([math.isqrt(int(radius**2 - d**2)) for d in range(whole + 1)])
    flat_heights, flat_boxes = np.unique(half_heights, return_inverse=True)
    weight = np.float32(1 / (2 * (2 * half_heights + 1).sum() - (2 * half_heights[0] + 1)))
    taps = _rim_taps(radius, softness)
    published = disk(radius, softness).astype(np.float64)
    reach = len(published) // 2
    pad = whole + len(taps) - 1
    if reach > pad:  # the grid is larger than the disk
        published = published[reach - pad : pad - reach, reach - pad : pad - reach]
        reach = pad

    at = np.arange(-pad, pad + 1)
    plain = (at[:, None] ** 2 + at**2 <= radius**2) * float(weight)
    window = np.concatenate([taps[:0:-1], taps])
    for axis in (0, 1):
        plain = np.apply_along_axis(np.convolve, axis, plain, window, "same")
    quarter = (np.pad(published, pad - reach) - plain)[pad:, pad:]
    steps = quarter - np.pad(quarter[1:], ((0, 1), (0, 0)))  # what a box of half height r adds
    steps[:, 0] /= 2  # the middle column is its own mirror image
    rows, distances = np.nonzero(np.abs(steps) > 1e-7)
    heights, which = np.unique(rows, return_inverse=True)
    boxes = np.stack([which, distances], axis=1)
    weights = steps[rows, distances].astype(np.float32)
    return pad, flat_boxes, flat_heights, weight, taps.astype(np.float32), heights, boxes, weights
