"""Exact statements about shares of independent images.

The special functions are SciPy's, imported at the first call: the import takes 0.2 s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import OptionError
from beaufort.metrics.stats.estimate import Estimate

Floats = NDArray[np.float64]


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> Estimate:
    """A share with its exact interval (Clopper & Pearson, 1934): it covers at least `level`.

    >>> f"{clopper_pearson(990, 1000):.2%}"
    '99.00 % [98.17, 99.52]'
    """
    low, high = share_intervals(hits, n, level)
    return Estimate(hits / n, float(low), float(high), n, float(level))


def share_intervals(hits: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """The lower and upper ends of Clopper and Pearson's intervals, for arrays of counts.

    Counts may be fractions, for shares that were rounded before they were written down. NaN stays NaN.

    >>> low, high = share_intervals([990, 0, 5], [1000, 5, 5])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.9817, 0.0, 0.4782], [0.9952, 0.5218, 1.0])
    """
    from scipy.special import betaincinv

    tail = (1 - checked_level(level)) / 2
    k, size = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(n, np.float64))
    wrong = (k < 0) | (k > size) | (size < 1)
    if wrong.any():
        raise OptionError(
            f"hits must be from 0 to n, and n at least 1, got hits={k[wrong][0]:g} and n={size[wrong][0]:g}"
        )
    low = np.where(k > 0, betaincinv(k, size - k + 1, tail), k)  # k is 0 or NaN there
    high = np.where(k < size, betaincinv(k + 1, size - k, 1 - tail), k / size)  # 1 or NaN
    return low, high


def checked_level(level: float) -> float:
    """The level as a float; an error unless it is between 0 and 1."""
    if not 0 < level < 1:
        raise OptionError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
    return float(level)


def binomial_cdf(k: int, n: int, p: float) -> float:
    """The chance of at most `k` hits in `n` tries that each hit with chance `p`.

    >>> binomial_cdf(1, 2, 0.5)
    0.75
    """
    from scipy.special import bdtr

    return 0.0 if k < 0 else 1.0 if k >= n else float(bdtr(k, n, p))
