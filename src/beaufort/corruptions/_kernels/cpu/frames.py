"""Frames of a sequence, with Numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import exact_kernel
from beaufort.corruptions._kernels.cpu.vectors import mix4

i32, f32, u8 = np.int32, np.float32, np.uint8


def affine_frame(images: Bytes, matrix: Array, about: tuple[float, float], side: int) -> Bytes:
    top, left = (round((length - side) / 2) for length in images.shape[1:3])
    out = np.zeros((len(images), side, side, images.shape[3]), np.uint8)
    (a, b), (c, d) = matrix.tolist()
    if b == 0 and c == 0:
        rows = _positions(images.shape[1], side, d, about[1], top)
        columns = _positions(images.shape[2], side, a, about[0], left)
        _scaled_frame(images, *rows, *columns, out)
    else:
        exact = np.ascontiguousarray(matrix, np.float64)
        _affine_frame(_with_room(images), *images.shape[1:3], exact, about, top, left, out)
    return out


def _positions(
    length: int, side: int, factor: float, about: float, start: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int, int]:
    """Return the source of each pixel of a scaled side: the pixel before, the next, and its weight.

    The pixels that come from inside of the image are those from the first to before the last number.
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
    """Apply a map that keeps rows horizontal: each row is stretched once and mixed with the next."""
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
    if out.size == 3 * columns.size:
        for x in range(first, last):
            a, b, s = columns[x] * 3, next_columns[x] * 3, across[x]
            p, q, r = float(row[a]), float(row[a + 1]), float(row[a + 2])
            out[3 * x] = p + (row[b] - p) * s
            out[3 * x + 1] = q + (row[b + 1] - q) * s
            out[3 * x + 2] = r + (row[b + 2] - r) * s
    else:
        for x in range(first, last):
            p = float(row[columns[x]])
            out[x] = p + (row[next_columns[x]] - p) * across[x]


@exact_kernel
def _affine_frame(pixels, height, width, matrix, about, top, left, out):
    """Compute positions in double precision, and mixtures of pixels in single precision."""
    side, channels = out.shape[2:]
    line = width * channels
    (a, b), (c, d) = (matrix[0, 0], matrix[0, 1]), (matrix[1, 0], matrix[1, 1])
    about_x, about_y = about
    mixed = np.zeros(4 * side, np.float32)
    for i in range(out.shape[0]):
        for y in range(side):
            down = y + top + 0.5 - about_y
            mixed[:] = 0
            for x in range(side):
                right = x + left + 0.5 - about_x
                u, v = a * right + b * down + about_x, c * right + d * down + about_y
                if u < 0 or u >= width or v < 0 or v >= height:
                    continue
                u, v = min(max(u - 0.5, 0.0), width - 1.0), min(max(v - 0.5, 0.0), height - 1.0)
                column, row = i32(u), i32(v)
                at = (i * height + row) * line + column * channels
                below = at + line if row < height - 1 else at
                step = channels if column < width - 1 else 0
                mix4(mixed, 4 * x, pixels, at, at + step, below, below + step, f32(u - column), f32(v - row))
            _show(mixed, f32(0), out[i, y].reshape(side * channels))


def perspective_frame(images: Bytes, matrix: Array, side: int) -> Bytes:
    top, left = (round((length - side) / 2) for length in images.shape[1:3])
    framed = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = np.empty((len(images), side, side, images.shape[3]), np.uint8)
    inverse = np.ascontiguousarray(matrix, np.float64)
    _perspective_frame(_with_room(framed), *framed.shape[1:3], inverse, top, left, out)
    return out


@exact_kernel
def _perspective_frame(pixels, height, width, matrix, top, left, out):
    """Sample images in a black frame of one pixel; mixtures of integers of 1/1024 are exact."""
    side, channels = out.shape[2:]
    line = width * channels
    mixed = np.zeros(4 * side, np.float32)
    for i in range(out.shape[0]):
        for y in range(side):
            down = float(y + top)
            mixed[:] = 0
            for x in range(side):
                right = float(x + left)
                depth = matrix[2, 0] * right + matrix[2, 1] * down + matrix[2, 2]
                u = np.rint((matrix[0, 0] * right + matrix[0, 1] * down + matrix[0, 2]) / depth * 32) / 32
                v = np.rint((matrix[1, 0] * right + matrix[1, 1] * down + matrix[1, 2]) / depth * 32) / 32
                if u < -1 or u >= width - 2 or v < -1 or v >= height - 2:
                    continue
                column, row = i32(u + 1), i32(v + 1)
                s, t = f32(u + 1 - column), f32(v + 1 - row)
                at = (i * height + row) * line + column * channels
                mix4(mixed, 4 * x, pixels, at, at + channels, at + line, at + line + channels, s, t)
            _show(mixed, f32(0.5), out[i, y].reshape(side * channels))


@exact_kernel
def _show(mixed, more, out):
    """Truncate to 8 bits the values of a row of pixels with space for four values each."""
    channels = 4 * out.size // mixed.size
    if channels == 3:
        for x in range(mixed.size // 4):
            out[3 * x] = u8(i32(mixed[4 * x] + more))
            out[3 * x + 1] = u8(i32(mixed[4 * x + 1] + more))
            out[3 * x + 2] = u8(i32(mixed[4 * x + 2] + more))
    else:
        for x in range(out.size):
            out[x] = u8(i32(mixed[4 * x] + more))


def _with_room(images: Bytes) -> Bytes:
    """Return all values in a row, with padding to read four values at the last pixel."""
    flat = np.zeros(images.size + 4, np.uint8)
    flat[: images.size] = images.reshape(-1)
    return flat


def add_frame(
    total: NDArray[np.float32], images: Bytes, matrix: Array, about: tuple[float, float], count: int
) -> Bytes:
    frame = affine_frame(images, matrix, about, total.shape[1])
    _add_frame(total.reshape(-1), frame.reshape(-1), np.float32(count))
    return frame


@exact_kernel
def _add_frame(total, values, count):
    """Replace the values by the mean."""
    for x in range(values.size):
        total[x] += f32(values[x]) / f32(255)
        values[x] = u8(i32(min(total[x] / count * f32(255), f32(255))))
