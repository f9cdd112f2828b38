"""Confidence sequences: intervals of a mean that hold at every number of images at once.

An interval for a fixed number of images misses more often than it says if one looks at it again and again
until it decides. Here, a bet against each possible mean m is placed on every image (Waudby-Smith & Ramdas,
2024): the capital, a product of 1 + λ(x - m), has the expected value 1 if the mean is m. By Ville's
inequality, the probability that it ever exceeds 1/tail is at most `tail`, for any distribution between the
bounds. The interval consists of the means whose capital is below that.

λ is not predicted from earlier images but averaged over a grid of constant bets, which makes the capital
independent of the order of the images.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort.metrics.stats.bounded import BoundedValues, least_count
from beaufort.metrics.stats.estimate import Estimate, validate_level

Floats = NDArray[np.float64]

BETS = 1 - np.exp(-np.geomspace(3e-3, 3.0, 25))
"""Fractions of the largest possible bet, equally weighted: large ones win early, small ones late."""


def always_valid_interval(
    values: ArrayLike, *, low: float = 0.0, high: float = 1.0, level: float = 0.95
) -> Estimate:
    """Return the mean with an interval that holds at all numbers of images at once, at `level`.

    Images must be added in random order. Looking after every image and stopping at any time is allowed.

    Args:
        values: value of each image so far; images are independent of each other.
        low: least value that an image can have.
        high: largest value that an image can have.
        level: probability that no interval of the sequence misses the true mean.

    >>> f"{always_valid_interval([1] * 150 + [0] * 50):.1%}"
    '75.0 % [63.8, 84.3]'
    """
    numbers = BoundedValues(values, low, high)
    wanted = math.log(2 / (1 - validate_level(level)))
    bets = _Bets(numbers.distinct, numbers.counts)
    lower = _end(bets, low, numbers.mean, wanted)
    flipped = _Bets(-numbers.distinct, numbers.counts)
    upper = -_end(flipped, -high, -numbers.mean, wanted)
    return Estimate(numbers.mean, lower, upper, numbers.n, level)


def always_valid_images_to_decide(
    values: ArrayLike, *, limit: float, low: float = 0.0, high: float = 1.0, level: float = 0.95
) -> int | None:
    """Return how many images like these would exclude `limit` from the interval; None if none would.

    >>> always_valid_images_to_decide([1] * 3 + [0], limit=0.6)
    115
    """
    numbers = BoundedValues(values, low, high)
    if numbers.mean == limit or not low <= limit <= high:
        return None
    wanted = math.log(2 / (1 - validate_level(level)))
    sign = 1 if numbers.mean > limit else -1
    at, bound = sign * limit, low if sign > 0 else -high
    if at == bound:
        return None

    def decided(count: int) -> bool:
        bets = _Bets(sign * numbers.distinct, numbers.counts * (count / numbers.n))
        return bets.log_capital(at, bound) > wanted

    return least_count(decided)


@dataclass(frozen=True, eq=False)
class _Bets:
    """Bets that the mean is larger than a given one."""

    values: Floats
    counts: Floats

    def log_capital(self, mean: float, low: float) -> float:
        """Return the logarithm of the average capital after all images."""
        gains = (self.values - mean) / (mean - low)  # at least -1
        logs = np.log1p(BETS[:, None] * gains) @ self.counts
        most = float(logs.max())
        return most + math.log(float(np.exp(logs - most).mean()))


def _end(bets: _Bets, low: float, mean: float, wanted: float) -> float:
    """Return the lower end: below it, the capital is larger than wanted. It falls as the mean rises."""
    outside, inside = low, mean
    span = mean - low
    while inside - outside > 1e-7 * span:
        middle = (outside + inside) / 2
        if middle <= low or middle >= inside:
            break
        if bets.log_capital(middle, low) > wanted:
            outside = middle
        else:
            inside = middle
    return outside
