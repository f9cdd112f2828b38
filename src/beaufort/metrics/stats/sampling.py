"""Inference about the marked items of a finite collection from a random sample."""

from __future__ import annotations

import math

import numpy as np

from beaufort._core.errors import OptionError
from beaufort.metrics.stats.estimate import validate_level


def marked_at_most(found: int, sample: int, population: int, level: float = 0.95) -> int:
    """Return the largest number of marked items that is compatible with a sample without replacement.

    It is the upper end of the exact one-sided interval: with more marked items, a sample would have at most
    `found` of them with a probability below 1 - `level`.

    >>> marked_at_most(0, 300, 76_000)
    753
    >>> marked_at_most(0, 100, 100)
    0
    """
    if not 0 <= found <= sample <= population or sample < 1:
        raise OptionError(
            f"found must be from 0 to sample, and sample from 1 to population, got {found}, {sample} and "
            f"{population}"
        )
    tail = 1 - validate_level(level)
    low, high = found, population - (sample - found)  # the rest of the sample is not marked
    while low < high:  # the probability falls as more are marked
        middle = (low + high + 1) // 2
        if _at_most(found, middle, sample, population) >= tail:
            low = middle
        else:
            high = middle - 1
    return low


def detection_probability(marked: int, sample: int, population: int) -> float:
    """Return the probability that a sample without replacement has a marked item.

    >>> round(detection_probability(760, 300, 76_000), 3)
    0.951
    """
    return 1 - _at_most(0, marked, sample, population)


def _at_most(found: int, marked: int, sample: int, population: int) -> float:
    """Return the hypergeometric probability of at most `found` marked items in a sample."""
    from scipy.special import gammaln

    counts = np.arange(max(0, sample - (population - marked)), min(found, marked, sample) + 1)
    if not len(counts):
        return 0.0

    def log_choose(n: int, k: np.ndarray) -> np.ndarray:
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))

    whole = log_choose(population, np.array([sample]))
    logs = log_choose(marked, counts) + log_choose(population - marked, sample - counts) - whole
    return min(1.0, math.fsum(np.exp(logs)))
