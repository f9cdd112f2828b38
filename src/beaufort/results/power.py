"""How many images a gate needs: to show a drop, and to let an equally good model pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

from beaufort._core.errors import OptionError
from beaufort.results.spread import Spread

_MOST = 10**9
"""Largest number of images that is worth recommending."""


@dataclass(frozen=True)
class ImagePlan:
    """How many images, or clusters of them, are needed; None if a billion would not do."""

    metric: str
    drop: float
    max_drop: float
    probability: float
    to_fail: int | None
    """So that a gate fails a model whose true drop is `drop`."""
    to_pass: int | None
    """So that a gate passes a model that is as good as the old one; None if no drop is allowed."""


def plan_images(
    spread: Spread, *, drop: float, max_drop: float = 0.01, probability: float = 0.8, level: float = 0.95
) -> ImagePlan:
    """How many images let a gate with `max_drop` give the right answer with some probability.

    Args:
        spread: from `spread_of_results` or `spread_of_accuracies`.
        drop: the true drop that is to be noticed, as a share.
        max_drop: what the gate allows.
        probability: of "failed" if the true drop is `drop`, and of "passed" if it is zero.
        level: of the gate's interval.
    """
    if not 0 <= max_drop < drop:
        raise OptionError(f"drop must be above max_drop, got drop={drop!r} and max_drop={max_drop!r}")
    if not 0 < probability < 1:
        raise OptionError(f"probability must lie between 0 and 1, got {probability!r}")
    low, high = spread.bounds
    if drop >= high:
        raise OptionError(f"drop must be below {high:g}, all that can be lost, got {drop!r}")
    ends = NormalDist().inv_cdf((1 + level) / 2), NormalDist().inv_cdf(probability)
    fails = _needed(spread.deviation(drop), drop - max_drop, drop - low, *ends)
    passes = _needed(spread.deviation(0.0), max_drop, high, *ends) if max_drop else None
    return ImagePlan(spread.metric, drop, max_drop, probability, fails, passes)


def _needed(deviation: float, distance: float, worst: float, z: float, luck: float) -> int | None:
    """How many images bring the end of an interval across a limit.

    The end is as far from the mean as the quantile of a weighting of the images and one more, the worst
    possible: normal for the images, exponential for that one, and together by Cornish and Fisher's expansion.
    """

    def enough(n: int) -> bool:
        extra = worst / n
        width = math.hypot(deviation / math.sqrt(n), extra)
        skew = 2 * (extra / width) ** 3
        reach = extra + width * (z + skew * (z * z - 1) / 6)
        return reach + luck * deviation / math.sqrt(n) <= distance

    return _first(enough)


def _first(enough: Callable[[int], bool]) -> int | None:
    """The least number that is enough, where every larger one is."""
    high = 2
    while not enough(high):
        high *= 2
        if high > _MOST:
            return None
    low = 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
