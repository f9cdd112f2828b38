"""Moving pixels: glass, warps, cells."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes, Field
from beaufort.errors import ImageValueError
from beaufort.ops import Ends
from beaufort.ops.cpu._kernel import inlined, kernel
from beaufort.ops.cpu._pixels import border_index, to_byte
from beaufort.ops.cpu.blur import zoom_positions

__all__ = [
    "MOST_PIXELS",
    "affine",
    "cell_areas",
    "cell_table",
    "copy_sweeps",
    "displace",
    "displace_zero",
    "flakes",
    "pick",
    "pixel_cells",
    "shift",
    "soft_cells",
    "swap_sweeps",
]

i32, u16, u32, i64, f32, u8 = np.int32, np.uint16, np.uint32, np.int64, np.float32, np.uint8


@kernel
def _copy_sweeps(images, offsets, distance, out):
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
def _swap_sweeps(images, gates, offsets, distance, out):
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
def _flakes(normals, mean, spread, threshold, rows, row_share, columns, column_share, out):
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


def flakes(
    normals: Field, mean: float, spread: float, factor: float, threshold: float, *, like: Ends | None = None
) -> Bytes:
    """A layer of grains `(n, h, w, 1)`: normal noise zoomed into the middle, only the brightest left."""
    down, across = (zoom_positions(size, factor, like) for size in normals.shape[1:])
    out = np.empty((*normals.shape, 1), np.uint8)
    _flakes(normals, mean, spread, threshold, *down, *across, out)
    return out


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


def affine(images: Bytes, matrices: Field, *, border: str) -> Field:
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


def displace(images: Field, right: Field, down: Field, *, nearest: bool = False) -> Bytes:
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


def displace_zero(images: Field, right: Field, down: Field) -> Bytes:
    """As `displace`, but black wherever the sample lies outside; rounded."""
    out = np.empty(images.shape, np.uint8)
    _displace_zero(images, right, down, out)
    return out


@inlined
def _means(sums, count, short, out):
    """The means of `count` bytes by their sums, in PIL's fixed point or in 16 bits that give the same."""
    if short[count, 0] > 0:
        factor, offset = u32(short[count, 0]), u16(short[count, 1])
        for x in range(sums.size):
            out[x] = u8(u32(u16(sums[x] + offset)) * factor >> u32(16))
    else:
        weight = u32(round((1 << 22) / count))
        for x in range(sums.size):
            out[x] = u8((u32(sums[x]) * weight + u32(1 << 21)) >> u32(22))


