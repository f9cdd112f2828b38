"""Single values and whole arrays, with Numba and NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import kernel, to_byte

u8 = np.uint8


@kernel
def _to_bytes(values, nearest, out):
    for i in range(values.size):
        out[i] = to_byte(values[i], nearest)


def to_bytes(values: NDArray[np.float32], *, nearest: bool = False) -> Bytes:
    """Clip 0…255 values and cut the fraction off, or round."""
    out = np.empty(values.shape, u8)
    _to_bytes(values.ravel(), nearest, out.ravel())
    return out


@kernel
def _take(table, at, out):
    last = table.size - 1
    for i in range(at.size):
        out[i] = table[min(at[i], last)]


def look_up(values: Array, table: Bytes) -> Bytes:
    """The table's entry for each whole number, and its last entry for all beyond."""
    out = np.empty(values.shape, u8)
    _take(table, values.ravel(), out.ravel())
    return out


def mix(images: Sequence[Bytes], weights: Sequence[float]) -> Bytes:
    """The mean of several versions of the same images, rounded; weights are multiples of 1/256."""
    total = np.full(images[0].shape, 128, np.uint16)
    for version, weight in zip(images, weights, strict=True):
        total += version * np.uint16(round(weight * 256))
    return (total >> 8).astype(np.uint8)


def pick(fields: Array, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
    """Some rows and columns of every field `(n, h, w, …)`, by their numbers."""
    return np.ascontiguousarray(fields[:, rows][:, :, columns])
