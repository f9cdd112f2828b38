"""A number with its interval, and exact intervals of proportions of independent images.

The special functions are SciPy's, imported at the first call: the import takes 0.2 s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import OptionError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A value with the interval that covers the true value in `level` of all repetitions.

    >>> f"{Estimate(0.7671, 0.752, 0.7822, 1000):.1%}"
    '76.7 % [75.2, 78.2]'
    >>> f"{Estimate(1.0, 1.0, 1.0, 1000):.1%}"
    '100.0 % (by definition)'
    >>> f"{Estimate(-1e-17, -0.116, 0.116, 30):.1%}"  # what rounds to zero has no sign
    '0.0 % [-11.6, 11.6]'
    """

    value: float
    low: float
    high: float
    n: int
    """Number of base images, or clusters of them, that it is computed from."""
    level: float = 0.95

    def __format__(self, spec: str) -> str:
        """Return text with the digits of the format, such as `.1%` or `.3f`."""
        if spec.endswith("%"):
            value, low, high = (f"{100 * x:z{spec[:-1]}f}" for x in (self.value, self.low, self.high))
            value += " %"
        else:
            value, low, high = (f"{x:{spec}}" for x in (self.value, self.low, self.high))
        return f"{value} (by definition)" if self.exact else f"{value} [{low}, {high}]"

    def __str__(self) -> str:
        return f"{self:.4g}"

    def __neg__(self) -> Estimate:
        return replace(self, value=-self.value, low=-self.high, high=-self.low)

    def __rsub__(self, whole: float) -> Estimate:
        """Return the complement: the error of an accuracy is `1 - accuracy`."""
        return replace(self, value=whole - self.value, low=whole - self.high, high=whole - self.low)

    @property
    def exact(self) -> bool:
        """Whether the value is exact by definition, with an interval of width 0, such as a baseline's mCE."""
        return self.low == self.high

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> Estimate:
    """Return a fraction with its exact interval (Clopper & Pearson, 1934), which covers at least `level`.

    >>> f"{clopper_pearson(990, 1000):.2%}"
    '99.00 % [98.17, 99.52]'
    """
    low, high = proportion_intervals(hits, n, level)
    return Estimate(hits / n, float(low), float(high), n, float(level))


def proportion_intervals(hits: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of Clopper and Pearson's intervals, for arrays of counts.

    Counts may be fractional, for accuracies that were rounded when published. NaN stays NaN.

    >>> low, high = proportion_intervals([990, 0, 5], [1000, 5, 5])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.9817, 0.0, 0.4782], [0.9952, 0.5218, 1.0])
    """
    from scipy.special import betaincinv

    tail = (1 - validate_level(level)) / 2
    k, size = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(n, np.float64))
    wrong = (k < 0) | (k > size) | (size < 1)
    if wrong.any():
        raise OptionError(
            f"hits must be from 0 to n, and n at least 1, got hits={k[wrong][0]:g} and n={size[wrong][0]:g}"
        )
    low = np.where(k > 0, betaincinv(k, size - k + 1, tail), k)  # k is 0 or NaN there
    high = np.where(k < size, betaincinv(k + 1, size - k, 1 - tail), k / size)  # 1 or NaN
    return low, high


def validate_level(level: float) -> float:
    """Return the level as a float; it must be between 0 and 1."""
    if not 0 < level < 1:
        raise OptionError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
    return float(level)


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Return the probability of at most `k` successes in `n` trials of probability `p`.

    >>> binomial_cdf(1, 2, 0.5)
    0.75
    """
    from scipy.special import bdtr

    return 0.0 if k < 0 else 1.0 if k >= n else float(bdtr(k, n, p))