@kernel
def _pixel_cells(images, row_cells, rows, column_cells, columns, short, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    across = len(column_cells) * channels
    # Cells have n or n + 1 pixels. The means of both are taken at every pixel, which vectorizes, and
    # those that are wanted are picked.
    n = column_cells[:, 1].min()
    starts = column_cells[:, 0] * channels + np.where(column_cells[:, 1] > n, line, 0)
    sums = np.empty(line, np.uint16)
    means = np.empty(2 * line, np.uint8)
    narrow = np.empty((height, across), np.uint8)
    totals = np.empty(across, np.uint16)
    cells = np.empty(across, np.uint8)
    for i in range(images.shape[0]):
        for y in range(height):
            source, target = images[i, y].reshape(line), narrow[y]
            for x in range(line):
                sums[x] = u16(source[x])
            for k in range(1, n + 1):
                if k == n:
                    _means(sums, n, short, means)
                shifted = source[k * channels :]
                for x in range(shifted.size):
                    sums[x] += u16(shifted[x])
            _means(sums, n + 1, short, means[line:])
            for k in range(starts.size):
                at = starts[k]
                if channels == 3:
                    target[3 * k] = means[at]
                    target[3 * k + 1] = means[at + 1]
                    target[3 * k + 2] = means[at + 2]
                else:
                    target[k] = means[at]
        shown = -1
        for y in range(height):
            target = out[i, y].reshape(line)
            if rows[y] == shown:
                above = out[i, y - 1].reshape(line)
                for x in range(line):
                    target[x] = above[x]
                continue
            shown = rows[y]
            first, count = row_cells[shown, 0], row_cells[shown, 1]
            totals[:] = 0
            for k in range(first, first + count):
                source = narrow[k]
                for x in range(across):
                    totals[x] += u16(source[x])
            _means(totals, count, short, cells)
            if channels == 3:
                for x in range(width):
                    k = columns[x] * 3
                    target[3 * x] = cells[k]
                    target[3 * x + 1] = cells[k + 1]
                    target[3 * x + 2] = cells[k + 2]
            else:
                for x in range(width):
                    target[x] = cells[columns[x]]


def pixel_cells(images: Bytes, rows: int, columns: int) -> Bytes:
    """Average into rows × columns cells and show each cell flat, as PIL's BOX filter does."""
    out = np.empty_like(images)
    down, across = cell_table(images.shape[1], rows), cell_table(images.shape[2], columns)
    most = max(down[0][:, 1].max(), across[0][:, 1].max())
    if most > MOST_PIXELS:
        raise ImageValueError(
            f"cells of {most} pixels came; at most {MOST_PIXELS} are accepted: shrink the image first"
        )
    _pixel_cells(images, *down, *across, _short_means(), out)
    return out


MOST_PIXELS = 256
"""The widest cell whose sum fits 16 bits."""


@lru_cache(maxsize=1)
def _short_means() -> NDArray[np.int64]:
    """For each count the factor and offset with which 16 bits give the mean of any sum; 0 if none do."""
    short = np.zeros((MOST_PIXELS + 2, 2), np.int64)
    short[1] = 1 << 16, 0
    for count in range(2, 25):  # beyond, few counts have one
        sums = np.arange(255 * count + 1)
        wanted = (sums * round((1 << 22) / count) + (1 << 21)) >> 22
        factor = -(-(1 << 16) // count)
        for offset in (count // 2, (count - 1) // 2):
            if np.array_equal((sums + offset) * factor >> 16, wanted):
                short[count] = factor, offset
    return short


@lru_cache(maxsize=128)
def cell_table(size: int, cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First pixel and number of pixels of each cell, `(cells, 2)`, and each pixel's cell.

    A cell averages the whole pixels whose centers lie in it, after its lower edge, up to its upper. On
    an edge rounding decides, so the arithmetic is PIL's.
    """
    scale = size / cells
    table = np.empty((cells, 2), np.int64)
    for cell in range(cells):
        middle = (cell + 0.5) * scale
        first = max(int(middle - scale / 2 + 0.5), 0)
        end = min(int(middle + scale / 2 + 0.5), size)
        inside = [x for x in range(first, end) if -0.5 < (x - middle + 0.5) * (1 / scale) <= 0.5]
        table[cell] = inside[0], len(inside)
    return table, ((np.arange(size) + 0.5) * (cells / size)).astype(np.int64)


def soft_cells(images: Bytes, rows: float, columns: float, softness: float) -> Bytes:
    """Average into cells whose edges may cut pixels; a pixel shows the cells by its area in each."""
    count, height, width, channels = images.shape
    down, across = cell_areas(height, rows, softness), cell_areas(width, columns, softness)
    wide = _weighted(across.T, _weighted(across, images.astype(np.float64)))
    wide = _weighted(down.T, _weighted(down, wide.reshape(count, height, width * channels)))
    return wide.reshape(images.shape).astype(np.uint8)


def _weighted(areas: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means by area, rounded; all sums are of whole numbers, and so the same in any order."""
    whole = areas.sum(axis=1, keepdims=True)
    means: NDArray[np.float64] = np.floor((areas @ values + whole / 2) / whole)
    return means


@lru_cache(maxsize=64)
def cell_areas(size: int, cells: float, softness: float) -> NDArray[np.float64]:
    """How much of each pixel lies in each cell, `(cells, size)`, in whole parts of 4096.

    At softness 0 a pixel lies in the cell that its middle is in.
    """
    edges = np.minimum(np.arange(math.ceil(cells) + 1) * (size / cells), size)
    whole = np.ceil(edges - 0.5)
    edges = whole + softness * (edges - whole)
    at = np.arange(size)
    inside = np.minimum(edges[1:, None], at + 1) - np.maximum(edges[:-1, None], at)
    areas = np.rint(np.clip(inside, 0, 1) * 4096)
    return np.asarray(areas[areas.any(axis=1)])


def pick(fields: Field, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Field:
    """Some rows and columns of every field `(n, h, w, …)`, by their numbers."""
    return np.ascontiguousarray(fields[:, rows][:, :, columns])


def shift(images: Bytes, moves: NDArray[np.int64]) -> Bytes:
    """Each image moved by whole pixels: sampled at (x + right, y + down), `(n, 2)`; black outside."""
    height, width = images.shape[1:3]
    reach = int(np.abs(moves).max(initial=0))
    padded = np.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    return np.stack(
        [image[y : y + height, x : x + width] for image, (x, y) in zip(padded, reach + moves, strict=True)]
    )
