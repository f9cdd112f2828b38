"""Whether failures carry over: to models that did not choose the images, and from one model to another."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from beaufort.mining.plan import MiningError
from beaufort.mining.selection import MinedSelection
from beaufort.mining.verdicts import Verdicts
from beaufort.stats import Estimate, clopper_pearson

__all__ = [
    "HardnessPoint",
    "ModelHardness",
    "NuisanceFailures",
    "TransferCell",
    "hardness",
    "hardness_curve",
    "nuisance_failures",
    "transfer_matrix",
]

SUBSETS = 200
"""Largest number of sets of surrogates of one size; a seeded sample if there are more."""
_RESAMPLES = 1000
_AT_ONCE = 50
_LEVEL = 0.95


@dataclass(frozen=True)
class ModelHardness:
    """One model on all images, and on those that were kept."""

    model: str
    surrogate: bool
    unfiltered: Estimate
    kept: Estimate | None
    """None if nothing was kept. Of a surrogate it is low by choice, and says nothing about the model."""


@dataclass(frozen=True)
class HardnessPoint:
    """How hard shared failures of so many surrogates are for the models that are none."""

    surrogates: int
    subsets: int
    """Sets of surrogates that were tried and share a failure."""
    possible: int
    """Sets of this size that there are."""
    accuracy: Estimate
    """Of the other models on what a set keeps: the mean over models, then over sets."""
    lowest: float
    """Of the sets that were tried."""
    highest: float
    kept: float
    """Share of all images that a set keeps, the mean over sets."""
    step: Estimate | None
    """How much lower it is than with one surrogate less; None for one surrogate."""


@dataclass(frozen=True)
class TransferCell:
    """The failures of one model that another one shares."""

    source: str
    target: str
    share: Estimate | None
    """None if the source fails on no image."""


@dataclass(frozen=True)
class NuisanceFailures:
    """How often one model fails with one nuisance."""

    kind: str
    nuisance: str
    """Empty for all of its kind."""
    model: str
    failures: Estimate


def hardness(selection: MinedSelection) -> tuple[ModelHardness, ...]:
    """Every model on the unfiltered and on the kept images; surrogates are marked, and come last."""
    verdicts, kept = selection.verdicts, selection.kept
    found = []
    for name in (*selection.others, *selection.surrogates):
        right = ~verdicts.failed[verdicts.row(name)]
        found.append(
            ModelHardness(
                name, name in selection.surrogates, _share(right), _share(right[kept]) if kept.any() else None
            )
        )
    return tuple(found)


def hardness_curve(
    failed: NDArray[np.bool_], *, subsets: int = SUBSETS, seed: int = 0
) -> tuple[HardnessPoint, ...]:
    """Accuracy of held-out models on what 1, 2, 3 … surrogates all fail on, whichever models are surrogates.

    Every model takes every part: of each set of models, the rest are held out. Intervals are over images, for
    these models; sets in which no image is left are left out, and the curve ends where all are.

    Args:
        failed: `(models, images)`, whether a model fails on an image.
        subsets: largest number of sets of one size; a seeded sample of them if there are more.
        seed: of the sample and of the resamples.
    """
    models, images = failed.shape
    if models < 2:
        raise MiningError(f"a curve needs at least two models, got {models}")
    tried = list(_tried(failed, subsets, seed))
    values = [np.empty(0)] * len(tried)
    for weights in _resampled(images, seed):
        for place, (chosen, shared) in enumerate(tried):
            means = _held_out(failed, chosen, shared, weights)
            there = ~np.isnan(means)  # a resample may leave a set without images
            mean = np.where(there, means, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
            values[place] = np.concatenate([values[place], mean])
    points = []
    for place, (chosen, shared) in enumerate(tried):
        each = _held_out(failed, chosen, shared, np.ones((1, images), np.float32))[0]
        left = int(shared.any(axis=0).sum())
        points.append(
            HardnessPoint(
                place + 1,
                len(chosen),
                math.comb(models, place + 1),
                _percentiles(values[place], left),
                float(each.min()),
                float(each.max()),
                float(shared.mean()),
                _step(values[place - 1] - values[place], left) if place else None,
            )
        )
    return tuple(points)


def transfer_matrix(selection: MinedSelection) -> tuple[TransferCell, ...]:
    """For every two models the share of the first one's failures, among all images, that the second has."""
    verdicts = selection.verdicts
    cells = []
    for source in verdicts.models:
        own = verdicts.failed[verdicts.row(source)]
        for target in verdicts.models:
            if target != source:
                shared = verdicts.failed[verdicts.row(target)][own]
                cells.append(TransferCell(source, target, _share(shared) if own.any() else None))
    return tuple(cells)


