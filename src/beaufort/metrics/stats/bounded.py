"""The mean of bounded numbers: an interval that is valid for any number of images and any distribution.

Percentiles of a bootstrap only contain observed values. Where errors are rare, most samples contain none of
the hard photos, and the interval is too narrow, or a point. The interval here adds one unseen image with the
worst possible value for the end in question, and weights all images at random by the spacings of uniform
numbers (Gaffke, 2005; Learned-Miller & Thomas, 2020). For numbers that are all 0 or 1 it is the exact
interval of Clopper and Pearson; for any others it keeps the coverage and is narrower, because they vary less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_count
from beaufort.metrics.stats.estimate import Estimate, clopper_pearson, validate_level

_NORMAL = NormalDist()
FIRST = 500
"""Number of images before the intervals are looked at for the first time."""
GROWTH = 1.25
"""Factor between the numbers of images at one look and the next."""

_NEGLIGIBLE = 1e-90
"""Distance of a mean to a bound, as a fraction of the range, whose powers would underflow to zero."""

MOST_IMAGES = 10**9
"""Largest number of images that is worth recommending; None is returned above it."""


def mean_interval(values: ArrayLike, *, low: float = 0.0, high: float = 1.0, level: float = 0.95) -> Estimate:
    """Return the mean of one number per image, with an interval.

    Args:
        values: one number for each image; images are independent of each other.
        low: the smallest number that an image can have.
        high: the largest number that an image can have.
        level: probability that the interval covers the mean over all images there could be.

    >>> f"{mean_interval([1, 1, 1]):.1%}"
    '100.0 % [29.2, 100.0]'
    >>> f"{mean_interval([0.8, 1, 1, 0.9] * 50):.1%}"
    '92.5 % [90.4, 93.7]'
    """
    return gaffke_interval(BoundedValues(values, low, high), level)


def gaffke_interval(numbers: BoundedValues, level: float) -> Estimate:
    """Return the mean with Gaffke's interval."""
    low, high = numbers.low, numbers.high
    tail = (1 - validate_level(level)) / 2
    if numbers.ends_only:
        exact = clopper_pearson(numbers.at_high, numbers.n, level)
        lower, upper = (low + (high - low) * end for end in (exact.low, exact.high))
        return Estimate(numbers.mean, lower, upper, numbers.n, level)
    mean = numbers.mean
    lower, upper = low, high
    if mean - low > _NEGLIGIBLE * (high - low):
        lower = _root(numbers.beside(low), low, mean, _NORMAL.inv_cdf(tail))
    if high - mean > _NEGLIGIBLE * (high - low):
        upper = _root(numbers.beside(high), mean, high, _NORMAL.inv_cdf(1 - tail))
    return Estimate(mean, lower, upper, numbers.n, level)


def mean_p_value(values: ArrayLike, *, low: float, high: float, null: float = 0.0) -> float:
    """Return the two-sided p-value of the hypothesis that a mean is `null`.

    It is below one less the level exactly if `mean_interval` at that level does not contain `null`.

    >>> round(mean_p_value([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], low=-1, high=1), 4)
    0.1274
    """
    return gaffke_p_value(BoundedValues(values, low, high), null)


def gaffke_p_value(numbers: BoundedValues, null: float) -> float:
    """Return the two-sided p-value of Gaffke's interval."""
    low, high = numbers.low, numbers.high
    if not low < null < high:
        raise OptionError(f"null must lie between low={low} and high={high}, got {null!r}")
    above, below = numbers.beside(low).tail(null), numbers.beside(high).flipped.tail(-null)
    return min(1.0, 2 * min(above, below))


def images_to_decide(
    values: ArrayLike, *, limit: float, low: float = 0.0, high: float = 1.0, level: float = 0.95
) -> int | None:
    """Return how many images like these would exclude `limit` from `mean_interval`; None if none would.

    >>> images_to_decide([1, 1, 1], limit=0.99)
    369
    >>> images_to_decide([0.4, 0.6], limit=0.5) is None
    True
    """
    numbers = BoundedValues(values, low, high)
    tail = (1 - validate_level(level)) / 2
    if numbers.mean == limit or not low <= limit <= high:
        return None
    return least_count(lambda count: gaffke_tail(numbers, limit, count) < tail)


