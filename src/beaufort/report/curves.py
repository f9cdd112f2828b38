"""Accuracy as the damage grows: the mean over corruptions, and the baseline's curves beside it."""

from __future__ import annotations

import numpy as np

from beaufort.metrics import get_baseline
from beaufort.report._answers import scored_answers
from beaufort.results import Scores
from beaufort.stats import Estimate, bootstrap_means, interval

__all__ = ["baseline_errors", "mean_curves"]


def mean_curves(scores: Scores) -> dict[str, list[Estimate]]:
    """For each model the accuracy at each severity, the mean over corruptions, with bootstrap intervals.

    Empty for suites with one published severity.
    """
    suite = scores.suite
    if suite.severities == "published":
        return {}
    columns, names = [], []
    for name, one in scored_answers(scores).items():
        names.append(name)
        for severity in suite.severities:
            rows = [row for row, condition in enumerate(one.conditions) if condition.severity == severity]
            columns.append(one.correct[rows].mean(axis=0, dtype=np.float32))
    values = np.stack(columns, axis=1)
    drawn = bootstrap_means(values, resamples=scores.resamples, seed=scores.seed)
    exact = values.mean(axis=0, dtype=np.float64)
    made = [interval(float(value), drawn[:, i], len(values), scores.level) for i, value in enumerate(exact)]
    width = len(suite.severities)
    return {name: made[i * width : (i + 1) * width] for i, name in enumerate(names)}


def baseline_errors(scores: Scores) -> dict[str, tuple[float, ...]]:
    """A published baseline's error at each severity, by corruption; empty where only averages are known."""
    reference, suite = scores.reference, scores.suite
    if reference is None or reference.stored or suite.severities == "published":
        return {}
    errors = get_baseline(reference.name).select(suite.corruptions, suite.severities)
    found = {name: np.atleast_1d(np.asarray(values, np.float64)) for name, values in errors.items()}
    if any(len(values) != len(suite.severities) for values in found.values()):
        return {}
    return {name: tuple(map(float, values)) for name, values in found.items()}
