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
    """Whether there are two strengths of damage to draw a line between; clean images are one."""
    suite = scores.suite
    return suite.severities != "published" and len(suite.severities) + suite.clean > 1


def mean_curves(scores: Scores) -> dict[str, list[Estimate]]:
    """For each model the accuracy at each severity, the mean over corruptions, with intervals over images.

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
    """The accuracy of each image at a severity."""
    rows = [row for row, condition in enumerate(predictions.conditions) if condition.severity == severity]
    accuracies: NDArray[np.float64] = predictions.correct[rows].mean(axis=0, dtype=np.float64)
    return accuracies


def baseline_errors(scores: Scores) -> dict[str, tuple[float, ...]]:
    """A published baseline's error at each severity, by corruption; empty where only averages are known."""
    baseline, suite = scores.baseline, scores.suite
    if baseline is None or baseline.stored or suite.severities == "published":
        return {}
    errors = get_baseline(baseline.name).select(suite.corruptions, suite.severities)
    found = {name: np.atleast_1d(np.asarray(values, np.float64)) for name, values in errors.items()}
    if any(len(values) != len(suite.severities) for values in found.values()):
        return {}
    return {name: tuple(map(float, values)) for name, values in found.items()}


def breaking_points(model: ModelScores) -> dict[str, Severity | None] | None:
    """For each corruption the first severity at which accuracy is surely under half of the clean one.

    Surely means that the whole interval is below half of the clean accuracy's lower end; a corruption that
    never does it has None. Without clean images, with one published severity a corruption, or if the clean
    accuracy may be 0, there is nothing to say.
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
"""Models up to which every pair is compared: each difference takes about a millisecond."""


class PairDifferences(NamedTuple):
    """The second model less the first, each with an interval that decides."""

    metrics: tuple[Estimate, ...]
    """In the order of the headline numbers; intervals adjusted for all pairs and numbers."""
    corruptions: tuple[Estimate, ...]
    """Errors, in the order of the suite; intervals adjusted for all pairs and corruptions."""


def pair_differences(scores: Scores) -> dict[tuple[int, int], PairDifferences]:
    """By the places of two models in the scores; empty if there are too many to compare all."""
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
"""Images that a class must have to be named; with fewer, its accuracy says next to nothing."""

_SHOWN = 12


@dataclass(frozen=True)
class WorstClass:
    """A class with its accuracy under all corruptions, beside that on its clean images."""

    label: int
    n: int
    corrupted: Estimate
    clean: Estimate | None


@dataclass(frozen=True)
class WorstClasses:
    """Those of every model, and what to know about them."""

    by_model: Mapping[str, Sequence[WorstClass]]
    """Worst first; empty where no class has enough images."""
    note: str


def find_worst_classes(scores: Scores) -> WorstClasses:
    """The classes with the lowest mean accuracy under corruption, of those with enough images."""
    predictions = scores.predictions()
    labels = predictions[scores.models[0].model].labels
    present, counts = np.unique(labels, return_counts=True)
    enough = present[counts >= FEWEST]
    if not len(enough):
        most = counted(int(counts.max()), "image")
        return WorstClasses(
            {},
            f"No class has more than {most} here, and at least {FEWEST} are needed to say anything about a "
            "class: so none is named.",
        )
    places = np.flatnonzero(np.isin(labels, enough))
    found = {name: _worst(one.take(places), scores.level) for name, one in predictions.items()}
    few = len(present) - len(enough)
    left_out = f" {counted(few, 'class', 'classes')} with fewer than {FEWEST} images left out." if few else ""
    if len(enough) <= _SHOWN:
        every = f"All {len(enough)} classes, the lowest mean accuracy under corruption first."
        note = f"{every if len(enough) > 1 else 'There is one class.'}{left_out}"
    else:
        note = (
            f"The {_SHOWN} of {len(enough):,} classes with the lowest mean accuracy under corruption."
            f"{left_out} Picked because they are the lowest: on new images they are likely to do better."
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
