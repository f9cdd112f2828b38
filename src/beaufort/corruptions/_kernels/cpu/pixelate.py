"""Cells of pixels, with Numba."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import inlined, kernel
from beaufort._core.errors import ImageValueError
from beaufort.corruptions._kernels.cpu.vectors import add, copy4, mul, shr, toward

i32, f32, u8, u16 = np.int32, np.float32, np.uint8, np.uint16


@inlined
def _mean(total, weight):
    """Divide a sum by its count, rounded, in Pillow's fixed-point arithmetic."""
    return u8(shr(add(mul(i32(total), weight), 1 << 21), 22))


@inlined
def _sums_of_neighbors(row, channels, count, few, more):
    """Compute, at every position of a row, the sums of the next `count` pixels and of one more."""
    if count == 2:  # the usual case, in one pass
        second, third = row[channels:], row[2 * channels :]
        for x in range(third.size):
            two = u16(row[x]) + u16(second[x])
            few[x], more[x] = two, two + u16(third[x])
        for x in range(third.size, second.size):
            few[x] = u16(row[x]) + u16(second[x])
        return
    for x in range(row.size):
        few[x] = u16(row[x])
    for k in range(1, count):
        shifted = row[k * channels :]
        for x in range(shifted.size):
            few[x] += u16(shifted[x])
    shifted = row[count * channels :]
    for x in range(shifted.size):
        more[x] = few[x] + u16(shifted[x])


@kernel
def _pixel_cells(images, row_cells, rows, count, starts, weights, places, out):
    height, width, channels = images.shape[1:]
    line, across = width * channels, weights.size
    # Cells have n or n + 1 pixels. Both sums are computed at every pixel, which vectorizes, and
    # the needed ones are selected.
    sums = np.empty(2 * line + 1, np.uint16)
    few, more = sums[:line], sums[line : 2 * line]
    picked = np.empty(across + 1, np.uint16)
    narrow = np.empty((height, across), np.uint8)
    cells = np.empty(across + 1, np.uint8)
    wide = np.empty(line + 1, np.uint8)
    for i in range(images.shape[0]):
        sources, targets = images[i].reshape(height, line), out[i].reshape(height, line)
        for y in range(height):
            _sums_of_neighbors(sources[y], channels, count, few, more)
            if channels == 3:
                for k in range(starts.size):
                    copy4(picked, 3 * k, sums, starts[k])
            else:
                for k in range(starts.size):
                    picked[k] = sums[starts[k]]
            target = narrow[y]
            for x in range(across):
                target[x] = _mean(picked[x], weights[x])
        shown = -1
        for y in range(height):
            if rows[y] != shown:
                shown = rows[y]
                first, high = row_cells[shown, 0], row_cells[shown, 1]
                weight, source = i32(round((1 << 22) / high)), narrow[first]
                for x in range(across):
                    picked[x] = u16(source[x])
                for k in range(first + 1, first + high):
                    source = narrow[k]
                    for x in range(across):
                        picked[x] += u16(source[x])
                for x in range(across):
                    cells[x] = _mean(picked[x], weight)
                if channels == 3:
                    for x in range(width):
                        copy4(wide, 3 * x, cells, places[x])
                else:
                    for x in range(width):
                        wide[x] = cells[places[x]]
            target = targets[y]
            for x in range(line):
                target[x] = wide[x]


def pixel_cells(images: Bytes, rows: int, columns: int) -> Bytes:
    height, width, channels = images.shape[1:]
    out = np.empty_like(images)
    _pixel_cells(images, *cell_table(height, rows), *_picks(width, columns, channels), out)
    return out


