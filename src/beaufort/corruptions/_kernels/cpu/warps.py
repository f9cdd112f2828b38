"""Affine maps, displacements and shifts, with Numba."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import inlined, kernel, part, to_byte
from beaufort.corruptions._kernels.borders import border_index
from beaufort.corruptions._kernels.cpu.vectors import mix4

i32, u32, i64, f32 = np.int32, np.uint32, np.int64, np.float32


@inlined
def _mix(a, b, d, e, s, t):
    """Between four neighbors: s of the way to the right, t of the way down."""
    upper, lower = a + (b - a) * s, d + (e - d) * s
    return upper + (lower - upper) * t


_FAR = 1 << 31
"""Values of an image from which places in it have no room in 32 bits."""


@inlined
def _start(left, top, height, width):
    """Where the first of a sample's four neighbors is, if they and one more are inside; or -1."""
    inside = (left >= 0) & (left < width - 2) & (top >= 0) & (top < height - 1)
    return (i32(top) * i32(width) + i32(left)) * i32(3) if inside else i32(-1)


@inlined
def _run_inside(starts):
    """From where to where the samples of a row are inside, if they are without a gap; or an empty run."""
    inside = 0
    for x in range(starts.size):
        inside += starts[x] >= 0
    first, last = 0, starts.size
    while first < last and starts[first] < 0:
        first += 1
    while last > first and starts[last - 1] < 0:
        last -= 1
    return (first, last) if last - first == inside else (0, 0)


@part
def _sample_inside(image, starts, line, s, t, out):
    """Samples of three colors, all of them inside."""
    for x in range(starts.size):
        at = starts[x]
        mix4(out, 3 * x, image, at, at + 3, at + line, at + line + 3, s[x], t[x])


@part
def _sample_some(image, pixels, line, channels, row_starts, column_starts, tops, lefts, s, t, starts, out):
    """Samples anywhere: beyond its edges the image stands again, as the tables of places say."""
    for x in range(*pixels):
        if channels == 3 and starts[x] >= 0:
            at = starts[x]
            mix4(out, 3 * x, image, at, at + 3, at + line, at + line + 3, s[x], t[x])
        else:
            upper, lower = row_starts[tops[x]], row_starts[tops[x] + u32(1)]
            a, b = column_starts[lefts[x]], column_starts[lefts[x] + u32(1)]
            for c in range(channels):
                near, other = f32(image[upper + a + c]), f32(image[upper + b + c])
                far, beyond = f32(image[lower + a + c]), f32(image[lower + b + c])
                out[channels * x + c] = _mix(near, other, far, beyond, s[x], t[x])


@inlined
def _sample_row(values, channels, row_starts, column_starts, tops, lefts, s, t, starts, out):
    """A row of bilinear samples, and one value more: pixels come from (lefts + s, tops + t) in a margin."""
    width = starts.size
    line = width * channels
    first, last = _run_inside(starts) if channels == 3 else (0, 0)
    places = (row_starts, column_starts, tops, lefts, s, t, starts)
    _sample_some(values, (0, first), line, channels, *places, out)
    if last > first:
        run = slice(first, last)
        _sample_inside(values, starts[run], line, s[run], t[run], out[3 * first :])
    _sample_some(values, (last, width), line, channels, *places, out)