def nuisance_failures(
    verdicts: Verdicts, nuisances: Sequence[tuple[str, str]]
) -> tuple[NuisanceFailures, ...]:
    """How often each model fails, for each kind and each nuisance.

    Args:
        verdicts: what models said.
        nuisances: the kind and the nuisance of each image; empty where it is not known.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, (kind, nuisance) in enumerate(nuisances):
        groups.setdefault((kind, ""), []).append(place)
        if nuisance:
            groups.setdefault((kind, nuisance), []).append(place)
    return tuple(
        NuisanceFailures(kind, nuisance, model, _share(verdicts.failed[verdicts.row(model)][places]))
        for (kind, nuisance), places in sorted(groups.items())
        for model in verdicts.models
    )


def _share(yes: NDArray[np.bool_]) -> Estimate:
    return clopper_pearson(int(yes.sum()), len(yes))


def _tried(
    failed: NDArray[np.bool_], most: int, seed: int
) -> Iterator[tuple[list[tuple[int, ...]], NDArray[np.bool_]]]:
    """For each number of surrogates the sets of them that share a failure, and `(sets, images)`, which."""
    for size in range(1, len(failed)):
        chosen = _subsets(len(failed), size, most, seed)
        shared = np.stack([failed[list(one)].all(axis=0) for one in chosen])
        usable: NDArray[np.bool_] = np.any(shared, axis=1)
        if not usable.any():
            return
        yield [one for one, use in zip(chosen, usable, strict=True) if use], shared[usable]


def _resampled(images: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """How often each image is drawn, `(resamples, images)`, some at a time; first each image once."""
    yield np.ones((1, images), np.float32)
    rng = np.random.default_rng(seed)
    for _ in range(_RESAMPLES // _AT_ONCE):
        drawn = rng.integers(images, size=(_AT_ONCE, images)) + np.arange(_AT_ONCE)[:, None] * images
        counts = np.bincount(drawn.ravel(), minlength=_AT_ONCE * images)
        yield counts.reshape(_AT_ONCE, images).astype(np.float32)


def _subsets(models: int, size: int, most: int, seed: int) -> list[tuple[int, ...]]:
    if math.comb(models, size) <= most:
        return list(combinations(range(models), size))
    rng = random.Random(f"{seed} {size}")
    found: set[tuple[int, ...]] = set()
    while len(found) < most:
        found.add(tuple(sorted(rng.sample(range(models), size))))
    return sorted(found)


def _held_out(
    failed: NDArray[np.bool_],
    chosen: Sequence[tuple[int, ...]],
    shared: NDArray[np.bool_],
    weights: NDArray[np.float32],
) -> NDArray[np.float64]:
    """`(resamples, sets)`: the mean accuracy of the models outside each set on what it keeps, or NaN."""
    kept = shared.astype(np.float32).T
    count = weights @ kept
    right = np.zeros_like(count)
    for model in range(len(failed)):
        outside = np.array([model not in one for one in chosen], np.float32)
        right += (weights * ~failed[model]) @ kept * outside
    held = np.array([len(failed) - len(one) for one in chosen])
    with np.errstate(invalid="ignore", divide="ignore"):
        means: NDArray[np.float64] = (right / count / held).astype(np.float64)
    return means


def _percentiles(values: NDArray[np.float64], images: int) -> Estimate:
    """The first value with percentiles of the others; never narrower than so many images allow at 0 or 1.

    Resamples of images that all were right, or all wrong, only repeat that: the exact interval of a share of
    0 or 1 is the least that can be said then.
    """
    value, low, high = _ends(values)
    if low == high:
        exact = clopper_pearson(round(value * images), images, _LEVEL)
        low, high = min(low, exact.low), max(high, exact.high)
    return Estimate(value, low, high, images, _LEVEL)


def _step(values: NDArray[np.float64], images: int) -> Estimate:
    """A difference of shares, likewise."""
    value, low, high = _ends(values)
    margin = clopper_pearson(0, images, _LEVEL).high if low == high else 0.0
    return Estimate(value, low - margin, high + margin, images, _LEVEL)


def _ends(values: NDArray[np.float64]) -> tuple[float, float, float]:
    tail = (1 - _LEVEL) / 2
    low, high = np.quantile(values[1:], [tail, 1 - tail])
    return float(values[0]), float(low), float(high)
