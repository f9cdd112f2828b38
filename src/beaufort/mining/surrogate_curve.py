"""Accuracy of held-out models on shared failures, as a function of the number of surrogates."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats import Estimate, clopper_pearson
from beaufort.mining.plan import MiningError

SUBSETS = 1000
"""Maximum number of sets of surrogates of one size. Up to twelve models, all sets are evaluated."""
_RESAMPLES = 1000
_AT_ONCE = 50
_LEVEL = 0.95

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class HardnessPoint:
    """Accuracy of held-out models on images on which a number of surrogates all fail."""

    surrogates: int
    subsets: int
    """Number of distinct evaluated sets of surrogates that share at least one failure."""
    possible: int
    """Number of all sets of this size."""
    accuracy: Estimate
    """Accuracy of the held-out models on the images that a set keeps: mean over models, then over sets."""
    lowest: float
    """Lowest accuracy among the evaluated sets."""
    highest: float
    kept: float
    """Fraction of all images that a set keeps, averaged over sets that share a failure."""
    step: Estimate | None
    """Decrease of the accuracy compared with one surrogate fewer; None for one surrogate."""


@dataclass(frozen=True, eq=False)
class _SurrogateSets:
    """The evaluated sets of surrogates of one size that share at least one failure."""

    sets: list[tuple[int, ...]]
    usable: NDArray[np.bool_]
    """For all sets of the size, or all orders of the models: whether the set shares a failure."""
    kept: Floats
    """`(patterns, sets)`: 1 if all surrogates of the set fail."""
    held_out: int
    """Number of models outside a set."""
    unseen: list[tuple[float, float]]
    """Probability that a set keeps an unseen image on which 0, 1, 2 … models fail, and its accuracy."""


def hardness_curve(
    failed: NDArray[np.bool_], *, subsets: int = SUBSETS, seed: int = 0
) -> tuple[HardnessPoint, ...]:
    """Return the accuracy of held-out models on images on which 1, 2, 3 … surrogates all fail.

    Each model takes both roles: for every set of surrogates, the other models are held out. If there are too
    many sets, random orders of the models are drawn and the first 1, 2, 3 … models of each order are the
    surrogates, so that each step adds one model to a set. Sets without a shared failure are left out, and the
    curve ends when no set is left.

    Intervals are for these models, from resamples of images and, if drawn, of orders. Because resamples of a
    few images only repeat what was observed, one unseen image is added to each resample. The interval covers
    every number of models that may fail on it, and is therefore wide for few images.

    Args:
        failed: `(models, images)`, whether a model fails on an image.
        subsets: maximum number of sets of one size; if there are more, this number of orders is drawn.
        seed: seed of the orders and the resamples.
    """
    models, images = failed.shape
    if models < 2:
        raise MiningError(f"a curve needs at least two models, got {models}")
    # Images on which the same models fail are equivalent, and there are far fewer patterns than images.
    patterns, counts = np.unique(failed.T, axis=0, return_counts=True)
    right = (models - patterns.sum(axis=1)).astype(np.float32)
    drawn = orders_are_drawn(models, subsets)
    orders = _orders(models, subsets, seed) if drawn else None
    by_size = list(_surrogate_sets(patterns, orders))
    found: list[list[NDArray[np.float64]]] = [[] for _ in by_size]
    for weights, times in _resampled(counts, subsets if drawn else 0, seed):
        for place, some in enumerate(by_size):
            found[place].append(_mean_accuracies(some, _sums(some, weights, right), times))
    values = [np.concatenate(some, axis=1) for some in found]
    points = []
    for place, some in enumerate(by_size):
        each = _set_accuracies(_sums(some, counts[None].astype(np.float32), right))[0]
        left = int(counts[some.kept.any(axis=1)].sum())
        points.append(
            HardnessPoint(
                place + 1,
                len(set(some.sets)),
                math.comb(models, place + 1),
                _percentiles(values[place], left),
                float(each.min()),
                float(each.max()),
                float((counts @ some.kept).mean() / images),
                _step(values[place - 1] - values[place], left) if place else None,
            )
        )
    return tuple(points)


def orders_are_drawn(models: int, subsets: int = SUBSETS) -> bool:
    """Return whether there are too many sets of surrogates to evaluate all.

    >>> orders_are_drawn(12), orders_are_drawn(13)
    (False, True)
    """
    return math.comb(models, models // 2) > subsets


def _orders(models: int, count: int, seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [rng.sample(range(models), models) for _ in range(count)]


def _surrogate_sets(patterns: NDArray[np.bool_], orders: list[list[int]] | None) -> Iterator[_SurrogateSets]:
    """Yield the sets that share a failure, for each number of surrogates."""
    models = patterns.shape[1]
    for size in range(1, models):
        if orders is None:
            sets = list(combinations(range(models), size))
        else:
            sets = [tuple(sorted(order[:size])) for order in orders]
        kept = np.stack([patterns[:, one].all(axis=1) for one in sets], axis=1)
        usable: NDArray[np.bool_] = np.any(kept, axis=0)
        if not usable.any():
            return
        yield _SurrogateSets(
            [one for one, use in zip(sets, usable.tolist(), strict=True) if use],
            usable,
            kept[:, usable].astype(np.float32),
            models - size,
            [_unseen(models, size, failures) for failures in range(models + 1)],
        )


def _unseen(models: int, size: int, failures: int) -> tuple[float, float]:
    """Return the probability that a set keeps an image on which `failures` models fail, and its accuracy."""
    if failures < size:
        return 0.0, 0.0
    fraction = math.comb(models - size, failures - size) / math.comb(models, failures)
    return fraction, (models - failures) / (models - size)


def _resampled(
    counts: NDArray[np.int64], orders: int, seed: int
) -> Iterator[tuple[Floats, NDArray[np.float64] | None]]:
    """Yield counts of patterns and drawn orders: first the observed ones, then batches of resamples."""
    yield counts[None].astype(np.float32), np.ones((1, orders)) if orders else None
    rng = np.random.default_rng(seed)
    images = int(counts.sum())
    for _ in range(_RESAMPLES // _AT_ONCE):
        weights = rng.multinomial(images, counts / images, size=_AT_ONCE).astype(np.float32)
        times = rng.multinomial(orders, np.full(orders, 1 / orders), size=_AT_ONCE) if orders else None
        yield weights, None if times is None else times.astype(np.float64)


def _mean_accuracies(
    surrogates: _SurrogateSets, sums: tuple[Floats, Floats], times: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return means over sets, `(kinds of unseen images, resamples)`; NaN for a resample without images."""
    weights = np.ones((1, 1)) if times is None else times[:, surrogates.usable]
    means = []
    for unseen in surrogates.unseen:
        each = _set_accuracies(sums, unseen)
        defined = ~np.isnan(each) * weights
        with np.errstate(invalid="ignore"):
            means.append((np.nan_to_num(each) * weights).sum(axis=1) / defined.sum(axis=1))
    return np.stack(means)


