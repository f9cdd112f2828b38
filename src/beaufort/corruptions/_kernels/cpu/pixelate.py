"""Cells of pixels, with Numba."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.compiled import inlined, kernel
from beaufort._core.errors import ImageValueError
from beaufort.corruptions._kernels.cpu.vectors import add, copy4, mul, shr

i32, u8, u16 = np.int32, np.uint8, np.uint16


@inlined
def _mean(total, weight):
    """A sum divided by how many it is of, rounded, in Pillow's fixed point."""
    return u8(shr(add(mul(i32(total), weight), 1 << 21), 22))


@inlined
def _sums_of_neighbors(row, channels, count, few, more):
    """At every place of a row, the sums of `count` pixels from there on, and of one more."""
    if count == 2:  # the usual one, in one pass
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
    # Cells have n or n + 1 pixels. The sums of both are taken at every pixel, which vectorizes, and
    # those that are wanted are picked.
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


def soft_cells(images: Bytes, rows: float, columns: float, softness: float) -> Bytes:
    count, height, width, channels = images.shape
    down, across = cell_areas(height, rows, softness), cell_areas(width, columns, softness)
    wide = _weighted(across.T, _weighted(across, images.astype(np.float64)))
    wide = _weighted(down.T, _weighted(down, wide.reshape(count, height, width * channels)))
    return wide.reshape(images.shape).astype(np.uint8)


def _weighted(areas: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means by area, rounded; all sums are of integers, and so the same in any order."""
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
