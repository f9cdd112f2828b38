"""The numbers of the page's figures: curves, breaking points, differences of models, the worst classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import counted
from beaufort.corruptions import Severity
from beaufort.metrics import get_baseline, worst_classes
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval
from beaufort.results import ModelScores, Predictions, Scores


def has_curves(scores: Scores) -> bool:
    """Return whether there are at least two severities for a curve; clean images count as one."""
    suite = scores.suite
    return suite.severities != "published" and len(suite.severities) + suite.clean > 1


def mean_curves(scores: Scores) -> dict[str, list[Estimate]]:
    """Return the accuracy of each model at each severity, the mean over corruptions.

    Empty for suites with one published severity.
    """
    suite = scores.suite
    if suite.severities == "published":
        return {}
    return {
        name: [
            mean_interval(_image_accuracies(one, severity), level=scores.level)
            for severity in suite.severities
        ]
        for name, one in scores.predictions().items()
    }


def _image_accuracies(predictions: Predictions, severity: Severity) -> NDArray[np.float64]:
    """Return the accuracy of each image at a severity."""
    rows = [row for row, condition in enumerate(predictions.conditions) if condition.severity == severity]
    accuracies: NDArray[np.float64] = predictions.correct[rows].mean(axis=0, dtype=np.float64)
    return accuracies


def baseline_errors(scores: Scores) -> dict[str, tuple[float, ...]]:
    """Return a published baseline's error at each severity, by corruption; empty if only means are known."""
    baseline, suite = scores.baseline, scores.suite
    if baseline is None or baseline.stored or suite.severities == "published":
        return {}
    errors = get_baseline(baseline.name).select(suite.corruptions, suite.severities)
    found = {name: np.atleast_1d(np.asarray(values, np.float64)) for name, values in errors.items()}
    if any(len(values) != len(suite.severities) for values in found.values()):
        return {}
    return {name: tuple(map(float, values)) for name, values in found.items()}


def breaking_points(model: ModelScores) -> dict[str, Severity | None] | None:
    """Return, by corruption, the lowest severity at which the accuracy is below half of the clean accuracy.

    The whole interval must be below half of the lower end of the clean accuracy's interval; a corruption
    without such a severity has None. The result is None without clean images, with a single published
    severity, or if the interval of the clean accuracy contains 0.
    """
    severities = {condition.severity for condition in model.conditions if not condition.clean}
    if model.clean is None or not model.clean.low or severities <= {None}:
        return None
    half = model.clean.low / 2
    found: dict[str, Severity | None] = {}
    for condition, accuracy in model.conditions.items():
        if condition.corruption is None:
            continue
        found.setdefault(condition.corruption, None)
        if found[condition.corruption] is None and accuracy.high < half:
            found[condition.corruption] = condition.severity
    return found


MOST_COMPARED = 12
"""Largest number of models of which all pairs are compared; a difference takes about a millisecond."""


class PairDifferences(NamedTuple):
    """The second model minus the first."""

    metrics: tuple[Estimate, ...]
    """In the order of the headline numbers; intervals adjusted for all pairs and numbers."""
    corruptions: tuple[Estimate, ...]
    """Errors, in the order of the suite; intervals adjusted for all pairs and corruptions."""


def pair_differences(scores: Scores) -> dict[tuple[int, int], PairDifferences]:
    """Return the differences by the positions of two models; empty with too many models."""
    if not 1 < len(scores.models) <= MOST_COMPARED:
        return {}
    pairs = list(combinations(range(len(scores.models)), 2))
    family = len(pairs) * len(scores.suite.corruptions)
    level = 1 - (1 - scores.level) / max(family, 1)
    found = {}
    for a, b in pairs:
        first, second = scores.models[a], scores.models[b]
        whole = [scores.pairs.difference(one, first.model, second.model) for one in first.metrics]
        each = [second.error_forms[one] - first.error_forms[one] for one in scores.suite.corruptions]
        found[a, b] = PairDifferences(
            tuple(one.difference for one in whole), tuple(form.estimate(level) for form in each)
        )
    return found


FEWEST = 5
"""Smallest number of images of a class that is listed."""

_SHOWN = 12


@dataclass(frozen=True)
class WorstClass:
    """The accuracy of a class under all corruptions and on clean images."""

    label: int
    n: int
    corrupted: Estimate
    clean: Estimate | None


@dataclass(frozen=True)
class WorstClasses:
    """The classes with the lowest accuracy of every model, and a note on the selection."""

    by_model: Mapping[str, Sequence[WorstClass]]
    """Worst first; empty if no class has enough images."""
    note: str


def find_worst_classes(scores: Scores) -> WorstClasses:
    """Return the classes with the lowest mean accuracy under corruption, if they have enough images."""
    predictions = scores.predictions()
    labels = predictions[scores.models[0].model].labels
    present, counts = np.unique(labels, return_counts=True)
    enough = present[counts >= FEWEST]
    if not len(enough):
        most = counted(int(counts.max()), "image")
        return WorstClasses(
            {},
            f"No class is listed: none has more than {most}, and at least {FEWEST} are required.",
        )
    places = np.flatnonzero(np.isin(labels, enough))
    found = {name: _worst(one.take(places), scores.level) for name, one in predictions.items()}
    few = len(present) - len(enough)
    omitted = f" {counted(few, 'class', 'classes')} with fewer than {FEWEST} images omitted." if few else ""
    if len(enough) <= _SHOWN:
        every = f"All {len(enough)} classes, sorted by their mean accuracy under corruption."
        note = f"{every if len(enough) > 1 else 'There is one class.'}{omitted}"
    else:
        note = (
            f"The {_SHOWN} of {len(enough):,} classes with the lowest mean accuracy under corruption."
            f"{omitted} Because they were selected for low accuracy, expect a higher one on new images."
        )
    return WorstClasses(found, note)


def _worst(predictions: Predictions, level: float) -> list[WorstClass]:
    labels, clean = predictions.labels, predictions.rows.get(None)
    corrupted = [row for row, condition in enumerate(predictions.conditions) if not condition.clean]
    correct = predictions.correct[corrupted]
    predicted = np.where(correct, labels, predictions.top[corrupted, :, 0]).ravel()
    found = []
    for worst in worst_classes(np.tile(labels, len(corrupted)), predicted, _SHOWN):
        mine = labels == worst.label
        n, under = int(mine.sum()), mean_interval(correct[:, mine].mean(axis=0), level=level)
        hits = None if clean is None else int(predictions.correct[clean[0], mine].sum())
        on_clean = None if hits is None else clopper_pearson(hits, n, level)
        found.append(WorstClass(worst.label, n, under, on_clean))
    return found
