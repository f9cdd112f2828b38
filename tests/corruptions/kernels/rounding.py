"""Tolerances between pixels of the torch backend and the CPU."""

from __future__ import annotations

import numpy as np


def same(out: np.ndarray, wanted: np.ndarray) -> bool:
    """The same bytes, but for a level here and there on a processor that rounds products before it adds."""
    differ = np.abs(out.astype(int) - wanted.astype(int))
    return out.shape == wanted.shape and differ.max() <= 1 and bool((differ > 0).mean() < 1e-3)
