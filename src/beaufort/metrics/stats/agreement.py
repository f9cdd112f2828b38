"""Agreement beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha.

All three are functions of means over images, so that their intervals come from the same bootstrap over base
images as every other metric. The unseen image that each resample contains is in turn every possible kind of
image; the interval covers all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import OptionError
from beaufort.metrics.stats.estimate import Estimate, validate_level
from beaufort.metrics.stats.resampling import RESAMPLES, resample

Floats = NDArray[np.float64]


def cohen_kappa(
    first: ArrayLike,
    second: ArrayLike,
    *,
    categories: int = 2,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate | None:
    """Return the agreement of two people on the same images (Cohen, 1960); None if all ratings are equal.

    Args:
        first: ratings by one person, integers from 0 to `categories` - 1, one for each image.
        second: ratings by the other, in the same order.
        categories: number of categories.
        resamples: of the interval.
        seed: of the resamples.
        level: probability that the interval covers the value.

    >>> ratings = [1, 1, 0, 1, 0, 0, 1, 0, 1, 1] * 5
    >>> others = [1, 1, 0, 1, 0, 1, 1, 0, 1, 0] * 5
    >>> round(cohen_kappa(ratings, others).value, 4)
    0.5833
    """
    a, b = (_ratings(ratings, categories) for ratings in (first, second))
    if len(a) != len(b):
        raise OptionError(f"first and second must have the same length, got {len(a)} and {len(b)}")
    rows = np.zeros((len(a), categories, categories))
    rows[np.arange(len(a)), a, b] = 1
    unseen = np.eye(categories * categories)

    def kappa(means: Floats) -> Floats:
        joint = means.reshape(*means.shape[:-1], categories, categories)
        agreed = np.trace(joint, axis1=-2, axis2=-1)
        chance = (joint.sum(axis=-1) * joint.sum(axis=-2)).sum(axis=-1)
        return _beyond_chance(agreed, chance)

    return _estimate(rows.reshape(len(a), -1), kappa, unseen, resamples, seed, level)


def fleiss_kappa(
    counts: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0, level: float = 0.95
) -> Estimate | None:
    """Return the agreement for a constant number of ratings per image (Fleiss, 1971); None if all are equal.

    Args:
        counts: how often each rating was given to each image, `(images, ratings)`.
        resamples: of the interval.
        seed: of the resamples.
        level: probability that the interval covers the value.

    >>> round(fleiss_kappa([[3, 0], [0, 3], [2, 1], [0, 3]]).value, 4)
    0.6571
    """
    table = _counts(counts)
    raters = table.sum(axis=1)
    if not (raters == raters[0]).all() or raters[0] < 2:
        raise OptionError(
            "every image must have the same number of ratings, at least 2, got "
            f"{raters.min():g} to {raters.max():g}; krippendorff_alpha takes any"
        )
    n = raters[0]

    def row(table: Floats) -> Floats:
        pairs = (table * (table - 1)).sum(axis=1, keepdims=True) / (n * (n - 1))
        return np.hstack([pairs, table / n])

    def kappa(means: Floats) -> Floats:
        return _beyond_chance(means[..., 0], (means[..., 1:] ** 2).sum(axis=-1))

    return _estimate(row(table), kappa, row(_extremes(table.shape[1], n)), resamples, seed, level)


def krippendorff_alpha(
    counts: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0, level: float = 0.95
) -> Estimate | None:
    """Return the agreement for any number of ratings per image (Krippendorff); None if all are equal.

    Images with fewer than two ratings contain no information about agreement and are omitted.

    Args:
        counts: how often each rating was given to each image, `(images, ratings)`.
        resamples: of the interval.
        seed: of the resamples.
        level: probability that the interval covers the value.

    >>> round(krippendorff_alpha([[3, 0], [0, 2], [2, 1], [0, 3], [1, 0]]).value, 4)
    0.6667
    """
    table = _counts(counts)
    table = table[table.sum(axis=1) >= 2]
    if not len(table):
        return None
    most = table.sum(axis=1).max()

    def row(table: Floats) -> Floats:
        """Return the pairs of equal ratings, and each rating, as fractions."""
        n = table.sum(axis=1, keepdims=True)
        pairs = (table * (table - 1)).sum(axis=1, keepdims=True) / (n - 1)
        return np.asarray(np.hstack([pairs, table]) / most, np.float64)

    def alpha(means: Floats) -> Floats:
        sums = means * most * len(table)
        totals = sums[..., 1:]
        n = totals.sum(axis=-1)
        chance = (totals * (totals - 1)).sum(axis=-1) / (n * (n - 1))
        return _beyond_chance(sums[..., 0] / n, chance)

    return _estimate(row(table), alpha, row(_extremes(table.shape[1], most)), resamples, seed, level)


def _beyond_chance(agreed: Floats, chance: Floats) -> Floats:
    """Return the agreement beyond chance, relative to its maximum; NaN where chance is 1."""
    room = 1 - chance
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(room > 1e-9, (agreed - chance) / room, np.nan)
    return np.asarray(found, np.float64)


def _estimate(
    rows: Floats,
    statistic: Callable[[Floats], Floats],
    unseen: Floats,
    resamples: int,
    seed: int,
    level: float,
) -> Estimate | None:
    tail = (1 - validate_level(level)) / 2
    value = float(statistic(rows.mean(axis=0)))
    if np.isnan(value):
        return None
    drawn = resample(rows, resamples=resamples, seed=seed)
    found = [np.nan_to_num(statistic(drawn.beside(image)), nan=1.0) for image in unseen]
    low = min(float(np.quantile(one, tail)) for one in found)
    high = max(float(np.quantile(one, 1 - tail)) for one in found)
    return Estimate(value, min(low, value), max(high, value), len(rows), level)


def _extremes(categories: int, n: float) -> Floats:
    """Return an image with full agreement for each rating, and one with the most even split."""
    split = np.full(categories, n // categories)
    split[: int(n % categories)] += 1
    return np.vstack([np.eye(categories) * n, split])


def _ratings(ratings: ArrayLike, categories: int) -> NDArray[np.int64]:
    found = np.asarray(ratings)
    if found.ndim != 1 or not len(found) or not np.issubdtype(found.dtype, np.integer):
        raise OptionError(
            f"ratings must be integers, one for each image, got shape {found.shape} of {found.dtype}"
        )
    if found.min() < 0 or found.max() >= categories:
        raise OptionError(f"ratings must be from 0 to {categories - 1}, got {found.min()} to {found.max()}")
    return found.astype(np.int64)


def _counts(counts: ArrayLike) -> Floats:
    found = np.asarray(counts, np.float64)
    if found.ndim != 2 or found.shape[0] < 1 or found.shape[1] < 2:
        raise OptionError(
            f"counts must have a row for each image and a column for each rating, got shape {found.shape}"
        )
    if (found < 0).any() or (found != np.floor(found)).any():
        raise OptionError(
            f"counts must be non-negative integers, got {found[(found < 0) | (found % 1 != 0)][0]:g}"
        )
    return found
