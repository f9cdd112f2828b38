"""Turning, shrinking and slanting about the middle of a digit."""

from __future__ import annotations

import numpy as np

from beaufort._core.arrays import Array, Images
from beaufort.corruptions._kernels import Ops
from beaufort.corruptions.rng import Random


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
