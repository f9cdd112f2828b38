"""The bootstrap over base images, for numbers that are not a plain mean.

Each resample weights the images at random, with all versions of an image: versions of one photo fail
together, and an interval that treats them as independent is too narrow. The weights are spacings of uniform
numbers (Rubin's Bayesian bootstrap, 1981), so that every image, and every rare error, is in every resample.
As in `mean_interval`, one unseen image is added, with the worst possible value for the end in question. Every
statistic is a function of column means, so that a resample is one row of a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_count
from beaufort.metrics.stats.estimate import Estimate, validate_level

RESAMPLES = 10_000

_CHUNK = 4_000_000
"""Maximum number of weights in memory at a time."""

Statistic = Callable[[NDArray[np.float64]], Any]
"""A function from column means `(…, k)` to numbers `(…)`."""


@dataclass(frozen=True, eq=False)
class Resamples:
    """Column means of each resample, before the unseen image is added."""

    means: NDArray[np.float64]
    """Weighted means of the images alone, `(resamples, k)`."""
    unseen: NDArray[np.float64]
    """The weight of the image that nobody has seen, `(resamples, 1)`; between 0 and 1."""

    def beside(self, image: ArrayLike) -> NDArray[np.float64]:
        """Return the means with values `(k,)` for the unseen image."""
        return self.means + self.unseen * (np.asarray(image, np.float64) - self.means)


def bootstrap(
    values: ArrayLike,
    statistic: Statistic,
    *,
    low: float = 0.0,
    high: float = 1.0,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Return a statistic of column means with its interval over base images.

    Args:
        values: one row per base image, `(n, k)`.
        statistic: takes means `(…, k)` to numbers `(…)`.
        low: the smallest value that an image can have in a column.
        high: the largest value that an image can have in a column.
        resamples: how many times the images are weighted anew.
        seed: of the weights; the same seed and number of images give the same weights, which pairs results.
        level: probability that the interval covers the value.

    >>> rng = np.random.default_rng(0)
    >>> hits = rng.random((1000, 5)) < 0.7
    >>> f"{bootstrap(hits, lambda means: means.mean(axis=-1)):.1%}"
    '69.9 % [68.5, 71.1]'
    """
    columns = _columns(values)
    if not (columns.min() >= low and columns.max() <= high):
        raise OptionError(
            f"values must lie between low={low:g} and high={high:g}, got {columns.min():g} to "
            f"{columns.max():g}"
        )
    tail = (1 - validate_level(level)) / 2
    means = columns.mean(axis=0, dtype=np.float64)
    rises = _slopes(statistic, means, low, high) > 0
    drawn = resample(columns, resamples=resamples, seed=seed)
    worst, best = np.where(rises, low, high), np.where(rises, high, low)
    lower = np.quantile(np.asarray(statistic(drawn.beside(worst)), np.float64), tail)
    upper = np.quantile(np.asarray(statistic(drawn.beside(best)), np.float64), 1 - tail)
    value = float(statistic(means))
    return Estimate(value, float(min(lower, value)), float(max(upper, value)), len(columns), level)


def bootstrap_means(values: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> NDArray[np.float64]:
    """Return the column means of each resample, `(resamples, k)`, without the unseen image."""
    return resample(values, resamples=resamples, seed=seed).means


def resample(values: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> Resamples:
    """Return the column means of each resample.

    How resample r weights the images depends on the seed, r and the number of images alone.
    """
    columns = _columns(values)
    columns = np.hstack([columns, np.ones((len(columns), 1))], dtype=np.float32)  # the last sums the weights
    resamples = validate_count("resamples", resamples)
    n = len(columns)
    step = max(1, min(resamples, _CHUNK // (n + 1)))
    weights = _weights if step == resamples else _draw_weights
    means = np.empty((resamples, columns.shape[1] - 1))
    unseen = np.empty((resamples, 1))
    for start in range(0, resamples, step):
        some = weights(min(step, resamples - start), n + 1, seed & (2**64 - 1), start)
        rows = slice(start, start + len(some))
        sums = some[:, :n] @ columns
        means[rows] = sums[:, :-1] / sums[:, -1:].astype(np.float64)
        unseen[rows] = some[:, n:] / (sums[:, -1:].astype(np.float64) + some[:, n:])
    return Resamples(means, unseen)


def _draw_weights(resamples: int, images: int, seed: int, first: int) -> NDArray[np.float32]:
    """Return the weights of resamples from `first` on, `(resamples, images)`, with a negative sign."""
    from beaufort.metrics.stats._compiled import draw_uniform

    weights = np.empty((resamples, images), np.float32)
    draw_uniform(weights, np.uint64(seed), np.uint64(first))
    np.log(weights, out=weights)  # less an exponential number; the sign falls out of the quotients
    return weights


_weights = lru_cache(maxsize=1)(_draw_weights)
"""The same weights for every model of a report: as many resamples of as many images."""


def _slopes(statistic: Statistic, means: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return the derivatives of the statistic by the column means."""
    step = np.where(means < (low + high) / 2, 1e-4, -1e-4) * (high - low)  # stays between the bounds
    moved = means + np.diag(step)
    return (np.asarray(statistic(moved), np.float64) - float(statistic(means))) / step


def _columns(values: ArrayLike) -> NDArray[Any]:
    columns = np.asarray(values)
    if columns.ndim == 1:
        columns = columns[:, None]
    if columns.ndim != 2 or len(columns) < 1:
        raise OptionError(
            f"values must have one row for each image, (n, k), with n at least 1, got shape {columns.shape}"
        )
    return columns
