"""How a resample weights the images: compiled, and apart so that importing the statistics is quick."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from beaufort._core.compiled import kept

u64 = np.uint64
_STEP = u64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = u64(0xBF58476D1CE4E5B9), u64(0x94D049BB133111EB)


@numba.njit(inline="always")
def _mixed(x: Any) -> Any:
    """SplitMix64's output function."""
    x = (x ^ (x >> u64(30))) * _MIX1
    x = (x ^ (x >> u64(27))) * _MIX2
    return x ^ (x >> u64(31))


@kept
def draw_uniform(numbers: Any, seed: Any, first: Any) -> None:
    """Fill each row with numbers between 0 and 1, neither included; row i is resample `first` + i.

    SplitMix64, started anew for each resample; a word gives two numbers of 24 bits.
    """
    n = numbers.shape[1]
    scale, half = np.float32(2.0**-24), np.float32(2.0**-25)
    for i in range(numbers.shape[0]):
        row = numbers[i]
        state = _mixed(_mixed(seed + _STEP) + (first + u64(i) + u64(1)) * _STEP)
        for j in range(0, n - 1, 2):
            state += _STEP
            word = _mixed(state)
            row[j] = np.float32(word >> u64(40)) * scale + half
            row[j + 1] = np.float32((word >> u64(8)) & u64(0xFFFFFF)) * scale + half
        if n % 2:
            row[n - 1] = np.float32(_mixed(state + _STEP) >> u64(40)) * scale + half
