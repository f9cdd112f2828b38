"""Moving pixels: glass, warps, cells."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes, Field
from beaufort.ops.cpu._kernel import kernel
from beaufort.ops.cpu._pixels import border_index, to_byte
from beaufort.ops.cpu.blur import zoom_positions

__all__ = [
    "affine",
    "copy_sweeps",
    "displace",
    "displace_zero",
    "flakes",
    "pixel_cells",
    "swap_sweeps",
]

i32, u32, i64, f32, u8 = np.int32, np.uint32, np.int64, np.float32, np.uint8


@kernel
def _copy_sweeps(images, offsets, distance, out):  # type: ignore[no-untyped-def]
    height, width, channels = images.shape[1:]
    packed = np.empty(height * width, np.uint32)
    for i in range(images.shape[0]):
        source = images[i].reshape(height * width, channels)
        target = out[i].reshape(height * width, channels)
        if channels == 3:
            for x in range(packed.size):
                packed[x] = u32(source[x, 0]) | u32(source[x, 1]) << u32(8) | u32(source[x, 2]) << u32(16)
        else:
            for x in range(packed.size):
                packed[x] = u32(source[x, 0])
        for sweep in range(offsets.shape[1]):
            for r in range(offsets.shape[2]):
                row = offsets[i, sweep, r]
                start = (height - distance - r) * width + width - distance
                for c in range(row.shape[0]):
                    at = start - c
                    packed[at] = packed[at + i64(row[c, 1]) * width + i64(row[c, 0])]
        if channels == 3:
            for x in range(packed.size):
                target[x, 0] = u8(packed[x])
                target[x, 1] = u8(packed[x] >> u32(8))
                target[x, 2] = u8(packed[x] >> u32(16))
        else:
            for x in range(packed.size):
                target[x, 0] = u8(packed[x])


def copy_sweeps(images: Bytes, offsets: Field, distance: int) -> Bytes:
    """Sweep over the pixels from the last to the first, each taking the value of one near it.

    `offsets` is `(n, sweeps, h - 2d, w - 2d, 2)`: column and row offset in the order of the visits.
    """
    out = np.empty_like(images)
    _copy_sweeps(images, offsets, distance, out)
    return out


@kernel
def _swap_sweeps(images, gates, offsets, distance, out):  # type: ignore[no-untyped-def]
    height, width = images.shape[1:3]
    for i in range(images.shape[0]):
        out[i] = images[i]
        for c in range(images.shape[3]):
            for sweep in range(gates.shape[1]):
                for r in range(gates.shape[2]):
                    y = height - distance - r
                    for k in range(gates.shape[3]):
                        if gates[i, sweep, r, k]:
                            x = width - distance - k
                            other_x = x + offsets[i, sweep, r, k, 0]
                            other_y = y + offsets[i, sweep, r, k, 1]
                            value = out[i, y, x, c]
                            out[i, y, x, c] = out[i, other_y, other_x, c]
                            out[i, other_y, other_x, c] = value


def swap_sweeps(images: Bytes, gates: Field, offsets: Field, distance: int) -> Bytes:
    """As `copy_sweeps`, but a true swap, and only where the gate is open."""
    out = np.empty_like(images)
    _swap_sweeps(images, gates, offsets, distance, out)
    return out


@kernel
def _flakes(normals, mean, spread, threshold, rows, row_share, columns, column_share, out):  # type: ignore[no-untyped-def]
    for i in range(normals.shape[0]):
        for y in range(out.shape[1]):
            a = normals[i, rows[y]]
            b = normals[i, min(rows[y] + 1, normals.shape[1] - 1)]
            t = row_share[y]
            for x in range(out.shape[2]):
                k, j, s = columns[x], min(columns[x] + 1, normals.shape[2] - 1), column_share[x]
                left = a[k] * (1 - t) + b[k] * t
                right = a[j] * (1 - t) + b[j] * t
                value = mean + spread * (left * (1 - s) + right * s)
                value = 0.0 if value < threshold else value
                out[i, y, x, 0] = u8(min(max(value, 0.0), 1.0) * 255)


def flakes(normals: Field, mean: float, spread: float, factor: float, threshold: float) -> Bytes:
    """A layer of grains `(n, h, w, 1)`: normal noise zoomed into the middle, only the brightest left."""
    down, across = (zoom_positions(size, factor) for size in normals.shape[1:])
    out = np.empty((*normals.shape, 1), np.uint8)
    _flakes(normals, mean, spread, threshold, *down, *across, out)
    return out


@kernel
def _affine(images, matrices, rows, columns, margin, out):  # type: ignore[no-untyped-def]
    height, width, channels = images.shape[1:]
    high_y, high_x = len(rows) - margin - 2, len(columns) - margin - 2
    for i in range(images.shape[0]):
        m = matrices[i]
        for y in range(height):
            for x in range(width):
                from_x = m[0, 0] * x + m[0, 1] * y + m[0, 2]
                from_y = m[1, 0] * x + m[1, 1] * y + m[1, 2]
                left, top = i64(np.floor(from_x)), i64(np.floor(from_y))
                s, t = f32(from_x - left), f32(from_y - top)
                left = min(max(left, -margin), high_x) + margin
                top = min(max(top, -margin), high_y) + margin
                x0, x1, y0, y1 = columns[left], columns[left + 1], rows[top], rows[top + 1]
                for c in range(channels):
                    a = f32(images[i, y0, x0, c]) if x0 >= 0 and y0 >= 0 else f32(0)
                    b = f32(images[i, y0, x1, c]) if x1 >= 0 and y0 >= 0 else f32(0)
                    d = f32(images[i, y1, x0, c]) if x0 >= 0 and y1 >= 0 else f32(0)
                    e = f32(images[i, y1, x1, c]) if x1 >= 0 and y1 >= 0 else f32(0)
                    upper, lower = a + (b - a) * s, d + (e - d) * s
                    out[i, y, x, c] = upper + (lower - upper) * t


def affine(images: Bytes, matrices: Field, *, border: str) -> Field:
    """Float32 bilinear samples (0…255): pixel (x, y) comes from matrix · (x, y, 1).

    Outside stands the image mirrored, or zero, which the samples across the edge blend in.
    """
    height, width = images.shape[1:3]
    margin = 2 * max(height, width)
    rows, columns = (_sample_index(size, margin, border) for size in (height, width))
    out = np.empty(images.shape, np.float32)
    _affine(images, matrices, rows, columns, margin, out)
    return out


@lru_cache(maxsize=64)
def _sample_index(size: int, margin: int, border: str) -> NDArray[np.int64]:
    """For each coordinate from -margin to size + margin, the pixel that stands there; -1 for none."""
    if border == "zero":
        at = np.arange(-margin, size + margin + 1)
        return np.where((at >= 0) & (at < size), at, -1)
    return border_index(size, margin, margin + 1, border).astype(np.int64)


@kernel
def _displace(images, right, down, rows, columns, margin, nearest, out):  # type: ignore[no-untyped-def]
    height, width, channels = images.shape[1:]
    high_y, high_x = len(rows) - margin - 2, len(columns) - margin - 2
    for i in range(images.shape[0]):
        for y in range(height):
            for x in range(width):
                from_x = f32(x) + right[i, y, x]
                from_y = f32(y) + down[i, y, x]
                left, top = i32(np.floor(from_x)), i32(np.floor(from_y))
                s, t = from_x - f32(left), from_y - f32(top)
                left = min(max(left, -margin), high_x) + margin
                top = min(max(top, -margin), high_y) + margin
                x0, x1, y0, y1 = columns[left], columns[left + 1], rows[top], rows[top + 1]
                for c in range(channels):
                    a, b = images[i, y0, x0, c], images[i, y0, x1, c]
                    d, e = images[i, y1, x0, c], images[i, y1, x1, c]
                    upper, lower = a + (b - a) * s, d + (e - d) * s
                    out[i, y, x, c] = to_byte(upper + (lower - upper) * t, nearest)


def displace(images: Field, right: Field, down: Field, *, nearest: bool = False) -> Bytes:
    """Bilinear samples of float images at (x + right, y + down); outside, the image mirrored."""
    height, width = images.shape[1:3]
    margin = 2 * max(height, width)
    rows, columns = (_sample_index(size, margin, "reflect") for size in (height, width))
    out = np.empty(images.shape, np.uint8)
    _displace(images, right, down, rows, columns, margin, nearest, out)
    return out


@kernel
def _displace_zero(images, right, down, out):  # type: ignore[no-untyped-def]
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
                    upper, lower = a + (b - a) * s, d + (e - d) * s
                    out[i, y, x, c] = to_byte(upper + (lower - upper) * t, True)


def displace_zero(images: Field, right: Field, down: Field) -> Bytes:
    """As `displace`, but black wherever the sample lies outside; rounded."""
    out = np.empty(images.shape, np.uint8)
    _displace_zero(images, right, down, out)
    return out


@kernel
def _pixel_cells(images, row_start, row_stop, rows, column_start, column_stop, columns, out):  # type: ignore[no-untyped-def]
    height, width, channels = images.shape[1:]
    across = len(column_start) * channels
    half, bits = i64(1 << 21), i64(22)
    narrow = np.empty((height, across), np.uint8)
    sums = np.empty(across, np.int64)
    wide = np.empty(width * channels, np.uint8)
    for i in range(images.shape[0]):
        for y in range(height):
            for k in range(len(column_start)):
                first, last = column_start[k], column_stop[k]
                weight = i64(round((1 << 22) / (last - first)))
                for c in range(channels):
                    total = i64(0)
                    for x in range(first, last):
                        total += i64(images[i, y, x, c])
                    narrow[y, k * channels + c] = u8((total * weight + half) >> bits)
        drawn = -1
        for y in range(height):
            k = rows[y]
            target = out[i, y].reshape(width * channels)
            if k != drawn:
                drawn = k
                weight = i64(round((1 << 22) / (row_stop[k] - row_start[k])))
                sums[:] = 0
                for source in range(row_start[k], row_stop[k]):
                    for x in range(across):
                        sums[x] += i64(narrow[source, x])
                for x in range(width):
                    for c in range(channels):
                        total = sums[columns[x] * channels + c]
                        wide[x * channels + c] = u8((total * weight + half) >> bits)
            target[:] = wide


def pixel_cells(images: Bytes, rows: int, columns: int) -> Bytes:
    """Average into rows × columns cells and show each cell flat, as PIL's BOX filter does."""
    out = np.empty_like(images)
    _pixel_cells(images, *_cells(images.shape[1], rows), *_cells(images.shape[2], columns), out)
    return out


@lru_cache(maxsize=128)
def _cells(
    size: int, cells: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """First and last pixel of each cell (whole pixels only), and the cell that each pixel shows."""
    scale = size / cells
    middle = (np.arange(cells) + 0.5) * scale
    start = np.maximum((middle - scale / 2 + 0.5).astype(np.int64), 0)
    stop = np.minimum((middle + scale / 2 + 0.5).astype(np.int64), size)
    shown = ((np.arange(size) + 0.5) * cells / size).astype(np.int64)
    for cell in range(cells):
        inside = (np.arange(start[cell], stop[cell]) + 0.5 - middle[cell]) / scale
        keep = np.flatnonzero((inside > -0.5) & (inside <= 0.5))
        start[cell], stop[cell] = start[cell] + keep[0], start[cell] + keep[-1] + 1
    return start, stop, shown
