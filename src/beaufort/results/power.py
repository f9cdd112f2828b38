"""How many images a gate needs to detect a drop, and to pass a model that is as good."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort._core.text import counted
from beaufort._core.validation import validate_number
from beaufort.metrics import BASELINE_NAMES, metrics
from beaufort.results._match import ResultsError
from beaufort.results.baseline import NO_BASELINE, published_baseline
from beaufort.results.metric_forms import columns_of, find_divisor, metric_forms
from beaufort.results.results import Results, join_results
from beaufort.results.scoring import score
from beaufort.results.verdict import MAX_IMAGES, check_own_baseline, drop_form, find_metric, notes_on_metric
from beaufort.suites import Suite

DIFFER = 0.45
"""On how many images two models differ (one is right, the other wrong), over the number for two models that
have nothing in common, if nothing else is known."""

ALIKE = 0.1
"""The correlation of two models' difference between two versions of one image, if nothing else is known."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spread:
    """What one image adds to the drop of a metric between two models on the same images."""

    metric: str
    source: str
    """Where the numbers come from, in words."""
    weights: Floats
    """Of each condition: points of the metric for a point of accuracy under it."""
    differ: Floats
    """Of each condition: the fraction of images on which the two differ; 0 where it was measured instead."""
    alike: float
    """The correlation of the difference between two versions of one image."""
    bounds: tuple[float, float]
    """The least and the most that an image can add."""
    measured: float = 0.0
    """The standard deviation of what an image, or a cluster, adds, where it was measured."""
    images: float = 1.0
    """Images in a unit: 1, or the mean size of a cluster."""
    notes: tuple[str, ...] = ()
    """As of a gate: why the metric is not the suite's first one, for instance."""

    def deviation(self, drop: float) -> float:
        """The standard deviation of what an image adds if the true drop is `drop`.

        Models differ on at least as many images as the drop is large.
        """
        total = float(self.weights.sum())
        lost = min(1.0, abs(drop / total)) if total > 1e-9 else 0.0  # what relative mCE weighs sums to zero
        each = self.weights * np.sqrt(np.maximum(self.differ, lost) - lost**2)
        apart, together = float((each**2).sum()), float(each.sum()) ** 2
        return max(self.measured, math.sqrt((1 - self.alike) * apart + self.alike * together))


def spread_of_results(
    results: Results,
    reference: Results | None = None,
    *,
    metric: str | None = None,
    baseline: str | None = None,
    clusters: Mapping[str, str] | None = None,
    differ: float | None = None,
    alike: float | None = None,
) -> Spread:
    """The spread between two models, or between one and another that is as good.

    Args:
        results: one model's.
        reference: the other's. If None, the model's accuracy is known and the rest assumed, as for
            `spread_of_accuracies`.
        metric: as for `gate`.
        baseline: what mCE divides by, as for `score`.
        clusters: images that are not independent, as for `score`; needs a reference.
        differ: as for `spread_of_accuracies`; only without a reference.
        alike: likewise.
    """
    _check_kind(results.suite)
    if reference is None and clusters is not None:
        raise OptionError("clusters need two models: what a cluster adds to their difference is measured")
    if reference is not None and (differ is not None or alike is not None):
        raise OptionError("differ and alike are measured between two models and cannot be given")
    joined = results if reference is None else join_results([results, reference])
    if reference is not None and len(joined.models) != 2:
        raise ResultsError(f"two different models are needed, got {joined.models[0]} twice")
    check_own_baseline(joined, metric, baseline)
    models = joined.models[: 1 if reference is None else 2]
    scores = score(joined, baseline=baseline, models=models, clusters=clusters, calibration=False)
    name, notes = find_metric(scores, metric), notes_on_metric(scores, metric)
    on = f"{counted(scores.images, 'image')} of {scores.results.dataset}"
    if reference is None:
        one = scores.models[0]
        clean = None if one.clean is None else one.clean.value
        accuracies = [1 - error.value for error in one.corruptions.values()]
        if clean is not None and not accuracies:  # nothing is done to the images
            accuracies = [clean]
        weights = scores.pairs.forms[one.model][name].weights[one.model]
        stated = _Stated(float(np.mean(accuracies)), clean, differ, alike)
        return stated.spread(results.suite, name, weights, f"the accuracy of {one.model} on {on}", notes)
    new, old = models
    form = drop_form(scores, name, new, old)
    if (deviation := form.values.std(ddof=1) if form.n > 1 else 0.0) == 0:
        same = f"differ by the same on each of {form.n:,} images"
        why = "are compared on one image" if form.n == 1 else same
        raise ResultsError(
            f"{new} and {old} {why}: there is no spread to plan with; state accuracies instead"
        )
    weights = _by_condition(scores.suite, form.weights[new])
    return Spread(
        name,
        f"measured between {new} and {old} on {on}",
        weights,
        differ=np.zeros(len(weights)),
        alike=ALIKE,
        bounds=form.bounds,
        measured=float(deviation),
        images=scores.images / scores.clusters,
        notes=notes,
    )


