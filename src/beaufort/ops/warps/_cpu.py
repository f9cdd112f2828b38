"""Affine maps, displacements and shifts, with Numba."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Array, Bytes
from beaufort.ops._borders import border_index
from beaufort.ops._numba import inlined, kernel, to_byte

__all__ = ["affine", "displace", "displace_zero", "shift"]

i32, i64, f32 = np.int32, np.int64, np.float32


@inlined
def _mix(a, b, d, e, s, t):
    """Between four neighbors: s of the way to the right, t of the way down."""
    upper, lower = a + (b - a) * s, d + (e - d) * s
    return upper + (lower - upper) * t


@kernel
def _affine_mirror(images, matrices, rows, columns, margin, out):
    height, width, channels = images.shape[1:]
    high_y, high_x = len(rows) - margin - 2, len(columns) - margin - 2
    frame = np.empty((height, width * channels), np.float32)
    for i in range(images.shape[0]):
        m = matrices[i]
        for y in range(height):
            source, target = images[i, y].reshape(width * channels), frame[y]
            for x in range(width * channels):
                target[x] = f32(source[x])
        for y in range(height):
            target = out[i, y].reshape(width * channels)
            for x in range(width):
                from_x = m[0, 0] * x + (m[0, 1] * y + m[0, 2])
                from_y = m[1, 0] * x + (m[1, 1] * y + m[1, 2])
                left, top = i64(np.floor(from_x)), i64(np.floor(from_y))
                s, t = f32(from_x - left), f32(from_y - top)
                left = min(max(left, -margin), high_x) + margin
                top = min(max(top, -margin), high_y) + margin
                upper, lower = frame[rows[top]], frame[rows[top + 1]]
                a, b = columns[left] * channels, columns[left + 1] * channels
                if channels == 3:
                    for c in range(3):
                        value = _mix(upper[a + c], upper[b + c], lower[a + c], lower[b + c], s, t)
                        target[3 * x + c] = value
                else:
                    target[x] = _mix(upper[a], upper[b], lower[a], lower[b], s, t)


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
    high_y, high_x = len(rows) - margin - 2, len(columns) - margin - 2
    moved = np.empty(line, np.float32)
    for i in range(images.shape[0]):
        frame = images[i].reshape(height, line)
        for y in range(height):
            for x in range(width):
                from_x = f32(x) + right[i, y, x]
                from_y = f32(y) + down[i, y, x]
                left, top = i32(np.floor(from_x)), i32(np.floor(from_y))
                s, t = from_x - f32(left), from_y - f32(top)
                x_at = min(max(left, -margin), high_x) + margin
                y_at = min(max(top, -margin), high_y) + margin
                upper, lower = frame[rows[y_at]], frame[rows[y_at + 1]]
                a, b = columns[x_at] * channels, columns[x_at + 1] * channels
                if channels == 3:
                    for c in range(3):
                        moved[3 * x + c] = _mix(upper[a + c], upper[b + c], lower[a + c], lower[b + c], s, t)
                else:
                    moved[x] = _mix(upper[a], upper[b], lower[a], lower[b], s, t)
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
