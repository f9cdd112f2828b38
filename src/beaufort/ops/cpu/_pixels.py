"""From a computed value back to 8 bit, and coordinates outside back into the image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beaufort.ops.cpu._kernel import inlined

__all__ = ["border_index", "to_byte"]

i32, f32 = np.int32, np.float32


@inlined
def to_byte(value, nearest):
    """Clip to 0…255 and cut the fraction off, or round half to even where `nearest`."""
    value = min(max(value, f32(0)), f32(255))
    if nearest:
        value = np.rint(value)
    return np.uint8(i32(value))


def border_index(size: int, before: int, after: int, mode: str) -> NDArray[np.intp]:
    """For each coordinate from -before to size + after - 1, the one inside that stands for it.

    `nearest` repeats the edge, `reflect` mirrors with the edge pixel doubled, `mirror` without.

    >>> border_index(4, 3, 2, "mirror").tolist()
    [3, 2, 1, 0, 1, 2, 3, 2, 1]
    """
    at = np.arange(-before, size + after)
    if mode == "nearest":
        return np.clip(at, 0, size - 1)
    if mode == "reflect":
        at = np.mod(at, 2 * size)
        return np.where(at < size, at, 2 * size - 1 - at)
    if size == 1:
        return np.zeros_like(at)
    at = np.mod(at, 2 * size - 2)
    return np.where(at < size, at, 2 * size - 2 - at)
