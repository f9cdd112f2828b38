"""Compiled loops, in a separate module for fast imports: weights of resamples, tails of weighted means.

The weights are spacings of uniform random numbers, that is, independent exponential ones divided by their
sum. A weighted mean of `values` is below `at` exactly if the sum of exponential weights times `values - at`
is negative. The saddlepoint gives the probability of that, in the form of Barndorff-Nielsen (1986): to a
fifth of itself for a handful of images, to some hundredths from 40 on, also far out in the tails.
"""

from __future__ import annotations

import math
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

    SplitMix64, restarted for each resample; a word gives two numbers of 24 bits.
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


@kept
def log_tail_terms(values: Any, counts: Any, at: Any) -> Any:
    """Saddlepoint of the sum of weights times `values - at`; each value occurs `counts` times.

    Returns the point, the cumulant generating function there, its second derivative there, and its third
    derivative at zero over the second one's power of 3/2.
    """
    low, high = np.inf, -np.inf
    second = third = 0.0
    for i in range(len(values)):
        z = values[i] - at
        low, high = min(low, z), max(high, z)
        second += counts[i] * z * z
        third += counts[i] * z * z * z
    below, above = 1 / low, 1 / high  # the function is finite between the two
    point = 0.0
    for _ in range(200):
        first = curvature = 0.0
        for i in range(len(values)):
            z = values[i] - at
            ratio = z / (1 - point * z)
            first += counts[i] * ratio
            curvature += counts[i] * ratio * ratio
        if first > 0:
            above = point
        else:
            below = point
        step = point - first / curvature
        if not below < step < above:
            step = (below + above) / 2
        done = abs(step - point) <= 1e-12 * (above - below) or abs(step - point) <= 1e-13 * abs(point)
        point = step
        if done:
            break
    total = curvature = 0.0
    for i in range(len(values)):
        z = values[i] - at
        total -= counts[i] * math.log1p(-point * z)
        ratio = z / (1 - point * z)
        curvature += counts[i] * ratio * ratio
    return point, total, curvature, 2 * third / second**1.5
