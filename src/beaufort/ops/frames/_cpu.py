"""Frames of a film, with Numba."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Array, Bytes
from beaufort.ops._numba import exact_kernel

__all__ = ["add_frame", "affine_frame", "perspective_frame"]

i32, f32, u8 = np.int32, np.float32, np.uint8


def affine_frame(images: Bytes, matrix: Array, about: tuple[float, float], side: int) -> Bytes:
    """The middle of a picture under (x, y) ← matrix · (x, y) about a point, cut off to 8 bit.

    Linear between pixels. A position outside the picture is black; its edge is not blended.
    """
    top, left = (round((length - side) / 2) for length in images.shape[1:3])
    out = np.zeros((len(images), side, side, images.shape[3]), np.uint8)
    (a, b), (c, d) = matrix.tolist()
    if b == 0 and c == 0:
        rows = _positions(images.shape[1], side, d, about[1], top)
        columns = _positions(images.shape[2], side, a, about[0], left)
        _scaled_frame(images, *rows, *columns, out)
    else:
        _affine_frame(images, a, b, c, d, *about, top, left, out)
    return out


def _positions(
    length: int, side: int, factor: float, about: float, start: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int, int]:
    """Where each pixel of a scaled side comes from: the one before, the next, the share of that.

    The pixels that come from inside of the picture are those from the first to before the last number.
    """
    at = factor * (np.arange(side) + start + 0.5 - about) + about
    inside = np.flatnonzero((at >= 0) & (at < length))
    first, last = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)
    at = np.clip(at - 0.5, 0, length - 1)
    before = np.floor(at).astype(np.int64)
    return before, np.minimum(before + 1, length - 1), at - before, first, last


@exact_kernel
def _scaled_frame(
    images, rows, next_rows, down, first_row, last_row, columns, next_columns, across, first, last, out
):
    """A map that keeps rows rows: each is stretched once, and mixed with the next."""
    width, channels = images.shape[2:]
    line, side = width * channels, out.shape[2] * channels
    upper, lower = np.zeros(side), np.zeros(side)
    for i in range(images.shape[0]):
        upper_is = lower_is = -1
        for y in range(first_row, last_row):
            row, next_row, t = rows[y], next_rows[y], down[y]
            if upper_is != row:
                if lower_is == row:
                    upper, lower = lower, upper
                    lower_is = upper_is
                else:
                    _stretch(images[i, row].reshape(line), columns, next_columns, across, first, last, upper)
                upper_is = row
            if lower_is != next_row:
                _stretch(images[i, next_row].reshape(line), columns, next_columns, across, first, last, lower)
                lower_is = next_row
            shown = out[i, y].reshape(side)
            for x in range(first * channels, last * channels):
                shown[x] = u8(i32(upper[x] + (lower[x] - upper[x]) * t))


@exact_kernel
def _stretch(row, columns, next_columns, across, first, last, out):
    channels = out.size // columns.size
    for x in range(first, last):
        a, b, s = columns[x] * channels, next_columns[x] * channels, across[x]
        for k in range(channels):
            p, q = float(row[a + k]), float(row[b + k])
            out[x * channels + k] = p + (q - p) * s


@exact_kernel
def _affine_frame(images, a, b, c, d, about_x, about_y, top, left, out):
    height, width, channels = images.shape[1:]
    for y in range(out.shape[1]):
        for x in range(out.shape[2]):
            right, down = x + left + 0.5 - about_x, y + top + 0.5 - about_y
            u, v = a * right + b * down + about_x, c * right + d * down + about_y
            if u < 0 or u >= width or v < 0 or v >= height:
                continue
            u, v = min(max(u - 0.5, 0.0), width - 1.0), min(max(v - 0.5, 0.0), height - 1.0)
            column, row = i32(u), i32(v)
            next_column, next_row = min(column + 1, width - 1), min(row + 1, height - 1)
            s, t = u - column, v - row
            for i in range(images.shape[0]):
                for k in range(channels):
                    p, q = float(images[i, row, column, k]), float(images[i, row, next_column, k])
                    upper = p + (q - p) * s
                    p, q = float(images[i, next_row, column, k]), float(images[i, next_row, next_column, k])
                    lower = p + (q - p) * s
                    out[i, y, x, k] = u8(i32(upper + (lower - upper) * t))


def perspective_frame(images: Bytes, matrix: Array, side: int) -> Bytes:
    """The middle of a picture under a perspective map from the frame to the picture, rounded.

    Positions are multiples of 1/32 pixel. Linear between pixels, and black outside is blended in.
    """
    top, left = (round((length - side) / 2) for length in images.shape[1:3])
    height, width = images.shape[1:3]
    framed = np.zeros((len(images), height + 2, width + 2, images.shape[3]), np.uint8)
    framed[:, 1:-1, 1:-1] = images
    out = np.zeros((len(images), side, side, images.shape[3]), np.uint8)
    _perspective_frame(framed, np.ascontiguousarray(matrix, np.float64), top, left, out)
    return out


@exact_kernel
def _perspective_frame(framed, matrix, top, left, out):
    """Of images in a black frame of one pixel."""
    height, width, channels = framed.shape[1:]
    for y in range(out.shape[1]):
        for x in range(out.shape[2]):
            right, down = float(x + left), float(y + top)
            depth = matrix[2, 0] * right + matrix[2, 1] * down + matrix[2, 2]
            u = np.rint((matrix[0, 0] * right + matrix[0, 1] * down + matrix[0, 2]) / depth * 32) / 32
            v = np.rint((matrix[1, 0] * right + matrix[1, 1] * down + matrix[1, 2]) / depth * 32) / 32
            column, row = math.floor(u) + 1, math.floor(v) + 1
            if column < 0 or column > width - 2 or row < 0 or row > height - 2:
                continue
            s, t = u - (column - 1), v - (row - 1)
            for i in range(framed.shape[0]):
                for k in range(channels):
                    p, q = float(framed[i, row, column, k]), float(framed[i, row, column + 1, k])
                    upper = p + (q - p) * s
                    p, q = float(framed[i, row + 1, column, k]), float(framed[i, row + 1, column + 1, k])
                    lower = p + (q - p) * s
                    out[i, y, x, k] = u8(i32(upper + (lower - upper) * t + 0.5))


def add_frame(total: NDArray[np.float32], images: Bytes, count: int) -> Bytes:
    """Add images, as values from 0 to 1, to a float32 sum in place: the mean of `count`, cut off."""
    out = np.empty_like(images)
    _add_frame(total.reshape(-1), images.reshape(-1), np.float32(count), out.reshape(-1))
    return out


@exact_kernel
def _add_frame(total, values, count, out):
    for x in range(values.size):
        total[x] += f32(values[x]) / f32(255)
        out[x] = u8(i32(min(total[x] / count * f32(255), f32(255))))
