"""Affine maps, displacements and shifts, with Numba."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Array, Bytes
from beaufort.ops._borders import border_index
from beaufort.ops._numba import inlined, kernel, to_byte
from beaufort.ops._vectors import mix4

__all__ = ["affine", "displace", "displace_zero", "shift"]

i32, i64, f32 = np.int32, np.int64, np.float32


@inlined
def _mix(a, b, d, e, s, t):
    """Between four neighbors: s of the way to the right, t of the way down."""
    upper, lower = a + (b - a) * s, d + (e - d) * s
    return upper + (lower - upper) * t


@inlined
def _sample(source, offset, room, line, channels, rows, columns, tops, lefts, s, t, out):
    """A row of bilinear samples: its pixels come from (lefts + s, tops + t), which count in a margin."""
    for x in range(lefts.size):
        upper, lower = offset + i64(rows[tops[x]]) * line, offset + i64(rows[tops[x] + 1]) * line
        a, b = i64(columns[lefts[x]]) * channels, i64(columns[lefts[x] + 1]) * channels
        if channels == 3 and max(upper, lower) + max(a, b) <= room:
            mix4(out, 3 * x, source, upper + a, upper + b, lower + a, lower + b, s[x], t[x])
        else:
            for c in range(channels):
                near, other = f32(source[upper + a + c]), f32(source[upper + b + c])
                far, beyond = f32(source[lower + a + c]), f32(source[lower + b + c])
                out[channels * x + c] = _mix(near, other, far, beyond, s[x], t[x])


@kernel
def _affine_mirror(images, matrices, rows, columns, margin, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    high_y, high_x = len(rows) - margin - 2, len(columns) - margin - 2
    values = images.reshape(images.size)
    room = images.size - 4  # where the last four values begin
    sampled = np.empty(line + 1, np.float32)
    tops, lefts = np.empty(width, np.uint32), np.empty(width, np.uint32)
    s, t = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(images.shape[0]):
        m, offset = matrices[i], i * height * line
        for y in range(height):
            for x in range(width):
                from_x = m[0, 0] * x + (m[0, 1] * y + m[0, 2])
                from_y = m[1, 0] * x + (m[1, 1] * y + m[1, 2])
                left, top = np.floor(from_x), np.floor(from_y)
                s[x], t[x] = f32(from_x - left), f32(from_y - top)
                lefts[x] = i32(min(max(left, -margin), high_x) + margin)
                tops[x] = i32(min(max(top, -margin), high_y) + margin)
            _sample(values, offset, room, line, channels, rows, columns, tops, lefts, s, t, sampled)
            target = out[i, y].reshape(line)
            for x in range(line):
                target[x] = sampled[x]


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
    """Float32 bilinear samples (0…255): pixel (x, y) comes from matrix · (x, y, 1).

    Outside stands the image mirrored (`mirror`), or black (`zero`), which samples across the edge blend in.
    """
    height, width = images.shape[1:3]
    out = np.empty(images.shape, np.float32)
    if border == "zero":
        _affine_zero(images, matrices, out)
    else:
        margin = 2 * max(height, width)
        rows, columns = (_sample_index(size, margin, border) for size in (height, width))
        _affine_mirror(images, matrices, rows, columns, margin, out)
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
    values = images.reshape(images.size)
    room = images.size - 4  # where the last four values begin
    moved = np.empty(line + 1, np.float32)
    tops, lefts = np.empty(width, np.uint32), np.empty(width, np.uint32)
    s, t = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(images.shape[0]):
        for y in range(height):
            aside, below = right[i, y], down[i, y]
            for x in range(width):
                from_x = f32(i32(x)) + aside[x]
                from_y = f32(i32(y)) + below[x]
                left, top = np.floor(from_x), np.floor(from_y)
                s[x], t[x] = from_x - left, from_y - top
                lefts[x] = i32(min(max(left, low), high_x)) + i32(margin)
                tops[x] = i32(min(max(top, low), high_y)) + i32(margin)
            offset = i * height * line
            _sample(values, offset, room, line, channels, rows, columns, tops, lefts, s, t, moved)
            target = out[i, y].reshape(line)
            for x in range(line):
                target[x] = to_byte(moved[x], nearest)


def displace(images: Array, right: Array, down: Array, *, nearest: bool = False) -> Bytes:
    """Bilinear samples of float images at (x + right, y + down); outside, the image mirrored."""
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
    """As `displace`, but black wherever the sample lies outside; rounded."""
    out = np.empty(images.shape, np.uint8)
    _displace_zero(images, right, down, out)
    return out


def shift(images: Bytes, moves: Array) -> Bytes:
    """Each image moved by whole pixels: sampled at (x + right, y + down), `(n, 2)`; black outside."""
    height, width = images.shape[1:3]
    reach = int(np.abs(moves).max(initial=0))
    padded = np.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    return np.stack(
        [image[y : y + height, x : x + width] for image, (x, y) in zip(padded, reach + moves, strict=True)]
    )
