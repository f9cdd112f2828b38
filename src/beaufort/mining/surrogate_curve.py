"""How many surrogates are enough: how hard their shared failures are for models that are none."""

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
"""Largest number of sets of surrogates of one size: all are tried for up to twelve models."""
_RESAMPLES = 1000
_AT_ONCE = 50
_LEVEL = 0.95

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class HardnessPoint:
    """How hard images on which so many surrogates fail are for the models that are not surrogates."""

    surrogates: int
    subsets: int
    """Different sets of surrogates that were tried and share a failure."""
    possible: int
    """Sets of this size that there are."""
    accuracy: Estimate
    """Of the other models on what a set keeps: the mean over models, then over sets."""
    lowest: float
    """Of the sets that were tried."""
    highest: float
    kept: float
    """Share of all images that a set keeps, the mean over sets that share a failure."""
    step: Estimate | None
    """How much lower it is than with one surrogate less; None for one surrogate."""


@dataclass(frozen=True, eq=False)
class _Tried:
    """Sets of surrogates of one size, whichever share a failure."""

    sets: list[tuple[int, ...]]
    usable: NDArray[np.bool_]
    """Of all sets of the size, or of all orders of the models, whether it is one of these."""
    kept: Floats
    """`(patterns, sets)`: 1 where all of a set fail."""
    held: int
    """Models that are outside of a set."""
    unseen: list[tuple[float, float]]
    """For each kind of image that nobody has seen: how much of it a set keeps, and its accuracy there."""


def hardness_curve(
    failed: NDArray[np.bool_], *, subsets: int = SUBSETS, seed: int = 0
) -> tuple[HardnessPoint, ...]:
    """Accuracy of held-out models on what 1, 2, 3 … surrogates all fail on, whichever models are surrogates.

    Every model takes every part: of each set of models, the rest are held out. If there are too many sets,
    models are put into random orders, and the first 1, 2, 3 … of each are the surrogates, so that a step adds
    a model to the same ones. Sets in which no image is left are left out, and the curve ends where all are.

    Intervals are for these models, over resamples of images and, where they were drawn, of orders. Each
    resample has one image that nobody has seen, in turn of every kind: some number of models fail on it. Few
    images thus have wide intervals, although resamples of them only repeat what was seen.

    Args:
        failed: `(models, images)`, whether a model fails on an image.
        subsets: largest number of sets of one size; so many orders are drawn by the seed if there are more.
        seed: of the orders and of the resamples.
    """
    models, images = failed.shape
    if models < 2:
        raise MiningError(f"a curve needs at least two models, got {models}")
    # Images on which the same models fail count alike, and there are far fewer patterns than images.
    patterns, counts = np.unique(failed.T, axis=0, return_counts=True)
    right = (models - patterns.sum(axis=1)).astype(np.float32)
    drawn = orders_are_drawn(models, subsets)
    orders = _orders(models, subsets, seed) if drawn else None
    tried = list(_tried(patterns, orders))
    found: list[list[NDArray[np.float64]]] = [[] for _ in tried]
    for weights, times in _resampled(counts, subsets if drawn else 0, seed):
        for place, some in enumerate(tried):
            found[place].append(_mean_accuracies(some, _sums(some, weights, right), times))
    values = [np.concatenate(some, axis=1) for some in found]
    points = []
    for place, some in enumerate(tried):
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
    """Whether there are too many sets of surrogates to try all.

    >>> orders_are_drawn(12), orders_are_drawn(13)
    (False, True)
    """
    return math.comb(models, models // 2) > subsets


def _orders(models: int, count: int, seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [rng.sample(range(models), models) for _ in range(count)]


def _tried(patterns: NDArray[np.bool_], orders: list[list[int]] | None) -> Iterator[_Tried]:
    """For each number of surrogates the sets of them that share a failure."""
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
        yield _Tried(
            [one for one, use in zip(sets, usable.tolist(), strict=True) if use],
            usable,
            kept[:, usable].astype(np.float32),
            models - size,
            [_unseen(models, size, failures) for failures in range(models + 1)],
        )


def _unseen(models: int, size: int, failures: int) -> tuple[float, float]:
    """For an image on which so many models fail: how likely a set keeps it, and its accuracy then."""
    if failures < size:
        return 0.0, 0.0
    share = math.comb(models - size, failures - size) / math.comb(models, failures)
    return share, (models - failures) / (models - size)


def _resampled(
    counts: NDArray[np.int64], orders: int, seed: int
) -> Iterator[tuple[Floats, NDArray[np.float64] | None]]:
    """How often patterns and drawn orders, if any, occur, some resamples at a time; first as they are."""
    yield counts[None].astype(np.float32), np.ones((1, orders)) if orders else None
    rng = np.random.default_rng(seed)
    images = int(counts.sum())
    for _ in range(_RESAMPLES // _AT_ONCE):
        weights = rng.multinomial(images, counts / images, size=_AT_ONCE).astype(np.float32)
        times = rng.multinomial(orders, np.full(orders, 1 / orders), size=_AT_ONCE) if orders else None
        yield weights, None if times is None else times.astype(np.float64)


def _mean_accuracies(
    tried: _Tried, sums: tuple[Floats, Floats], times: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """`(kinds of unseen images, resamples)`: the mean over sets; NaN for a resample without any image."""
    often = np.ones((1, 1)) if times is None else times[:, tried.usable]
    means = []
    for unseen in tried.unseen:
        each = _set_accuracies(sums, unseen)
        there = ~np.isnan(each) * often
        with np.errstate(invalid="ignore"):
            means.append((np.nan_to_num(each) * often).sum(axis=1) / there.sum(axis=1))
    return np.stack(means)


def _sums(tried: _Tried, weights: Floats, right: Floats) -> tuple[Floats, Floats]:
    """`(resamples, sets)`: images that each set keeps, and right answers to them by a held-out model."""
    correct: Floats = (weights * (right / np.float32(tried.held))) @ tried.kept
    return weights @ tried.kept, correct


def _set_accuracies(
    sums: tuple[Floats, Floats], unseen: tuple[float, float] = (0.0, 0.0)
) -> NDArray[np.float64]:
    """`(resamples, sets)`: the mean accuracy of the models outside each set on what it keeps, or NaN."""
    share, accuracy = (np.float32(x) for x in unseen)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = ((sums[1] + share * accuracy) / (sums[0] + share)).astype(np.float64)
    return found


def _percentiles(values: NDArray[np.float64], images: int) -> Estimate:
    """The first value with percentiles of the others; never narrower than so many images allow at 0 or 1.

    Resamples of images that all were right, or all wrong, only repeat that: the exact interval of a share of
    0 or 1 is the least that can be said then.
    """
    value, low, high = _ends(values)
    if np.ptp(values[0]) == 0:
        exact = clopper_pearson(round(value * images), images, _LEVEL)
        low, high = min(low, exact.low), max(high, exact.high)
    return Estimate(value, low, high, images, _LEVEL)


def _step(values: NDArray[np.float64], images: int) -> Estimate:
    """A difference of shares, likewise."""
    value, low, high = _ends(values)
    margin = clopper_pearson(0, images, _LEVEL).high if np.ptp(values[0]) == 0 else 0.0
    return Estimate(value, max(-1.0, low - margin), min(1.0, high + margin), images, _LEVEL)


def _ends(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """The value, and the lowest and highest percentile of all kinds of unseen images."""
    value, tail = float(values[0, 0]), (1 - _LEVEL) / 2
    low, high = np.nanquantile(values[:, 1:], [tail, 1 - tail], axis=1)
    return value, min(value, float(low.min())), max(value, float(high.max()))
