"""The difference of two numbers that come from different images."""

from __future__ import annotations

import math

from beaufort.metrics.stats.estimate import Estimate


def newcombe(first: Estimate, second: Estimate) -> Estimate:
    """The first less the second, with the interval that Newcombe (1998) makes from the intervals of both.

    Where both are exact, the interval is on the wide side.

    >>> from beaufort.metrics.stats import clopper_pearson
    >>> f"{newcombe(clopper_pearson(90, 100), clopper_pearson(50, 100)):.1%}"
    '40.0 % [27.3, 51.4]'
    """
    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value, value - below, value + above, min(first.n, second.n), first.level)
