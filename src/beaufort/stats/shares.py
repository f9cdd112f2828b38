"""Exact intervals of many shares at once."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort.errors import OptionError
from beaufort.stats.binomial import checked_level

__all__ = ["share_intervals"]

Floats = NDArray[np.float64]

_TERMS = 2000
_STEPS = 60
_TINY = 1e-300
_SMOOTH = 15.0
"""From such hits and misses on, the density is smooth enough to be integrated."""
_REACH = 14.0
"""Standard deviations, beyond which the tail adds nothing."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def share_intervals(hits: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """The lower and upper ends of Clopper and Pearson's intervals, for arrays of counts.

    As `clopper_pearson`, but for tens of thousands of shares at a time, and for counts that are not whole
    because the share was rounded before it was written down. NaN stays NaN.

    >>> low, high = share_intervals([990, 0, 5], [1000, 5, 5])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.9817, 0.0, 0.4782], [0.9952, 0.5218, 1.0])
    """
    tail = (1 - checked_level(level)) / 2
    k, size = (np.array(a, np.float64) for a in np.broadcast_arrays(np.asarray(hits), np.asarray(n)))
    given = ~(np.isnan(k) | np.isnan(size))
    if np.any((k[given] < 0) | (k[given] > size[given]) | (size[given] < 1)):
        raise OptionError("hits must be from 0 to n, and n at least 1")
    low, high = np.where(given, 0.0, np.nan), np.where(given, 1.0, np.nan)
    below, above = given & (k > 0), given & (k < size)
    low[below] = _beta_quantile(tail, k[below], (size - k + 1)[below])
    high[above] = _beta_quantile(1 - tail, (k + 1)[above], (size - k)[above])
    return low, high


def _beta_quantile(share: float, a: Floats, b: Floats) -> Floats:
    """Where the beta distribution's chance reaches `share`: Newton's steps between bounds that close in."""
    if not len(a):
        return a
    log_front = _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    mean = a / (a + b)
    spread = np.sqrt(mean * (1 - mean) / (a + b + 1))
    low, high = np.zeros_like(a), np.ones_like(a)
    x = np.clip(mean + NormalDist().inv_cdf(share) * spread, 0.1 * mean, 1 - 0.1 * (1 - mean))
    open_ = np.arange(len(a))
    for _ in range(_STEPS):
        at, p, q = x[open_], a[open_], b[open_]
        chance = _incomplete_beta(p, q, at, log_front[open_])
        under = chance < share
        low[open_[under]], high[open_[~under]] = at[under], at[~under]
        density = np.exp(log_front[open_] + (p - 1) * np.log(at) + (q - 1) * np.log1p(-at))
        nearer = at - (chance - share) / np.maximum(density, _TINY)
        outside = ~((nearer > low[open_]) & (nearer < high[open_]))
        nearer[outside] = ((low + high)[open_] / 2)[outside]
        x[open_] = nearer
        open_ = open_[np.abs(nearer - at) > 1e-13 * nearer]
        if not len(open_):
            break
    return x


def _incomplete_beta(a: Floats, b: Floats, x: Floats, log_front: Floats) -> Floats:
    """The regularized incomplete beta function: the tail on the near side of the middle, or 1 less it."""
    swap = x > (a + 1) / (a + b + 2)
    a, b, x = np.where(swap, b, a), np.where(swap, a, b), np.where(swap, 1 - x, x)
    part = np.empty_like(a)
    smooth = np.minimum(a, b) > _SMOOTH
    for rows, tail in ((smooth, _tail_area), (~smooth, _tail_fraction)):
        if rows.any():
            part[rows] = tail(a[rows], b[rows], x[rows], log_front[rows])
    return np.where(swap, 1 - part, part)


def _tail_area(a: Floats, b: Floats, x: Floats, log_front: Floats) -> Floats:
    """By Gauss and Legendre's rule over the part of the tail that counts, where the density is smooth."""
    spread = np.sqrt(a * b / (a + b + 1)) / (a + b)
    half = np.minimum(x, _REACH * spread) / 2
    at = x[:, None] + half[:, None] * (_NODES - 1)
    density = (a - 1)[:, None] * np.log(at) + (b - 1)[:, None] * np.log1p(-at) + log_front[:, None]
    return np.asarray(half * (np.exp(density) @ _WEIGHTS))


def _tail_fraction(a: Floats, b: Floats, x: Floats, log_front: Floats) -> Floats:
    """By the continued fraction, which needs few terms where one of the two is small."""
    return np.exp(log_front + a * np.log(x) + b * np.log1p(-x)) / a * _fraction(a, b, x)


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """Lentz's continued fraction; what has converged is left out of the next terms."""
    result = np.empty_like(a)
    open_ = np.arange(len(a))
    c, d = np.ones_like(a), 1 / (1 - (a + b) * x / (a + 1))
    h = d.copy()
    for m in range(1, _TERMS):
        before = h
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            h = h * (d * c)
        if m % 8:
            continue
        done = np.abs(h - before) <= 1e-15 * np.abs(h)
        result[open_[done]] = h[done]
        if done.all():
            return result
        open_ = open_[~done]
        a, b, x, c, d, h = (part[~done] for part in (a, b, x, c, d, h))
    result[open_] = h
    return result


def _log_gamma(values: Floats) -> Floats:
    distinct, place = np.unique(values, return_inverse=True)
    return np.array([math.lgamma(value) for value in distinct])[place]
