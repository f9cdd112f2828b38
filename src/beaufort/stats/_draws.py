"""Which images a resample draws: compiled, and apart so that importing the statistics is quick."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["draw_counts"]

u64 = np.uint64
_STEP = u64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = u64(0xBF58476D1CE4E5B9), u64(0x94D049BB133111EB)


@numba.njit(inline="always")
def _mixed(x: Any) -> Any:
    """SplitMix64's output function."""
    x = (x ^ (x >> u64(30))) * _MIX1
    x = (x ^ (x >> u64(27))) * _MIX2
    return x ^ (x >> u64(31))


@numba.njit(cache=True, nogil=True)
def draw_counts(counts: Any, seed: Any, first: Any) -> None:
    """Fill each row with how often each image was drawn; row i is resample `first` + i.

    SplitMix64, started anew for each resample; a word gives two places by multiplication, which
    favors none by more than n / 2³².
    """
    n = counts.shape[1]
    span = u64(n)
    half = u64(0xFFFFFFFF)
    shift = u64(32)
    for i in range(counts.shape[0]):
        row = counts[i]
        row[:] = 0
        state = _mixed(_mixed(seed + _STEP) + (first + u64(i) + u64(1)) * _STEP)
        for _ in range(n // 2):
            state += _STEP
            word = _mixed(state)
            row[((word & half) * span) >> shift] += np.float32(1)
            row[((word >> shift) * span) >> shift] += np.float32(1)
        if n % 2:
            word = _mixed(state + _STEP)
            row[((word & half) * span) >> shift] += np.float32(1)
