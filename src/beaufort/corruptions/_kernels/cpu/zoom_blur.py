"""Zooms into the middle, with Numba."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.compiled import kernel, part, to_byte
from beaufort.corruptions._kernels.cpu.vectors import sum_between4
from beaufort.corruptions._kernels.operations import Ends

f32 = np.float32


@part
def _mix_rows(lines, y, rows, row_weight, mixed):
    """What stands in row `y` of each zoom, before it is stretched: between two rows of the image."""
    height, line = lines.shape
    for j in range(rows.shape[0]):
        a, b, t = lines[rows[j, y]], lines[min(rows[j, y] + 1, height - 1)], row_weight[j, y]
        target = mixed[j]
        for x in range(line):
            value = f32(a[x])
            target[x] = value + (f32(b[x]) - value) * t


@part
def _add_pixels(values, mixed, places, weights, width, total):
    """A row of pixels of three colors and those of all zooms, and one value more."""
    zooms = places.size // width
    for x in range(width):
        sum_between4(total, 3 * x, values, mixed, places, weights, x * zooms, zooms)


@part
def _add_grays(values, mixed, starts, column_weight, total):
    """Add pixels like `_add_pixels`, for images with one channel."""
    for x in range(starts.shape[0]):
        total[x] = values[x]
        for j in range(starts.shape[1]):
            at = starts[x, j]
            total[x] += mixed[at] + (mixed[at + 1] - mixed[at]) * column_weight[x, j]


@kernel
def _zoom_average(images, copies, rows, row_weight, starts, column_weight, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    zooms = rows.shape[0]
    mixed = np.zeros((zooms, line + 4), np.float32)
    values, total = np.zeros(line + 1, np.float32), np.empty(line + 1, np.float32)
    scale = f32(1) / f32(zooms + copies)
    between, places, weights = (
        mixed.reshape(mixed.size),
        starts.reshape(starts.size),
        column_weight.reshape(starts.size),
    )
    for i in range(images.shape[0]):
        lines, targets = images[i].reshape(height, line), out[i].reshape(height, line)
        for y in range(height):
            for x in range(line):
                values[x] = f32(lines[y, x]) * f32(copies)
            _mix_rows(lines, y, rows, row_weight, mixed)
            if channels == 3:
                _add_pixels(values, between, places, weights, width, total)
            else:
                _add_grays(values, between, starts, column_weight, total)
            target = targets[y]
            for x in range(line):
                target[x] = to_byte(total[x] * scale, nearest)


def zoom_average(
    images: Bytes, factors: tuple[float, ...], *, nearest: bool = False, like: Ends | None = None
) -> Bytes:
    out = np.empty_like(images)
    _zoom_average(images, *_zooms(images.shape[1:], factors, like), nearest, out)
    return out


@lru_cache(maxsize=64)
def _zooms(shape: tuple[int, int, int], factors: tuple[float, ...], like: Ends | None) -> tuple[Any, ...]:
    """How often the image itself counts; for the zooms after that rows, columns, and the weights of the next.

    Columns are given by pixel, as places in the rows of all zooms, which have four values more than a line.
    """
    height, width, channels = shape
    down, across = ([zoom_positions(size, factor, like) for factor in factors] for size in (height, width))
    copies = 1
    while copies <= len(factors) and all(_is_still(*zoom[copies - 1]) for zoom in (down, across)):
        copies += 1  # its sum is exact, as if it were multiplied
    down, across = down[copies - 1 :], across[copies - 1 :]
    rows, columns = ([at for at, _ in zoom] for zoom in (down, across))
    row_weight, column_weight = ([weight for _, weight in zoom] for zoom in (down, across))
    starts = np.array(columns, np.int32).reshape(-1, width) * channels
    starts += (np.arange(len(starts), dtype=np.int32) * (width * channels + 4))[:, None]
    return (
        copies,
        np.array(rows, np.int64).reshape(-1, height),
        np.array(row_weight, np.float32).reshape(-1, height),
        np.ascontiguousarray(starts.T),
        np.ascontiguousarray(np.array(column_weight, np.float32).reshape(-1, width).T),
    )


def _is_still(at: NDArray[Any], weight: NDArray[Any]) -> bool:
    """Whether a zoom leaves every pixel where it is."""
    return not weight.any() and np.array_equal(at, np.arange(len(at)))


@lru_cache(maxsize=1024)
def zoom_positions(size: int, factor: float, like: Ends | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where each pixel of a zoomed side is sampled: the pixel before, and the weight of the next.

    The middle ⌈size/factor⌉ pixels are enlarged, corner on corner, to round(that·factor), and the
    excess is trimmed, the smaller half first. These integers make it jump with the size. With `like`
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
    low, high, weight = like
    position = (1 - weight) * _zoom_like(at, size, low, factor) + weight * _zoom_like(at, size, high, factor)
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
