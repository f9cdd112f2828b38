"""How sure a trend is: bootstrap intervals over the models that it was fitted on."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort.metrics.scales import get_scale
from beaufort.metrics.stats import validate_level
from beaufort.testbed.fit import RESAMPLES, SEED, Interval, Knee, Line, Trend

Floats = NDArray[np.float64]

FEW = 20
"""Models below which bootstrap intervals are too narrow; docs/testbed.md has a simulation."""


def band(
    trend: Trend,
    percent: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Floats, Floats]:
    """The bootstrap band of a trend at some standard accuracies, in percent.

    Percentiles are conservative: the lower end is rounded down to one of the draws, the upper one up.
    """
    low, high = _ends(trend.predict_draws(percent, resamples, seed), level)
    scale = get_scale(trend.scale)
    return scale.inverse(low), scale.inverse(high)


def coefficient_intervals(
    line: Line, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[Interval, Interval]:
    """Bootstrap intervals of slope and intercept."""
    low, high = _ends(line.draws(resamples, seed), level)
    return Interval(float(low[0]), float(high[0])), Interval(float(low[1]), float(high[1]))


def _ends(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    tail = (1 - validate_level(level)) / 2
    last = len(drawn) - 1
    low, high = math.floor(tail * last), math.ceil((1 - tail) * last)
    ordered = np.partition(drawn, (low, high), axis=0)
    return ordered[low], ordered[high]


def trend_notes(trend: Trend) -> tuple[str, ...]:
    """What a reader of a trend must know: models that were left out, and too few for the bootstrap."""
    notes = []
    if trend.excluded:
        why = "for an accuracy of 0 or 100"
        if isinstance(trend, Knee):
            why += ", or because the images were filtered against it"
        notes.append(f"left out {why}: {', '.join(trend.excluded)}")
    return (*notes, *few_models(trend))


def few_models(trend: Trend) -> tuple[str, ...]:
    """A note if a line has too few models for the bootstrap."""
    fewest = min(trend.left.n, trend.right.n) if isinstance(trend, Knee) else trend.n
    if fewest >= FEW:
        return ()
    return (f"a line through {fewest} models: bootstrap intervals of so few are too narrow",)