def gaffke_tail(numbers: BoundedValues, limit: float, count: int) -> float:
    """Return the chance that `count` images like these, weighted at random, have a mean beyond `limit`."""
    above = numbers.mean > limit
    beside = numbers.beside(numbers.low) if above else numbers.beside(numbers.high).flipped
    repeated = beside.counts * (count / numbers.n)
    repeated[-1] = 1.0
    return _Weighted(beside.values, repeated).tail(limit if above else -limit)


def least_count(decided: Callable[[int], bool]) -> int | None:
    """Return the least number of images that decides, by bisection; None if more than a billion."""
    most = 1
    while not decided(most):
        most *= 2
        if most > MOST_IMAGES:
            return None
    least = most // 2
    while most - least > 1:
        middle = (most + least) // 2
        least, most = (least, middle) if decided(middle) else (middle, most)
    return most


def looks(count: int) -> Iterator[int]:
    """Return the numbers of images after which to check the intervals; the last is all of them.

    Stop at the first check at which the interval is narrow enough. The rule is fixed in advance and depends
    on the width, not on the value, and `mean_interval` is never narrow by chance. The cost of repeated checks
    is measured by simulation, in the tests and in `python -m benchmarks intervals`.

    >>> list(looks(1000))
    [500, 625, 782, 978, 1000]
    """
    count = validate_count("count", count)
    at = FIRST
    while at < count:
        yield at
        at = math.ceil(at * GROWTH)
    yield count


class BoundedValues:
    """Values with their numbers of images."""

    def __init__(self, values: ArrayLike, low: float, high: float) -> None:
        numbers = np.asarray(values, np.float64)
        if numbers.ndim != 1 or not len(numbers):
            raise OptionError(f"values must be a list of at least one number, got shape {numbers.shape}")
        if not low < high:
            raise OptionError(f"low must be below high, got low={low!r} and high={high!r}")
        slack = 1e-6 * (high - low)  # what single precision may have added
        if not (numbers.min() >= low - slack and numbers.max() <= high + slack):
            raise OptionError(
                f"values must lie between low={low:g} and high={high:g}, got {numbers.min():g} to "
                f"{numbers.max():g}"
            )
        self.low, self.high = low, high
        self.n = len(numbers)
        self.mean = float(numbers.mean())
        self.distinct, counts = np.unique(np.clip(numbers, low, high), return_counts=True)
        self.counts: NDArray[np.float64] = counts.astype(np.float64)
        self.at_high = int(self.counts[self.distinct == high].sum())
        self.ends_only = bool(np.isin(self.distinct, (low, high)).all())

    def beside(self, unseen: float) -> _Weighted:
        """Return the numbers with an unseen one."""
        return _Weighted(np.append(self.distinct, unseen), np.append(self.counts, 1.0))


@dataclass(frozen=True, eq=False)
class _Weighted:
    """Numbers that are weighted at random."""

    values: NDArray[np.float64]
    counts: NDArray[np.float64]

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return float(self.values.min()), float(self.values.max())

    @property
    def flipped(self) -> _Weighted:
        return _Weighted(-self.values, self.counts)

    def tail(self, at: float) -> float:
        """Return the probability that the weighted mean is below `at`."""
        from beaufort.metrics.stats._compiled import log_tail_terms

        least, most = self._ends
        if least >= at:
            return 0.0
        if most <= at:
            return 1.0
        point, cumulant, curvature, skew = log_tail_terms(self.values, self.counts, at)
        root = math.copysign(math.sqrt(max(0.0, -2 * cumulant)), point)
        if abs(root) < 1e-4:  # at the mean, where the formula below is 0 / 0
            return 0.5 + float(skew) / (6 * math.sqrt(2 * math.pi))
        curved = point * math.sqrt(curvature)
        return float(_NORMAL.cdf(root + math.log(curved / root) / root))


def _score(p: float) -> float:
    """Return the normal quantile of a probability, which is nearly linear where the probability is an S."""
    return _NORMAL.inv_cdf(min(max(p, 1e-300), 1 - 1e-16))


def _root(weighted: _Weighted, low: float, high: float, wanted: float) -> float:
    """Return the point with a normal quantile of the tail: false position with bisections."""
    below, above = -40.0, 9.0
    span = high - low
    for step in range(200):
        fraction = (wanted - below) / (above - below) if step % 3 else 0.5
        middle = low + (high - low) * min(max(fraction, 0.001), 0.999)
        found = _score(weighted.tail(middle))
        if found < wanted:
            low, below = middle, found
        else:
            high, above = middle, found
        if high - low <= 1e-9 * span or abs(found - wanted) < 1e-9:
            return middle
    return (low + high) / 2
