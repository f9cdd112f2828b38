"""Coordinates outside an image, and the pixels inside that replace them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=256)
def border_index(size: int, before: int, after: int, mode: str) -> NDArray[np.intp]:
    """Return the coordinate inside that replaces each one from -before to size + after - 1.

    `nearest` repeats the edge, `reflect` mirrors with the edge pixel doubled, `mirror` without. The
    array is kept for the next call, and not to be written to.

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
