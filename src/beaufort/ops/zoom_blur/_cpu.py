"""Zooms into the middle, with Numba."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes
from beaufort.ops._numba import kernel, to_byte
from beaufort.ops._vectors import add_between4, copy4
from beaufort.ops.zoom_blur import Ends

__all__ = ["zoom_average", "zoom_positions"]

f32 = np.float32


@kernel
def _zoom_average(images, rows, row_share, columns, column_share, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    # One buffer for both, half a page apart: a processor takes a store for a load whose addresses agree
    # in their last twelve bits, and waits.
    gap = 512 + (line + channels + 1 + 1023) // 1024 * 1024
    scratch = np.zeros(gap + 4 * width, np.float32)
    mixed, total = scratch[: line + channels + 1], scratch[gap:]
    values = np.empty(line + 1, np.float32)
    factors = rows.shape[0]
    share = f32(1) / f32(factors + 1)
    for i in range(images.shape[0]):
        lines = images[i].reshape(height, line)
        for y in range(height):
            for x in range(line):
                values[x] = f32(lines[y, x])
            if channels == 3:  # a pixel has room for four in `total`
                for x in range(width):
                    copy4(total, 4 * x, values, 3 * x)
            for j in range(factors):
                a, b, t = lines[rows[j, y]], lines[min(rows[j, y] + 1, height - 1)], row_share[j, y]
                for x in range(line):
                    value = f32(a[x])
                    mixed[x] = value + (f32(b[x]) - value) * t
                if channels == 3:
                    for x in range(width):
                        k = columns[j, x] * 3
                        add_between4(total, 4 * x, mixed, k, k + 3, column_share[j, x])
                else:
                    for x in range(width):
                        value = mixed[columns[j, x]]
                        values[x] += value + (mixed[columns[j, x] + 1] - value) * column_share[j, x]
            if channels == 3:
                for x in range(width):
                    copy4(values, 3 * x, total, 4 * x)
            target = out[i, y].reshape(line)
            for x in range(line):
                target[x] = to_byte(values[x] * share, nearest)


def zoom_average(
    images: Bytes, factors: tuple[float, ...], *, nearest: bool = False, like: Ends | None = None
) -> Bytes:
    """The mean of the image and its zooms into the middle; `like` as for `zoom_positions`."""
    height, width = images.shape[1:3]
    down = [zoom_positions(height, factor, like) for factor in factors]
    across = [zoom_positions(width, factor, like) for factor in factors]
    out = np.empty_like(images)
    _zoom_average(
        images,
        np.array([at for at, _ in down]),
        np.array([share for _, share in down], np.float32),
        np.array([at for at, _ in across]),
        np.array([share for _, share in across], np.float32),
        nearest,
        out,
    )
    return out


@lru_cache(maxsize=1024)
def zoom_positions(size: int, factor: float, like: Ends | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where each pixel of a zoomed side is sampled: the pixel before, and the share of the next.

    The middle ⌈size/factor⌉ pixels are enlarged, corner on corner, to round(that·factor), and the
    excess is trimmed, the smaller half first. These whole numbers make it jump with the size. With `like`
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
    low, high, share = like
    position = (1 - share) * _zoom_like(at, size, low, factor) + share * _zoom_like(at, size, high, factor)
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
