"""Filters: Gaussian, disk, motion, zoom."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes, Field
from beaufort.ops import Ends
from beaufort.ops.cpu._kernel import exact_kernel, inlined, kernel
from beaufort.ops.cpu._pixels import border_index, to_byte

__all__ = [
    "NARROW",
    "WIDE",
    "defocus",
    "disk",
    "disk_parts",
    "gaussian",
    "gaussian_taps",
    "motion",
    "smooth",
    "wave_gains",
    "zoom_average",
    "zoom_positions",
]

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


def smooth(fields: Field, sigma: float, *, truncate: float = 4.0, border: str = "nearest") -> Field:
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


@kernel
def _defocus(
    images, rows, columns, pad, flat_boxes, flat_heights, weight, taps, heights, boxes, weights, nearest, out
):
    height, width, channels = images.shape[1:]
    line = width * channels
    rim = taps.size - 1
    strip = 32
    whole = (width + 2 * pad) * channels
    broad = (width + 2 * rim) * channels  # a line and what its rim needs on both sides
    sums = np.empty((strip + 2 * pad + 1, whole), np.int32)
    sides = np.empty((flat_heights.size, whole), np.int32)
    extra = np.empty((heights.size, whole), np.float32)
    flat = np.empty((strip + 2 * rim, broad), np.float32)
    count = np.empty(broad, np.int32)
    soft = np.empty(broad, np.float32)
    total = np.empty(line, np.float32)
    for x in range(whole):
        sums[0, x] = 0
    for i in range(images.shape[0]):
        for top in range(0, height, strip):
            lines = min(strip, height - top)
            for y in range(lines + 2 * pad):  # running sums down the columns
                above, below = sums[y], sums[y + 1]
                source = images[i, rows[top + y]].reshape(line)
                edge = pad * channels
                middle, middle_above = below[edge : edge + line], above[edge : edge + line]
                for x in range(line):
                    middle[x] = middle_above[x] + i32(source[x])
                for x in range(edge):
                    left = columns[x // channels] * channels + x % channels
                    right = columns[width + pad + x // channels] * channels + x % channels
                    below[x] = above[x] + i32(source[left])
                    below[edge + line + x] = above[edge + line + x] + i32(source[right])
            for y in range(lines + 2 * rim):  # the flat disk: a box a column
                center = y + pad - rim
                for k in range(flat_heights.size):
                    low, high = sums[center + 1 + flat_heights[k]], sums[center - flat_heights[k]]
                    side = sides[k]
                    for x in range(whole):
                        side[x] = low[x] - high[x]
                start = (pad - rim) * channels
                box = sides[flat_boxes[0]][start:]
                for x in range(broad):
                    count[x] = box[x]
                for d in range(1, flat_boxes.size):
                    a = sides[flat_boxes[d]][start - d * channels :]
                    b = sides[flat_boxes[d]][start + d * channels :]
                    for x in range(broad):
                        count[x] += a[x] + b[x]
                target = flat[y]
                for x in range(broad):
                    target[x] = f32(count[x]) * weight
            for y in range(lines):  # its soft rim
                here = flat[y + rim]
                for x in range(broad):
                    soft[x] = taps[0] * here[x]
                for k in range(1, rim + 1):
                    a, b, t = flat[y + rim - k], flat[y + rim + k], taps[k]
                    for x in range(broad):
                        soft[x] += t * (a[x] + b[x])
                middle = soft[rim * channels :]
                for x in range(line):
                    total[x] = taps[0] * middle[x]
                for k in range(1, rim + 1):
                    c, d, t = soft[(rim - k) * channels :], soft[(rim + k) * channels :], taps[k]
                    for x in range(line):
                        total[x] += t * (c[x] + d[x])
                for k in range(heights.size):  # what the published kernel has more
                    low, high = sums[y + pad + 1 + heights[k]], sums[y + pad - heights[k]]
                    column = extra[k]
                    for x in range(whole):
                        column[x] = f32(low[x] - high[x])
                for k in range(weights.size):
                    c = extra[boxes[k, 0]][(pad - boxes[k, 1]) * channels :]
                    d = extra[boxes[k, 0]][(pad + boxes[k, 1]) * channels :]
                    t = weights[k]
                    for x in range(line):
                        total[x] += t * (c[x] + d[x])
                row = out[i, top + y].reshape(line)
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
    _defocus(images, rows, columns, *parts, nearest, out)
    return out


def disk(radius: float, softness: float) -> NDArray[np.float32]:
    """The published kernel: a flat disk on a square grid, its rim smoothed by a Gaussian.

    The grid reaches from -8 to 8, or to the radius if that is larger; the Gaussian has 3 taps, beyond
    radius 8 it has 5, and mirrors the grid at its edge. Where the disk touches that edge, at radius 8
    and above, this adds mass, and the picture brightens by one percent.

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
    """The disk as `_defocus` takes it: padding, flat boxes, their weight, rim taps, boxes beyond."""
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


