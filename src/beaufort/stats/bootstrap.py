"""The bootstrap over base images.

Each resample draws as many images as there are, with replacement, and takes all versions of an image along:
versions of one photo fail together, and an interval that counts them one by one is too narrow. Every
statistic here is a function of column means, so that a resample is one row of a matrix product: how often
each image was drawn, times the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort.errors import OptionError
from beaufort.stats.binomial import checked_level
from beaufort.stats.estimate import Estimate

__all__ = ["RESAMPLES", "bootstrap", "bootstrap_means", "interval"]

RESAMPLES = 10_000

_CHUNK = 8_000_000
"""Draw counts at hand at a time."""


def bootstrap(
    values: ArrayLike,
    statistic: Callable[[NDArray[np.float64]], Any],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """A statistic of column means with its percentile interval.

    Args:
        values: one row a base image, `(n, k)`.
        statistic: takes means `(…, k)` to numbers `(…)`.
        resamples: how many times the images are drawn anew.
        seed: of the draws; the same seed and number of images draw the same images, which pairs results.
        level: share of repetitions that the interval is to cover.

    >>> rng = np.random.default_rng(0)
    >>> hits = rng.random((1000, 5)) < 0.7
    >>> f"{bootstrap(hits, lambda means: means.mean(axis=-1)):.1%}"
    '69.9 % [68.6, 71.2]'
    """
    columns = _columns(values)
    drawn = np.asarray(statistic(bootstrap_means(columns, resamples=resamples, seed=seed)), np.float64)
    value = float(statistic(columns.mean(axis=0, dtype=np.float64)))
    return interval(value, drawn, len(columns), level)


def interval(value: float, drawn: NDArray[np.float64], n: int, level: float = 0.95) -> Estimate:
    """The percentile interval of resampled values.

    The tails are widened as a t distribution and the factor n / (n - 1) ask for (Hesterberg, 2015):
    with few images plain percentiles are too narrow; from some hundreds on it makes no difference.
    """
    level = checked_level(level)
    tail = (1 - level) / 2
    if n > 1:
        tail = NormalDist().cdf(math.sqrt(n / (n - 1)) * _t_quantile(tail, n - 1))
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return Estimate(value, float(low), float(high), n, level)


def bootstrap_means(values: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> NDArray[np.float64]:
    """The column means of each resample, `(resamples, k)`.

    Which images resample r draws depends on the seed, r and the number of images alone.
    """
    from beaufort.stats._draws import draw_counts

    columns = np.ascontiguousarray(_columns(values), np.float32)
    if isinstance(resamples, bool) or not isinstance(resamples, int) or resamples < 1:
        raise OptionError(f"resamples={resamples!r} came; accepted is a whole number from 1")
    n = len(columns)
    step = max(1, min(resamples, _CHUNK // n))
    counts = np.empty((step, n), np.float32)
    means = np.empty((resamples, columns.shape[1]))
    for start in range(0, resamples, step):
        some = counts[: min(step, resamples - start)]
        draw_counts(some, np.uint64(seed & (2**64 - 1)), np.uint64(start))
        means[start : start + len(some)] = some @ columns
    return means / n


def _columns(values: ArrayLike) -> NDArray[Any]:
    columns = np.asarray(values)
    if columns.ndim == 1:
        columns = columns[:, None]
    if columns.ndim != 2 or len(columns) < 1:
        raise OptionError(f"values of shape {columns.shape} came; accepted is one row an image, (n, k)")
    return columns


def _t_quantile(share: float, degrees: int) -> float:
    """A quantile of Student's t, by Cornish and Fisher's expansion; exact for 1 and 2 degrees.

    >>> round(_t_quantile(0.025, 10), 3)
    -2.228
    """
    if degrees == 1:
        return math.tan(math.pi * (share - 0.5))
    if degrees == 2:
        return (2 * share - 1) / math.sqrt(2 * share * (1 - share))
    z = NormalDist().inv_cdf(share)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / degrees**power for power, term in enumerate(terms))