def spread_of_accuracies(
    suite: Suite,
    accuracy: float,
    *,
    clean: float | None = None,
    metric: str | None = None,
    baseline: str | None = None,
    differ: float | None = None,
    alike: float | None = None,
) -> Spread:
    """The spread between two models that are about as good as stated.

    Args:
        suite: the conditions, on one dataset.
        accuracy: the mean over corrupted conditions; of a part with a counterpart, over all.
        clean: on clean images, if they count in the metric; `accuracy` if None.
        metric: the suite's first one that can be computed if None.
        baseline: what mCE divides by, if it is published; the suite's own if None.
        differ: the fraction of images on which one of the two is right and the other wrong; if None, `DIFFER`
            times that of two models that have nothing in common.
        alike: the correlation of their difference between two versions of one image; `ALIKE` if None.
    """
    _check_kind(suite)
    clean = None if suite.counterpart else clean  # its clean images are those of another dataset
    for name, value in (("accuracy", accuracy), ("clean", clean)):
        if value is not None and not 0 < value < 1:
            raise OptionError(f"{name} must lie between 0 and 1, got {value!r}")
    columns = columns_of(suite)
    divisor = None
    wanted = suite.baseline if baseline is None else baseline
    needed = baseline is not None or metric is None or (metric in metrics and metrics[metric].unit == "ratio")
    if needed and wanted is not None and wanted != NO_BASELINE:
        if wanted not in BASELINE_NAMES:
            problem = unknown_message("published baseline", wanted, BASELINE_NAMES)
            raise OptionError(f"{problem}; {NO_BASELINE!r} stands for no baseline")
        divisor = find_divisor(published_baseline(suite, wanted), columns, None)
    forms = metric_forms(suite, columns, "new", np.zeros((1, len(columns)), np.float32), divisor)
    name = next(iter(forms)) if metric is None else metric
    if name not in forms:
        raise OptionError(unknown_message(f"metric of {suite}", name, forms))
    where = "the stated accuracy" if clean is None else "the stated accuracies"
    return _Stated(accuracy, clean, differ, alike).spread(suite, name, forms[name].weights["new"], where)


@dataclass(frozen=True)
class _Stated:
    """What is stated, or known, about two models that are equally good."""

    accuracy: float
    clean: float | None
    differ: float | None
    alike: float | None

    def spread(
        self, suite: Suite, metric: str, weights: Floats, where: str, notes: tuple[str, ...] = ()
    ) -> Spread:
        """The spread that follows."""
        for name in ("differ", "alike"):
            if (value := getattr(self, name)) is not None:
                validate_number(name, value, 0, 1)
        each = _by_condition(suite, weights * (1 if metrics[metric].better == "lower" else -1))
        accuracies = np.full(len(each), self.accuracy)
        if suite.clean and self.clean is not None:
            accuracies[0] = self.clean
        apart = 2 * DIFFER * accuracies * (1 - accuracies)
        if self.differ is not None:
            apart = np.full(len(each), self.differ)
        high = float(np.abs(each).sum())
        alike = ALIKE if self.alike is None else self.alike
        source = (
            f"from {where}, if {100 * float(apart.mean()):.1f} % of the predictions of two models differ and "
            f"their differences correlate with {alike:g} between versions of one image"
        )
        return Spread(metric, source, each, apart, alike, (-high, high), notes=notes)


def _check_kind(suite: Suite) -> None:
    if suite.parts:
        raise OptionError(
            f"{suite} has several datasets ({', '.join(part.name for part in suite.parts)}); a gate judges "
            "each, so plan for each"
        )
    if suite.sequences:
        raise OptionError(f"{suite} has sequences; a plan needs a suite of corruptions or shifts")


def _by_condition(suite: Suite, weights: Floats) -> Floats:
    """Weights of the clean images and of each corruption, divided among its severities."""
    each = Counter(condition.corruption for condition in suite.conditions())
    counts = np.array([each[name] for name in columns_of(suite)])
    return np.repeat(weights / counts, counts)


@dataclass(frozen=True)
class ImagePlan:
    """How many images, or clusters of them, are needed; None if a billion are not enough."""

    metric: str
    drop: float
    max_drop: float
    probability: float
    to_fail: int | None
    """So that a gate fails a model whose true drop is `drop`."""
    to_pass: int | None
    """So that a gate passes a model that is as good as the old one; None if no drop is allowed."""


def plan_images(
    spread: Spread, *, drop: float, max_drop: float = 0.01, probability: float = 0.8, level: float = 0.95
) -> ImagePlan:
    """How many images let a gate with `max_drop` decide correctly with some probability.

    Args:
        spread: from `spread_of_results` or `spread_of_accuracies`.
        drop: the true drop that is to be noticed, as a fraction.
        max_drop: what the gate allows.
        probability: of "failed" if the true drop is `drop`, and of "passed" if it is zero.
        level: of the gate's interval.
    """
    if not 0 <= max_drop < drop:
        raise OptionError(f"drop must be above max_drop, got drop={drop!r} and max_drop={max_drop!r}")
    if not 0 < probability < 1:
        raise OptionError(f"probability must lie between 0 and 1, got {probability!r}")
    low, high = spread.bounds
    if drop >= high:
        raise OptionError(f"drop must be below {high:g}, all that can be lost, got {drop!r}")
    ends = NormalDist().inv_cdf((1 + level) / 2), NormalDist().inv_cdf(probability)
    fails = _needed(spread.deviation(drop), drop - max_drop, drop - low, *ends)
    passes = _needed(spread.deviation(0.0), max_drop, high, *ends) if max_drop else None
    return ImagePlan(spread.metric, drop, max_drop, probability, fails, passes)


def _needed(deviation: float, distance: float, worst: float, z: float, luck: float) -> int | None:
    """How many images bring the end of an interval across a limit.

    The end is as far from the mean as the quantile of a weighting of the images and one more, the worst
    possible: normal for the images, exponential for that one, and together by Cornish and Fisher's expansion.
    """

    def enough(n: int) -> bool:
        extra = worst / n
        width = math.hypot(deviation / math.sqrt(n), extra)
        skew = 2 * (extra / width) ** 3
        reach = extra + width * (z + skew * (z * z - 1) / 6)
        return reach + luck * deviation / math.sqrt(n) <= distance

    high = 2
    while not enough(high):
        high *= 2
        if high > MAX_IMAGES:
            return None
    low = 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
