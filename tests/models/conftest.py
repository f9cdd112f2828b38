"""Fixtures of the tests of models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture(scope="session")
def photos() -> NDArray[np.uint8]:
    """Six smooth color images, 40×56."""
    rng = np.random.default_rng(5)
    coarse = rng.integers(0, 256, (6, 5, 7, 3), np.uint8)
    return np.ascontiguousarray(coarse.repeat(8, axis=1).repeat(8, axis=2))
