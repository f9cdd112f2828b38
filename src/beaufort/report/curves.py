"""Accuracy as the damage grows: the mean over corruptions, and the baseline's curves beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beaufort.corruptions import Severity
from beaufort.metrics import get_baseline
from beaufort.metrics.stats import Estimate, mean_interval
from beaufort.report._answers import scored_answers
from beaufort.results import Predictions, Scores


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
        name: [mean_interval(_shares(one, severity), level=scores.level) for severity in suite.severities]
        for name, one in scored_answers(scores).items()
    }


def _shares(answers: Predictions, severity: Severity) -> NDArray[np.float64]:
    """How often each image is answered rightly at a severity."""
    rows = [row for row, condition in enumerate(answers.conditions) if condition.severity == severity]
    shares: NDArray[np.float64] = answers.correct[rows].mean(axis=0, dtype=np.float64)
    return shares


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
