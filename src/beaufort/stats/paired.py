"""Two models on the same images: is the difference more than chance?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from beaufort.errors import OptionError
from beaufort.stats.binomial import binomial_cdf, incomplete_beta

__all__ = ["holm", "mcnemar", "paired_p_value"]


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact p-value of McNemar's test.

    Only the images that one model gets right and the other wrong say anything; if the models were equally
    good, each of them would fall to either side like a fair coin.

    >>> round(mcnemar(10, 2), 6)
    0.038574
    """
    if min(only_first, only_second) < 0:
        raise OptionError(f"{only_first} and {only_second} came; accepted are counts from 0")
    n = only_first + only_second
    return min(1.0, 2 * binomial_cdf(min(only_first, only_second), n, 0.5))


def holm(p_values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """P-values adjusted so that one false alarm in all of them is as rare as one test's (Holm, 1979).

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise OptionError(f"p-values {p_values!r:.80} came; accepted is a list of numbers from 0 to 1")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return adjusted


def paired_p_value(difference: float, spread: float, n: int) -> float:
    """A two-sided p-value of a difference from its bootstrap standard error, by Student's t.

    Counting resamples on the far side of zero could not give less than two in as many as there are, which
    is too coarse once Holm's correction multiplies it by thousands of pairs.

    Args:
        difference: of two models on the same images.
        spread: the standard deviation of the resampled differences.
        n: base images.

    >>> round(paired_p_value(0.02, 0.01, 1000), 4)
    0.0458
    """
    if n < 2 or difference == 0:
        return 1.0
    if spread == 0:
        return 0.0
    t, degrees = difference / spread, n - 1
    return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
