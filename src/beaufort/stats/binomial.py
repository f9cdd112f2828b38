"""Exact statements about shares of independent images."""

from __future__ import annotations

import math
from functools import lru_cache

from beaufort.errors import OptionError
from beaufort.stats.estimate import Estimate

__all__ = ["binomial_cdf", "checked_level", "clopper_pearson", "incomplete_beta"]

_TINY = 1e-300
_TERMS = 1000
"""Terms of the continued fraction at most; it takes about √n."""


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> Estimate:
    """A share with its exact interval (Clopper & Pearson, 1934): it covers at least `level`.

    >>> f"{clopper_pearson(990, 1000):.2%}"
    '99.00 % [98.17, 99.52]'
    """
    level = checked_level(level)
    if not 0 <= hits <= n or n < 1:
        raise OptionError(f"hits must be from 0 to n, and n at least 1, got hits={hits} and n={n}")
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else _share_with_cdf(hits - 1, n, 1 - tail)
    high = 1.0 if hits == n else _share_with_cdf(hits, n, tail)
    return Estimate(hits / n, low, high, n, level)


def checked_level(level: float) -> float:
    """A level that an interval can have."""
    if not 0 < level < 1:
        raise OptionError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
    return float(level)


@lru_cache(maxsize=65536)
def _share_with_cdf(k: int, n: int, wanted: float) -> float:
    """The share under which at most `k` of `n` hits have the chance `wanted`.

    Newton's steps, held between bounds that close in: the chance falls as the share rises.
    """
    low, high = 0.0, 1.0
    share = (k + 0.5) / n
    log_slope = math.log(n) + math.lgamma(n) - math.lgamma(k + 1) - math.lgamma(n - k)
    for _ in range(100):
        excess = binomial_cdf(k, n, share) - wanted
        low, high = (share, high) if excess > 0 else (low, share)
        slope = math.exp(log_slope + k * math.log(share) + (n - 1 - k) * math.log1p(-share))
        step = excess / slope if slope > _TINY else math.inf
        nearer = share + step if low < share + step < high else (low + high) / 2
        if abs(nearer - share) <= 1e-14 * share:
            return nearer
        share = nearer
    return share


def binomial_cdf(k: int, n: int, p: float) -> float:
    """The chance of at most `k` hits in `n` tries that each hit with chance `p`.

    >>> binomial_cdf(1, 2, 0.5)
    0.75
    """
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    return incomplete_beta(n - k, k + 1, 1 - p)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by Lentz's continued fraction."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # where the fraction for the other tail is the quick one
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _TERMS):
        before = result
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            result *= d * c
        if abs(result - before) <= 1e-15 * abs(result):
            return result
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