def _sums(surrogates: _SurrogateSets, weights: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Return the images that each set keeps, and how many a held-out model gets right."""
    correct: Floats = (weights * (right / np.float32(surrogates.held_out))) @ surrogates.kept
    return weights @ surrogates.kept, correct


def _set_accuracies(
    sums: tuple[Floats, Floats], unseen: tuple[float, float] = (0.0, 0.0)
) -> NDArray[np.float64]:
    """Return the mean accuracy of the held-out models on kept images, `(resamples, sets)`; NaN for none."""
    fraction, accuracy = (np.float32(x) for x in unseen)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (sums[1] + fraction * accuracy) / (sums[0] + fraction)
    return np.asarray(found, np.float64)


def _percentiles(values: NDArray[np.float64], images: int) -> Estimate:
    """Return the first value with percentiles of the others.

    If all images are right, or all wrong, resamples do not vary, and the exact interval is used.
    """
    value, low, high = _ends(values)
    if np.ptp(values[0]) == 0:
        exact = clopper_pearson(round(value * images), images, _LEVEL)
        low, high = min(low, exact.low), max(high, exact.high)
    return Estimate(value, low, high, images, _LEVEL)


def _step(values: NDArray[np.float64], images: int) -> Estimate:
    """Return a difference of fractions with percentiles, like `_percentiles`."""
    value, low, high = _ends(values)
    margin = clopper_pearson(0, images, _LEVEL).high if np.ptp(values[0]) == 0 else 0.0
    return Estimate(value, max(-1.0, low - margin), min(1.0, high + margin), images, _LEVEL)


def _ends(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the value, and the lowest and highest percentile over all kinds of unseen images."""
    value, tail = float(values[0, 0]), (1 - _LEVEL) / 2
    low, high = np.nanquantile(values[:, 1:], [tail, 1 - tail], axis=1)
    return value, min(value, float(low.min())), max(value, float(high.max()))
