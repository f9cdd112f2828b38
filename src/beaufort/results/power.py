"""Planning: how many images a gate needs to detect a drop and to pass an equally good model."""

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
from beaufort._core.validation import validate_fraction, validate_number
from beaufort.metrics import BASELINE_NAMES, metrics
from beaufort.metrics.stats import paired_half_width
from beaufort.results._match import ResultsError
from beaufort.results.baseline import NO_BASELINE, published_baseline
from beaufort.results.metric_forms import columns_of, find_divisor, metric_forms
from beaufort.results.results import Results
from beaufort.results.verdict import MAX_IMAGES, drop_form, score_pair
from beaufort.suites import Suite

DIFFER = 0.45
"""Default fraction of images on which two models differ (one is right, the other wrong), relative to that of
two independent models."""

ALIKE = 0.1
"""Default correlation of two models' difference between two versions of one image."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spread:
    """What one image adds to the difference of a metric between two models on the same images."""

    metric: str
    source: str
    """Where the numbers come from, in words."""
    weights: Floats
    """Of each condition: points of the metric per point of accuracy under it."""
    differ: Floats
    """Of each condition: the fraction of images on which the two differ; 0 where `measured` counts."""
    alike: float
    """The correlation of the difference between two versions of one image."""
    bounds: tuple[float, float]
    """The least and the most that an image can add."""
    measured: float = 0.0
    """The measured standard deviation of what an image, or a cluster, adds."""
    images: float = 1.0
    """Images in a unit: 1, or the mean size of a cluster."""
    notes: tuple[str, ...] = ()
    """Notes of a gate: why the metric is not the suite's first one, for instance."""

    def deviation(self, drop: float) -> float:
        """Return the standard deviation of what an image adds if the true drop is `drop`.

        Models differ on at least as many images as the drop is large.
        """
        total = float(self.weights.sum())
        lost = min(1.0, abs(drop / total)) if total > 1e-9 else 0.0  # weights of relative mCE sum to zero
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
    """Return the spread between two models, or between one model and an equally good one.

    Args:
        results: results of one model.
        reference: results of the other. If None, the accuracy of the model is used as in
            `spread_of_accuracies`.
        metric: as for `gate`.
        baseline: what mCE divides by, as for `score`.
        clusters: clusters of images that are not independent, as for `score`; requires a reference.
        differ: as for `spread_of_accuracies`; only without a reference.
        alike: likewise.
    """
    _check_suite(results.suite)
    if reference is None and clusters is not None:
        raise OptionError("clusters requires a reference: their spread cannot be derived from an accuracy")
    if reference is not None and (differ is not None or alike is not None):
        raise OptionError("differ and alike cannot be used with a reference, which determines both")
    scores, name, new, old, notes = score_pair(results, reference, metric, baseline, clusters)
    on = f"{counted(scores.images, 'image')} of {scores.results.dataset}"
    if reference is None:
        one = scores.models[0]
        clean = None if one.clean is None else one.clean.value
        accuracies = [1 - error.value for error in one.corruptions.values()]
        if clean is not None and not accuracies:  # the suite does nothing to the images
            accuracies = [clean]
        weights = scores.pairs.forms[new][name].weights[new]
        where = f"the accuracy of {new} on {on}"
        return _assumed(
            results.suite, name, weights, float(np.mean(accuracies)), clean, differ, alike, where, notes
        )
    if new == old:
        raise ResultsError(f"a plan requires two different models, but both results are of {new}")
    form = drop_form(scores, name, new, old)
    if (deviation := form.values.std(ddof=1) if form.n > 1 else 0.0) == 0:
        raise ResultsError(
            f"{new} and {old} differ by the same amount on each of {counted(form.n, 'image')}, so their "
            "spread cannot be measured; pass accuracies instead"
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
    """Return the spread between two models of a given accuracy.

    Args:
        suite: the conditions, on one dataset.
        accuracy: mean accuracy over corrupted conditions; over all for a suite with a counterpart.
        clean: accuracy on clean images, if they count in the metric; `accuracy` if None.
        metric: the suite's first metric that can be computed if None.
        baseline: a published baseline that mCE divides by; the suite's own if None.
        differ: fraction of images on which one model is right and the other wrong; if None, `DIFFER` times
            that of two independent models.
        alike: correlation of their difference between two versions of one image; `ALIKE` if None.
    """
    _check_suite(suite)
    clean = None if suite.counterpart else clean  # its clean images are those of another dataset
    validate_fraction("accuracy", accuracy)
    if clean is not None:
        validate_fraction("clean", clean)
    columns = columns_of(suite)
    divisor = None
    wanted = suite.baseline if baseline is None else baseline
    needed = baseline is not None or metric is None or (metric in metrics and metrics[metric].unit == "ratio")
    if needed and wanted is not None and wanted != NO_BASELINE:
        if wanted not in BASELINE_NAMES:
            message = unknown_message("published baseline", wanted, BASELINE_NAMES)
            raise OptionError(f"{message}; pass {NO_BASELINE!r} for no baseline")
        divisor = find_divisor(published_baseline(suite, wanted), columns, None)
    forms = metric_forms(suite, columns, "new", np.zeros((1, len(columns)), np.float32), divisor)
    name = next(iter(forms)) if metric is None else metric
    if name not in forms:
        raise OptionError(unknown_message(f"metric of {suite}", name, forms))
    where = "the stated accuracy" if clean is None else "the stated accuracies"
    return _assumed(suite, name, forms[name].weights["new"], accuracy, clean, differ, alike, where)


def _assumed(
    suite: Suite,
    metric: str,
    weights: Floats,
    accuracy: float,
    clean: float | None,
    differ: float | None,
    alike: float | None,
    where: str,
    notes: tuple[str, ...] = (),
) -> Spread:
    """Return the spread between two equally good models of which only the accuracy is known."""
    each = _by_condition(suite, weights * (1 if metrics[metric].better == "lower" else -1))
    accuracies = np.full(len(each), accuracy)
    if suite.clean and clean is not None:
        accuracies[0] = clean
    apart = 2 * DIFFER * accuracies * (1 - accuracies)
    if differ is not None:
        apart = np.full(len(each), validate_number("differ", differ, 0, 1))
    alike = ALIKE if alike is None else validate_number("alike", alike, 0, 1)
    high = float(np.abs(each).sum())
    source = (
        f"from {where}, assuming that {100 * float(apart.mean()):.1f} % of the predictions of two models "
        f"differ and that their differences have a correlation of {alike:g} between versions of one image"
    )
    return Spread(metric, source, each, apart, alike, (-high, high), notes=notes)


def _check_suite(suite: Suite) -> None:
    if suite.parts:
        names = ", ".join(part.name for part in suite.parts)
        raise OptionError(f"{suite} has several datasets; plan for each: {names}")
    if suite.sequences:
        raise OptionError(f"a plan requires a suite of corruptions or shifts, but {suite} has sequences")


def _by_condition(suite: Suite, weights: Floats) -> Floats:
    """Divide the weight of each corruption among its severities."""
    each = Counter(condition.corruption for condition in suite.conditions())
    counts = np.array([each[name] for name in columns_of(suite)])
    return np.repeat(weights / counts, counts)


@dataclass(frozen=True)
class ImagePlan:
    """How many images, or clusters of them, are needed; None if more than a billion."""

    metric: str
    drop: float
    max_drop: float
    probability: float
    to_fail: int | None
    """For a gate to fail a model whose true drop is `drop`."""
    to_pass: int | None
    """For a gate to pass a model that is as good as the reference; None if no drop is allowed."""


def plan_images(
    spread: Spread, *, drop: float, max_drop: float = 0.01, probability: float = 0.8, level: float = 0.95
) -> ImagePlan:
    """Return how many images a gate with `max_drop` needs to decide correctly with some probability.

    Args:
        spread: from `spread_of_results` or `spread_of_accuracies`.
        drop: the true drop to detect, as a fraction.
        max_drop: the drop that the gate allows.
        probability: of "failed" if the true drop is `drop`, and of "passed" if it is zero.
        level: confidence level of the gate's interval.
    """
    if not 0 <= max_drop < drop:
        raise OptionError(f"drop must be above max_drop, got drop={drop!r} and max_drop={max_drop!r}")
    validate_fraction("probability", probability)
    low, high = spread.bounds
    if drop >= high:
        raise OptionError(f"drop must be below {high:g}, the largest possible drop, got {drop!r}")
    luck = NormalDist().inv_cdf(probability)
    fails = _needed(spread.deviation(drop), drop - max_drop, drop - low, level, luck)
    passes = _needed(spread.deviation(0.0), max_drop, high, level, luck) if max_drop else None
    return ImagePlan(spread.metric, drop, max_drop, probability, fails, passes)


def _needed(deviation: float, distance: float, most: float, level: float, luck: float) -> int | None:
    """Return how many images bring the end of an interval across a limit with a certain probability.

    `most` is the distance from the mean to the most extreme value of an image, `luck` the normal quantile of
    the probability.
    """

    def enough(n: int) -> bool:
        reach = paired_half_width(deviation, n, most, level)
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