def motion(images: Bytes, radius: float, sigma: float, angles_deg: Field) -> Bytes:
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


@kernel
def _zoom_average(images, rows, row_share, columns, column_share, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    # One buffer for both, half a page apart: a processor takes a store for a load whose addresses agree
    # in their last twelve bits, and waits.
    gap = 512 + (line + channels + 1023) // 1024 * 1024
    scratch = np.zeros(gap + line, np.float32)
    mixed, total = scratch[: line + channels], scratch[gap:]
    factors = rows.shape[0]
    share = f32(1) / f32(factors + 1)
    for i in range(images.shape[0]):
        lines = images[i].reshape(height, line)
        for y in range(height):
            for x in range(line):
                total[x] = f32(lines[y, x])
            for j in range(factors):
                a, b, t = lines[rows[j, y]], lines[min(rows[j, y] + 1, height - 1)], row_share[j, y]
                for x in range(line):
                    value = f32(a[x])
                    mixed[x] = value + (f32(b[x]) - value) * t
                if channels == 3:
                    for x in range(width):
                        k, t = columns[j, x] * 3, column_share[j, x]
                        for c in range(3):
                            value = mixed[k + c]
                            total[3 * x + c] += value + (mixed[k + 3 + c] - value) * t
                else:
                    for x in range(width):
                        value = mixed[columns[j, x]]
                        total[x] += value + (mixed[columns[j, x] + 1] - value) * column_share[j, x]
            target = out[i, y].reshape(line)
            for x in range(line):
                target[x] = to_byte(total[x] * share, nearest)


def zoom_average(
    images: Bytes, factors: tuple[float, ...], *, nearest: bool = False, like: Ends | None = None
) -> Bytes:
    """The mean of the image and its zooms into the middle; `like` as for `zoom_positions`."""
    height, width = images.shape[1:3]
    down = [zoom_positions(height, factor, like) for factor in factors]
    across = [zoom_positions(width, factor, like) for factor in factors]
    out = np.empty_like(images)
    _zoom_average(
        images,
        np.array([at for at, _ in down]),
        np.array([share for _, share in down], np.float32),
        np.array([at for at, _ in across]),
        np.array([share for _, share in across], np.float32),
        nearest,
        out,
    )
    return out


@lru_cache(maxsize=1024)
def zoom_positions(size: int, factor: float, like: Ends | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where each pixel of a zoomed side is sampled: the pixel before, and the share of the next.

    The middle ⌈size/factor⌉ pixels are enlarged, corner on corner, to round(that·factor), and the
    excess is trimmed, the smaller half first. These whole numbers make it jump with the size. With `like`
    the crop and its enlargement are those of two other sizes, in proportion, mixed.
    """
    at = np.arange(size)
    if like is None:
        start, step = _zoom(size, factor)
        crop = math.ceil(size / factor)
        first = (size - crop) // 2
        position = at * step + (start - first)
        before = np.clip(np.floor(position).astype(np.int64), 0, crop - 1)
        return first + before, position - before
    low, high, share = like
    position = (1 - share) * _zoom_like(at, size, low, factor) + share * _zoom_like(at, size, high, factor)
    position = np.clip(position, 0, size - 1)
    before = np.floor(position).astype(np.int64)
    return before, position - before


def _zoom(size: int, factor: float) -> tuple[float, float]:
    """Where the first pixel of a zoomed side is sampled, and how far the next one is from it."""
    crop = math.ceil(size / factor)
    enlarged = round(crop * factor)
    step = (crop - 1) / max(enlarged - 1, 1)
    return (size - crop) // 2 + (enlarged - size) // 2 * step, step


def _zoom_like(at: NDArray[Any], size: int, other: int, factor: float) -> NDArray[np.float64]:
    """The positions that a zoom has at another size, in proportion; pixels are counted from their middles."""
    start, step = _zoom(other, factor)
    ratio = other / size
    there = start + step * ((at + 0.5) * ratio - 0.5)
    return np.asarray((there + 0.5) / ratio - 0.5)
