"""Random orders, as NumPy's legacy generator draws them."""

from __future__ import annotations

import numpy as np

from beaufort._core.arrays import Array
from beaufort.corruptions.rng import HostRandom


def draw_permutations(random: HostRandom, size: int) -> Array:
    """A random order of the numbers below `size` for each image, `(n, size)`."""
    order: Array | None = None
    for last in range(size - 1, 0, -1):
        other = random.integers((), 0, last + 1).astype(np.int64)
        if order is None:
            order = np.tile(np.arange(size), (len(other), 1))
        images = np.arange(len(other))
        order[images, last], order[images, other] = order[images, other], order[images, last].copy()
    if order is None:
        raise ValueError(f"size must be at least 2, got {size}")
    return order