@lru_cache(maxsize=128)
def _picks(
    width: int, columns: int, channels: int
) -> tuple[int, NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """The least number of pixels across a cell, where its sums are found, its weights, its place in a row.

    Sums of one pixel more stand a whole row behind those of the least number.
    """
    cells, places = cell_table(width, columns)
    first, count = cells.T
    starts = (first + np.where(count > count.min(), width, 0)) * channels
    weights = np.rint((1 << 22) / count).astype(np.int32).repeat(channels)
    return int(count.min()), starts, weights, places * channels


MOST_PIXELS = 256
"""The widest cell whose sum fits 16 bits."""


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
    most = int(table[:, 1].max())
    if most > MOST_PIXELS:
        raise ImageValueError(
            f"a cell must be at most {MOST_PIXELS} pixels wide and high, got {most}; shrink the image first"
        )
    return table, ((np.arange(size) + 0.5) * (cells / size)).astype(np.int64)


@inlined
def _quotient(value, whole, inverse):
    """Divide integers, exact in float32: `inverse` is at most 1 / whole, and so the product at most 1 off."""
    rounded = i32(value * inverse)
    return u8(rounded + (i32(1) if value - f32(rounded) * whole >= whole else i32(0)))


@inlined
def _gather(target, source, starts, channels):
    """Copy the pixels at `starts` side by side; source and target have room for one more value."""
    if channels == 3:
        for k in range(starts.size):
            copy4(target, 3 * k, source, starts[k])
    else:
        for k in range(starts.size):
            target[k] = source[starts[k]]


@kernel
def _soft_cells(images, down, down_next, fractions_down, across, across_next, fractions_across, out):
    height, width, channels = images.shape[1:]
    line, down_taps = width * channels, down.weights.shape[0]
    cells, taps = across.whole.size, across.weights.shape[0]
    row = np.empty(line + channels, np.uint8)
    first, second, third = np.empty((3, cells + 1), np.uint8)
    narrow = np.empty(cells + channels, np.uint8)
    pairs = np.empty(cells + 1, np.uint16)
    shown = np.empty(line + 1, np.uint16)
    wide = np.empty((height, line), np.uint8)
    tall = np.empty((down.starts.size + 1, line), np.uint8)
    total = np.empty(max(cells, line), np.float32)
    for i in range(images.shape[0]):
        sources, targets = images[i].reshape(height, line), out[i].reshape(height, line)
        for y in range(height):
            source = sources[y]
            for x in range(line):
                row[x] = source[x]
            _gather(first, row, across.starts, channels)
            _gather(second, row[channels:], across.starts, channels)
            _gather(third, row[2 * channels :], across.starts, channels)
            a, b, c = across.weights[0], across.weights[1], across.weights[2]
            for x in range(cells):
                total[x] = (
                    across.half[x] + f32(first[x]) * a[x] + f32(second[x]) * b[x] + f32(third[x]) * c[x]
                )
            for t in range(3, taps):
                _gather(first, row[t * channels :], across.starts, channels)
                a = across.weights[t]
                for x in range(cells):
                    total[x] += f32(first[x]) * a[x]
            for x in range(cells):
                narrow[x] = _quotient(total[x], across.whole[x], across.inverse[x])
            following = narrow[channels:]
            for x in range(cells):  # a cell and the next one packed into one value, which halves the copies
                pairs[x] = u16(narrow[x]) | (u16(following[x]) << u16(8))
            _gather(shown, pairs, across_next, channels)
            target = wide[y]
            for x in range(line):
                pair = shown[x]
                target[x] = toward(u8(pair), u8(pair >> u16(8)), fractions_across[x])
        for k in range(down.starts.size):
            at, whole, half, inverse = down.starts[k], down.whole[k], down.half[k], down.inverse[k]
            top, middle, bottom = wide[at], wide[at + 1], wide[at + 2]
            d, e, f = down.weights[0, k], down.weights[1, k], down.weights[2, k]
            for x in range(line):
                total[x] = half + f32(top[x]) * d + f32(middle[x]) * e + f32(bottom[x]) * f
            for t in range(3, down_taps):
                d, source = down.weights[t, k], wide[at + t]
                for x in range(line):
                    total[x] += f32(source[x]) * d
            target = tall[k]
            for x in range(line):
                target[x] = _quotient(total[x], whole, inverse)
        for y in range(height):
            fraction, here, below = fractions_down[y], tall[down_next[y]], tall[down_next[y] + 1]
            target = targets[y]
            for x in range(line):
                target[x] = toward(here[x], below[x], fraction)


def soft_cells(images: Bytes, rows: float, columns: float, softness: float) -> Bytes:
    height, width, channels = images.shape[1:]
    out = np.empty_like(images)
    _soft_cells(images, *_bands(height, rows, softness, 1), *_bands(width, columns, softness, channels), out)
    return out


class Bands(NamedTuple):
    """The cells along an axis as bands of the matrix of areas; values of a row have one entry per channel."""

    starts: NDArray[np.int64]
    """Index of the first pixel of each cell."""
    weights: NDArray[np.float32]
    """Areas of this and the following pixels, `(taps, cells)`, at least three."""
    whole: NDArray[np.float32]
    """Area of each cell."""
    half: NDArray[np.float32]
    inverse: NDArray[np.float32]
    """Slightly less than one over the area."""


@lru_cache(maxsize=128)
def _bands(
    size: int, cells: float, softness: float, channels: int
) -> tuple[Bands, NDArray[np.int64], NDArray[np.int16]]:
    """Return the bands of an axis, and for each pixel its first cell and the part of the next one in 2⁻¹⁵.

    A cell is at least a pixel wide, so a pixel lies in at most two, and its areas in both add up to one.
    """
    areas = cell_areas(size, cells, softness)
    inside = areas > 0
    count, pixels = np.arange(len(areas)), np.arange(size)
    first, last = inside.argmax(axis=1), size - 1 - inside[:, ::-1].argmax(axis=1)
    taps = max(3, int((last - first).max()) + 1)
    first = np.minimum(first, size - taps)
    whole = areas.sum(axis=1).astype(np.float32)
    near, far = inside.argmax(axis=0), len(areas) - 1 - inside[::-1].argmax(axis=0)
    fraction = np.where(far > near, areas[far, pixels] * (1 << 15) / _WHOLE, 0)
    bands = Bands(
        first * channels,
        np.array([areas[count, first + t] for t in range(taps)], np.float32).repeat(channels, axis=1),
        whole.repeat(channels),
        whole.repeat(channels) / np.float32(2),
        np.nextafter(1 / whole, np.float32(0)).repeat(channels),
    )
    return bands, near * channels, fraction.astype(np.int16).repeat(channels)


_WHOLE = 4096
"""Area of a pixel, so that areas are integers."""


@lru_cache(maxsize=64)
def cell_areas(size: int, cells: float, softness: float) -> NDArray[np.float64]:
    """Return the area of each pixel in each cell, `(cells, size)`, as integers of which a pixel has 4096.

    At softness 0 a pixel belongs to the cell that contains its center.
    """
    edges = np.minimum(np.arange(math.ceil(cells) + 1) * (size / cells), size)
    whole = np.ceil(edges - 0.5)
    edges = whole + softness * (edges - whole)
    at = np.arange(size)
    inside = np.minimum(edges[1:, None], at + 1) - np.maximum(edges[:-1, None], at)
    areas = np.rint(np.clip(inside, 0, 1) * _WHOLE)
    return np.asarray(areas[areas.any(axis=1)])


@kernel
def _pick(fields, rows, starts, channels, out):
    """Rows and columns by index, a run of equal rows at a time; `starts` has places in a row of values."""
    source, shown = np.empty(fields.shape[2] + 1, fields.dtype), np.empty(out.shape[2] + 1, fields.dtype)
    line = out.shape[2]
    for i in range(fields.shape[0]):
        for y in range(rows.size):
            if y == 0 or rows[y] != rows[y - 1]:
                row = fields[i, rows[y]]
                if channels == 3:
                    for x in range(row.size):
                        source[x] = row[x]
                    for k in range(starts.size):
                        copy4(shown, 3 * k, source, starts[k])
                else:
                    for k in range(starts.size):
                        shown[k] = row[starts[k]]
            target = out[i, y]
            for x in range(line):
                target[x] = shown[x]


def pick(fields: Array, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
    channels = fields.shape[3] if fields.ndim == 4 else 1
    if channels not in (1, 3):
        return np.ascontiguousarray(fields[:, rows][:, :, columns])
    count, height, width = fields.shape[:3]
    out = np.empty((count, len(rows), len(columns), *fields.shape[3:]), fields.dtype)
    flat = np.ascontiguousarray(fields).reshape(count, height, width * channels)
    _pick(flat, rows, columns * channels, channels, out.reshape(count, len(rows), len(columns) * channels))
    return out
