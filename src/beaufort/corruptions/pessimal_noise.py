"""Pessimal noise: normal noise with the covariance that hurt one small network most."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.catalog import fetch
from beaufort.corruptions import Array, Images, Ops, Pixels, Random, corruption

_SIDE = 14


class Params(NamedTuple):
    """Strength of the noise."""

    norm: float
    """Euclidean norm of one tile of 14×14 values; the intensity range is [0, 1]."""
    cell: Pixels = 1.0
    """Side of a pixel of the tile."""


@lru_cache(maxsize=1)
def _matrix() -> NDArray[np.float64]:
    """Return the published 196×196 matrix A: noise = z·A."""
    values = np.fromfile(fetch("mnist-c/pessimal_noise_matrix.f32"), np.float32)
    return values.reshape(_SIDE**2, _SIDE**2).astype(np.float64)


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw 196 normal numbers."""
    return random.host.normal((_SIDE**2,), np.float64)


@corruption("digits", draw=draw, levels={"mnist": [Params(10.63 / 4)]}, files=("pessimal-noise",))
def pessimal_noise(images: Images, p: Params, normals: Array, ops: Ops) -> Images:
    """Add noise that is almost one of two patterns, because the matrix has nearly rank one.

    The tile of 14×14 is scaled to a fixed norm and repeated over the image.
    """
    noise = normals @ _matrix()
    noise *= p.norm / np.linalg.norm(noise, axis=1, keepdims=True)
    height, width = images.shape[1:3]
    rows = (np.arange(height) / p.cell).astype(np.intp) % _SIDE
    columns = (np.arange(width) / p.cell).astype(np.intp) % _SIDE
    tiles = (noise * 255).astype(np.float32).reshape(-1, _SIDE, _SIDE)
    return ops.add_field(images, ops.pick(tiles, rows, columns), nearest=True)