@kernel
def _affine_mirror(images, matrices, rows, columns, margin, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    high_y, high_x = len(rows) - margin - 2, len(columns) - margin - 2
    row_starts, column_starts = rows * line, columns * channels
    tops, lefts = np.empty(width, np.uint32), np.empty(width, np.uint32)
    starts, lines = np.empty(width, np.int32), height if height * line < _FAR else 0
    s, t = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(images.shape[0]):
        m, values = matrices[i], images[i].reshape(height * line)
        for y in range(height):
            for x in range(width):
                from_x = m[0, 0] * x + (m[0, 1] * y + m[0, 2])
                from_y = m[1, 0] * x + (m[1, 1] * y + m[1, 2])
                left, top = np.floor(from_x), np.floor(from_y)
                s[x], t[x] = f32(from_x - left), f32(from_y - top)
                left, top = min(max(left, -margin), high_x), min(max(top, -margin), high_y)
                starts[x] = _start(left, top, lines, width)
                lefts[x], tops[x] = i32(left + margin), i32(top + margin)
            target = out[(i * height + y) * line :]
            _sample_row(values, channels, row_starts, column_starts, tops, lefts, s, t, starts, target)


@kernel
def _affine_zero(images, matrices, out):
    height, width, channels = images.shape[1:]
    frame = np.zeros((height + 2, width + 2), np.float32)  # the black outside
    for i in range(images.shape[0]):
        m = matrices[i]
        for c in range(channels):
            for y in range(height):
                for x in range(width):
                    frame[y + 1, x + 1] = f32(images[i, y, x, c])
            for y in range(height):
                for x in range(width):
                    from_x = m[0, 0] * x + (m[0, 1] * y + m[0, 2]) + 1
                    from_y = m[1, 0] * x + (m[1, 1] * y + m[1, 2]) + 1
                    value = f32(0)
                    if from_x > 0 and from_y > 0 and from_x < width + 1 and from_y < height + 1:
                        left, top = i64(from_x), i64(from_y)
                        s, t = f32(from_x - left), f32(from_y - top)
                        upper, lower = frame[top], frame[top + 1]
                        value = _mix(upper[left], upper[left + 1], lower[left], lower[left + 1], s, t)
                    out[i, y, x, c] = value


def affine(images: Bytes, matrices: Array, *, border: str) -> Array:
    height, width = images.shape[1:3]
    values = np.empty(images.size + 1, np.float32)  # one more, as samples are made
    out = values[:-1].reshape(images.shape)
    if border == "zero":
        _affine_zero(images, matrices, out)
    else:
        margin = 2 * max(height, width)
        rows, columns = (_sample_index(size, margin, border) for size in (height, width))
        _affine_mirror(images, matrices, rows, columns, margin, values)
    return out


@lru_cache(maxsize=64)
def _sample_index(size: int, margin: int, border: str) -> NDArray[np.int64]:
    """For each coordinate from -margin to size + margin, the pixel that stands there."""
    return border_index(size, margin, margin + 1, border).astype(np.int64)


@kernel
def _displace(images, right, down, rows, columns, margin, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    high_y, high_x = f32(len(rows) - margin - 2), f32(len(columns) - margin - 2)
    low = f32(-margin)
    moved = np.empty(line + 1, np.float32)
    row_starts, column_starts = rows * line, columns * channels
    tops, lefts = np.empty(width, np.uint32), np.empty(width, np.uint32)
    starts, lines = np.empty(width, np.int32), height if height * line < _FAR else 0
    s, t = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(images.shape[0]):
        values, targets = images[i].reshape(height * line), out[i].reshape(height, line)
        for y in range(height):
            aside, below = right[i, y], down[i, y]
            for x in range(width):
                from_x = f32(i32(x)) + aside[x]
                from_y = f32(i32(y)) + below[x]
                left, top = np.floor(from_x), np.floor(from_y)
                s[x], t[x] = from_x - left, from_y - top
                left, top = min(max(left, low), high_x), min(max(top, low), high_y)
                starts[x] = _start(left, top, lines, width)
                lefts[x], tops[x] = i32(left) + i32(margin), i32(top) + i32(margin)
            _sample_row(values, channels, row_starts, column_starts, tops, lefts, s, t, starts, moved)
            target = targets[y]
            for x in range(line):
                target[x] = to_byte(moved[x], nearest)


def displace(images: Array, right: Array, down: Array, *, nearest: bool = False) -> Bytes:
    height, width = images.shape[1:3]
    margin = 2 * max(height, width)
    rows, columns = (_sample_index(size, margin, "reflect") for size in (height, width))
    out = np.empty(images.shape, np.uint8)
    _displace(images, right, down, rows, columns, margin, nearest, out)
    return out


@kernel
def _displace_zero(images, right, down, out):
    height, width, channels = images.shape[1:]
    for i in range(images.shape[0]):
        for y in range(height):
            for x in range(width):
                from_x, from_y = x + right[i, y, x], y + down[i, y, x]
                if from_x < 0 or from_y < 0 or from_x > width - 1 or from_y > height - 1:
                    for c in range(channels):
                        out[i, y, x, c] = 0
                    continue
                left, top = i64(from_x), i64(from_y)
                s, t = f32(from_x - left), f32(from_y - top)
                right_x, low_y = min(left + 1, width - 1), min(top + 1, height - 1)
                for c in range(channels):
                    a, b = images[i, top, left, c], images[i, top, right_x, c]
                    d, e = images[i, low_y, left, c], images[i, low_y, right_x, c]
                    out[i, y, x, c] = to_byte(_mix(a, b, d, e, s, t), True)


def displace_zero(images: Array, right: Array, down: Array) -> Bytes:
    out = np.empty(images.shape, np.uint8)
    _displace_zero(images, right, down, out)
    return out


def shift(images: Bytes, moves: Array) -> Bytes:
    height, width = images.shape[1:3]
    reach = int(np.abs(moves).max(initial=0))
    padded = np.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    return np.stack(
        [image[y : y + height, x : x + width] for image, (x, y) in zip(padded, reach + moves, strict=True)]
    )
