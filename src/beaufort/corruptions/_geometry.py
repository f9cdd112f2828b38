"""Positions and values between pixels: maps about the middle, bilinear samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random


def signs(random: Random, count: int) -> Array:
    """Fair coins, -1 or 1, `(n, count)`."""
    return random.host.integers((count,), 0, 2) * 2 - 1


def about_center(images: Images, matrices: Array, ops: Ops) -> Images:
    """Sample each image at matrix · (x, y) about its middle, black outside, rounded."""
    height, width = images.shape[1:3]
    middle = np.array([(width - 1) / 2, (height - 1) / 2])
    full = np.empty((len(images), 2, 3))
    full[:, :, :2] = matrices
    full[:, :, 2] = middle - full[:, :, :2] @ middle
    return ops.to_bytes(ops.affine(images, full, border="zero"), nearest=True)


def sample(values: Any, rows: Any, columns: Any, ops: Ops) -> Any:
    """The values `(n, h, w, c)` at real positions; what lies outside counts as 0."""
    top, left = ops.floor(rows), ops.floor(columns)
    down, across = (rows - top)[..., None], (columns - left)[..., None]
    upper, lower = (
        _mixed(_at(values, row, left, ops), _at(values, row, left + 1, ops), across) for row in (top, top + 1)
    )
    return _mixed(upper, lower, down)


def _mixed(first: Any, second: Any, share: Any) -> Any:
    return (1 - share) * first + share * second


def _at(values: Any, rows: Any, columns: Any, ops: Ops) -> Any:
    height, width = values.shape[1:3]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    r, c = ops.whole(ops.clip(rows, 0, height - 1)), ops.whole(ops.clip(columns, 0, width - 1))
    return values[_numbers(values, rows.ndim, ops), r, c] * inside[..., None]


def _numbers(values: Any, dimensions: int, ops: Ops) -> Any:
    """The number of each image, in the shape that positions have."""
    return ops.lift(np.arange(len(values)).reshape(-1, *[1] * (dimensions - 1)), values)
