"""Predictions that differ between two versions of a model, such as before and after quantization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.metrics.stats import Estimate, clopper_pearson, holm
from beaufort.results.comparison import CalibrationDifference, calibration_differences
from beaufort.results.linear import Clusters, Linear, find_clusters
from beaufort.results.predictions import Predictions, SharedPredictions
from beaufort.results.results import Results
from beaufort.suites.conditions import Condition

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ConditionFlips:
    """Predictions of two models that differ under one condition, as fractions of all images.

    Intervals are exact, and not adjusted for the number of conditions. They are over clusters of images if
    there are any.
    """

    condition: Condition
    first: Estimate
    second: Estimate
    """Accuracies."""
    flips: Estimate
    """Images whose most probable class differs."""
    broken: Estimate
    """Right for the first model and wrong for the second."""
    fixed: Estimate
    """Wrong for the first model and right for the second."""
    changed: Estimate
    """Wrong for both, with another class."""
    gap: Estimate | None
    """Accuracy that the second model loses under the condition, minus what it loses on clean images; None for
    clean images, and without them."""
    p_gap: float | None
    """P-value of the hypothesis that the gap is zero, adjusted for all conditions (Holm)."""

    @property
    def agreement(self) -> Estimate:
        """Images whose most probable class is the same."""
        return 1 - self.flips

    @property
    def opens(self) -> bool:
        """Whether the second model loses significantly more accuracy than on clean images."""
        return self.gap is not None and self.gap.value > 0 and (self.p_gap or 0) < 1 - self.gap.level


@dataclass(frozen=True)
class Flip:
    """A prediction that differs between two models."""

    condition: Condition
    first: int
    second: int
    """Most probable classes."""
    kind: str
    """`broken`, `fixed` or `changed`, as in `ConditionFlips`, or `both right` with several valid labels."""


@dataclass(frozen=True)
class FlippedImage:
    """An image on which two models differ under at least one condition."""

    id: str
    label: int
    flips: tuple[Flip, ...]


@dataclass(frozen=True)
class Deployment:
    """How the predictions of two versions of a model differ."""

    first: str
    second: str
    conditions: tuple[ConditionFlips, ...]
    agreement: Estimate
    """Fraction of predictions that agree, the mean over conditions."""
    images: tuple[FlippedImage, ...]
    """Images with a flip, those with most flips first."""
    calibration: tuple[CalibrationDifference, ...]
    """The second model minus the first; intervals are not adjusted."""
    count: int
    """Number of images."""
    level: float

    @property
    def most_flips(self) -> ConditionFlips:
        """The condition with the largest fraction of flips."""
        return max(self.conditions, key=lambda one: one.flips.value)

    @property
    def opening(self) -> tuple[ConditionFlips, ...]:
        """Conditions under which the second model loses significantly more than on clean images."""
        return tuple(one for one in self.conditions if one.opens)


def compare_deployment(
    results: Results,
    models: Sequence[str] | None = None,
    *,
    clusters: Mapping[str, str] | None = None,
    level: float = 0.95,
) -> Deployment:
    """Compare the predictions of two versions of a model on the same images.

    Args:
        results: results of both models.
        models: names of the first (original) and the second (deployed) model; the two of `results` if None.
        clusters: clusters of images that are not independent, as for `score`.
        level: confidence level of all intervals.
    """
    names = list(results.models if models is None else models)
    if len(names) != 2 or names[0] == names[1]:
        raise OptionError(f"a deployment comparison requires two models, got {', '.join(names) or 'none'}")
    shared = SharedPredictions(results, names)
    first, second = (replace(shared[name], model=name) for name in names)
    units = find_clusters(first.ids, clusters)
    flips = flip_flags(first, second)
    return Deployment(
        names[0],
        names[1],
        _conditions(first, second, flips, units, level),
        1 - _form(flips.mean(axis=0)).clustered(units).estimate(level),
        _images(first, second, flips),
        calibration_differences(shared, units, level),
        len(first),
        level,
    )


def flip_flags(first: Predictions, second: Predictions) -> Flags:
    """Return whether the most probable class differs, `(conditions, images)`."""
    flags: Flags = first.top[..., 0] != second.top[..., 0]
    return flags


@dataclass(frozen=True, eq=False)
class LargestFlips:
    """The largest fraction of flips over conditions, for an equivalence test."""

    estimate: Estimate
    condition: Condition
    form: Linear
    """Flips under that condition."""
    adjusted_level: float
    """Level of the intervals that the lower end is the largest of."""


def largest_flips(
    first: Predictions,
    second: Predictions,
    units: Clusters | None = None,
    level: float = 0.95,
    *,
    always_valid: bool = False,
) -> LargestFlips:
    """Return the largest fraction of flips under a condition, with an interval that holds over conditions.

    Two one-sided tests decide about a limit, each with an error of at most `(1 - level) / 2`. That all
    conditions are below it is an intersection-union test: every one must pass, and none is adjusted. That one
    of them is above it is a search among all conditions, and is adjusted for their number (Bonferroni).
    """
    flips = flip_flags(first, second)
    each = 1 - (1 - level) / len(flips)
    forms = [_form(row).clustered(units) for row in flips]
    highs = [form.estimate(level, always_valid=always_valid).high for form in forms]
    lows = [form.estimate(each, always_valid=always_valid).low for form in forms]
    worst = int(np.argmax([form.value for form in forms]))
    value = forms[worst].value
    estimate = Estimate(value, max(lows), max(highs), forms[worst].n, level)
    return LargestFlips(estimate, first.conditions[worst], forms[worst], each)


def _form(flags: NDArray[np.bool_] | NDArray[np.float64]) -> Linear:
    """Return the mean over images of what is from 0 to 1."""
    return Linear.of(0.0, {"": (np.asarray(flags, np.float64)[:, None], np.ones(1))})


def _proportion(flags: Flags, units: Clusters | None, level: float) -> Estimate:
    if units is None:
        return clopper_pearson(int(flags.sum()), len(flags), level)
    return _form(flags).clustered(units).estimate(level)


def _conditions(
    first: Predictions, second: Predictions, flips: Flags, units: Clusters | None, level: float
) -> tuple[ConditionFlips, ...]:
    one, other = first.correct, second.correct
    clean = next((row for row, condition in enumerate(first.conditions) if condition.clean), None)
    gaps: dict[int, Linear] = {}
    if clean is not None:
        gaps = {
            row: _gap(one[[row, clean]], other[[row, clean]]).clustered(units)
            for row, condition in enumerate(first.conditions)
            if not condition.clean
        }
    adjusted = dict(zip(gaps, holm([form.p_value() for form in gaps.values()]).tolist(), strict=True))
    return tuple(
        ConditionFlips(
            condition,
            _proportion(one[row], units, level),
            _proportion(other[row], units, level),
            _proportion(flips[row], units, level),
            _proportion(one[row] & ~other[row], units, level),
            _proportion(~one[row] & other[row], units, level),
            _proportion(flips[row] & ~one[row] & ~other[row], units, level),
            gaps[row].estimate(level) if row in gaps else None,
            adjusted.get(row),
        )
        for row, condition in enumerate(first.conditions)
    )


def _gap(one: Flags, other: Flags) -> Linear:
    """Return the accuracy lost under a condition minus that lost on clean images."""
    weights = np.array([1.0, -1.0])
    forms = [Linear.of(0.0, {name: (hits.T, weights)}) for name, hits in (("one", one), ("other", other))]
    return forms[0] - forms[1]


def _images(first: Predictions, second: Predictions, flips: Flags) -> tuple[FlippedImage, ...]:
    counts = flips.sum(axis=0)
    order = np.argsort(-counts, kind="stable")
    return tuple(
        FlippedImage(
            first.ids[place],
            int(first.labels[place]),
            tuple(_flip(first, second, int(row), int(place)) for row in np.flatnonzero(flips[:, place])),
        )
        for place in order[: np.count_nonzero(counts)]
    )


def _flip(first: Predictions, second: Predictions, row: int, place: int) -> Flip:
    right = bool(first.correct[row, place]), bool(second.correct[row, place])
    kinds = {(True, False): "broken", (False, True): "fixed", (False, False): "changed"}
    before, after = (int(one.top[row, place, 0]) for one in (first, second))
    return Flip(first.conditions[row], before, after, kinds.get(right, "both right"))
