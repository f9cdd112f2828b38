"""Tests of differences between two numbers, on the same images or on different ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.metrics.stats.estimate import Estimate, binomial_cdf


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact p-value of McNemar's test.

    Only images that exactly one of the models classifies correctly contain information; for equally good
    models, each of them favors either model with probability 0.5.

    >>> round(mcnemar(10, 2), 6)
    0.038574
    """
    if min(only_first, only_second) < 0:
        raise OptionError(f"counts must be non-negative integers, got {only_first} and {only_second}")
    n = only_first + only_second
    return min(1.0, 2 * binomial_cdf(min(only_first, only_second), n, 0.5))


def holm(p_values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values adjusted for the family-wise error rate (Holm, 1979).

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise OptionError(f"p_values must be a list of numbers from 0 to 1, got {p_values!r:.80}")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return adjusted


def newcombe(first: Estimate, second: Estimate) -> Estimate:
    """Return the first value minus the second, with Newcombe's interval (1998) from the intervals of both.

    If both are exact, the interval is conservative.

    >>> from beaufort.metrics.stats import clopper_pearson
    >>> f"{newcombe(clopper_pearson(90, 100), clopper_pearson(50, 100)):.1%}"
    '40.0 % [27.3, 51.4]'
    """
    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value, value - below, value + above, min(first.n, second.n), first.level)
