"""Resizing and cropping of arrays in one step, with the same pixels as Pillow.

Pillow resizes in two passes, along the rows and then along the columns, each rounded to 8 bits, with
weights of 22 bits. The same integer arithmetic is done here, only for the pixels inside the crop, and on
the array itself: converting to Pillow's images of four bytes per pixel and back takes as long as the
resizing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes

_BITS = 22
"""Fractional bits of Pillow's weights."""


class Box(NamedTuple):
    """A rectangle of pixels, which may exceed the image."""

    left: int
    top: int
    right: int
    bottom: int


def short_side_size(width: int, height: int, side: int) -> tuple[int, int]:
    """Return width and height with a short side of `side` pixels; the long side is rounded down.

    >>> short_side_size(500, 375, 256)
    (341, 256)
    """
    if min(width, height) == side:
        return width, height
    return (side, int(side * height / width)) if width <= height else (int(side * width / height), side)


def center_box(width: int, height: int, side: int) -> Box:
    """Return the central square; half pixels are rounded to even, as in torchvision."""
    left, top = round((width - side) / 2), round((height - side) / 2)
    return Box(left, top, left + side, top + side)


def crop_box(pixels: Bytes, box: Box) -> Bytes:
    """Return the pixels in a box, `(h, w, c)`, black outside the image."""
    height, width, channels = pixels.shape
    inside = _inside(box, width, height)
    cut = pixels[inside.top : inside.bottom, inside.left : inside.right]
    if inside == box:
        return np.ascontiguousarray(cut)
    out = np.zeros((box.bottom - box.top, box.right - box.left, channels), np.uint8)
    left, top = inside.left - box.left, inside.top - box.top
    out[top : top + cut.shape[0], left : left + cut.shape[1]] = cut
    return out


def _inside(box: Box, width: int, height: int) -> Box:
    left, right = (min(max(x, 0), width) for x in (box.left, box.right))
    top, bottom = (min(max(y, 0), height) for y in (box.top, box.bottom))
    return Box(left, top, right, bottom)


def resize_crop(pixels: Bytes, size: tuple[int, int], box: Box | None = None) -> Bytes:
    """Return the same pixels as Pillow's bilinear `resize(size).crop(box)`, computing only those in the box.

    Args:
        pixels: array `(h, w, c)` with one or three channels.
        size: width and height after resizing.
        box: the part to compute; all by default.
    """
    height, width = pixels.shape[:2]
    box = Box(0, 0, *size) if box is None else box
    if size == (width, height):
        return crop_box(pixels, box)
    inside = _inside(box, *size)
    part = _resized(np.ascontiguousarray(pixels), size, inside)
    if inside == box:
        return part
    return crop_box(part, Box(*(edge - inside[i % 2] for i, edge in enumerate(box))))


def _resized(pixels: Bytes, size: tuple[int, int], box: Box) -> Bytes:
    """Return the pixels of a box inside the resized image."""
    height, width = pixels.shape[:2]
    across = _weights(width, size[0], box.left, box.right)
    down = _weights(height, size[1], box.top, box.bottom)
    rows = pixels[down.first : down.last]
    if columns_first(pixels.shape[:2], size):
        columns = np.ascontiguousarray(rows[:, across.first : across.last])
        return _mix_across(_mix_down(columns, down), across, across.first)
    return _mix_down(_mix_across(rows, across, 0), down)


def columns_first(before: tuple[int, ...], size: tuple[int, int]) -> bool:
    """Return whether Pillow resizes columns first, as since version 13 if they shrink most.

    Older versions resize rows first, except for images a hundred times as high as wide.

    Args:
        before: height and width of the image.
        size: width and height after resizing.
    """
    lost_down, lost_across = before[0] - size[1], before[1] - size[0]
    return lost_down > 0 and lost_down > 2 * lost_across


class _Weights(NamedTuple):
    """Interpolation weights along one axis, for each output position."""

    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    weights: NDArray[np.int32]
    """One row per position, zero-padded to a multiple of four; rows sum to 2²², up to rounding."""
    first: int
    last: int
    """Range of input positions that are needed."""


@lru_cache(maxsize=256)
def _weights(before: int, after: int, start: int, stop: int) -> _Weights:
    """Return the triangle filter of Pillow for output positions from `start` to `stop`.

    The double-precision operations and their order are those of Pillow.
    """
    scale = before / after
    reach = max(scale, 1.0)
    centers = (np.arange(start, stop) + 0.5) * scale
    starts = np.maximum((centers - reach + 0.5).astype(np.int64), 0)
    counts = np.minimum((centers + reach + 0.5).astype(np.int64), before) - starts
    kernel = np.zeros((len(centers), -(-int(counts.max(initial=0)) // 4) * 4))
    total = np.zeros(len(centers))
    for k in range(kernel.shape[1]):
        distance = np.abs((k + starts - centers + 0.5) * (1.0 / reach))
        kernel[:, k] = np.where((k < counts) & (distance < 1), 1.0 - distance, 0.0)
        total += kernel[:, k]
    kernel /= np.where(total == 0, 1.0, total)[:, None]
    weights = (0.5 + kernel * (1 << _BITS)).astype(np.int32)
    ends = starts + counts
    return _Weights(starts, counts, weights, int(starts.min(initial=before)), int(ends.max(initial=0)))


def _mix_across(pixels: Bytes, across: _Weights, first: int) -> Bytes:
    """Resize along the rows; the first column of `pixels` is column `first` of the image."""
    from beaufort.data.images._framing_cpu import resize_rows

    height, _, channels = pixels.shape
    width = len(across.starts)
    lines = np.empty(height * width * channels + 1, np.uint8)  # the kernel writes one more value
    resize_rows(pixels, across.starts - first, across.counts, across.weights, lines)
    return lines[:-1].reshape(height, width, channels)


def _mix_down(rows: Bytes, down: _Weights) -> Bytes:
    """Resize along the columns; `rows` begins with the first row that is needed."""
    from beaufort.data.images._framing_cpu import resize_down

    out = np.empty((len(down.starts), *rows.shape[1:]), np.uint8)
    resize_down(rows, down.starts - down.first, down.counts, down.weights, out)
    return out
