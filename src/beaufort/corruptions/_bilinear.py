"""Values between pixels: linear in both directions, black outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from beaufort.corruptions._kernels import Ops


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
