"""Cubic splines: the coefficients of one that runs through given values."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=16)
def prefilter(size: int) -> NDArray[np.float64]:
    """The matrix that makes spline coefficients of values on a line, mirrored about its end points.

    It is the inverse of what evaluates a spline at its knots, with the weights 1/6, 2/3, 1/6.
    """
    at_knots = np.zeros((size, size))
    np.fill_diagonal(at_knots, 2 / 3)
    inner = np.arange(size - 1)
    at_knots[inner, inner + 1] = at_knots[inner + 1, inner] = 1 / 6
    at_knots[0, 1] = at_knots[-1, -2] = 1 / 3
    inverse: NDArray[np.float64] = np.linalg.inv(at_knots).astype(np.float64, copy=False)
    inverse.flags.writeable = False
    return inverse
