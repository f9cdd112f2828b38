"""Models side by side on the same images: differences, and which of them are more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.metrics.stats import Estimate, holm, mcnemar
from beaufort.results.calibration import SCORES, calibrate, calibration_rows, score_forms
from beaufort.results.differences import Difference, difference_text
from beaufort.results.linear import Clusters, Linear, find_clusters
from beaufort.results.predictions import SharedPredictions
from beaufort.results.results import Results
from beaufort.results.scores import Scores
from beaufort.results.scoring import score
from beaufort.suites.conditions import Condition


@dataclass(frozen=True)
class ConditionTest:
    """Two models under one condition: McNemar's exact test, or its like for clusters of images."""

    condition: Condition
    first: Estimate
    second: Estimate
    """Accuracies."""
    only_first: int
    only_second: int
    """Images that one of the two gets right and the other wrong."""
    p: float
    p_holm: float
    """Adjusted for all conditions of all pairs."""


@dataclass(frozen=True)
class CalibrationDifference:
    """One calibration score of two models: the second minus the first, with an unadjusted interval."""

    group: str
    """`clean`, a severity, or `corrupted` for suites with one published severity."""
    metric: str
    """`ece`, `confidence`, `nll`, `brier` or `entropy`."""
    first: str
    second: str
    difference: Estimate

    def __str__(self) -> str:
        title = {"ece": "ECE", "nll": "NLL", "brier": "Brier score"}.get(self.metric, self.metric)
        return difference_text(self.second, self.first, title, self.difference, points=False, digits=3)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Some models on one suite and the same images.

    There are three families of statements, and within each all hold together at the level of the scores:
    differences in the headline metric (every pair), differences in the other metrics (every pair under every
    one), and tests under single conditions (every pair under every condition).
    """

    scores: Scores
    differences: tuple[Difference, ...]
    """For every pair and metric."""
    conditions: Mapping[tuple[str, str], tuple[ConditionTest, ...]]
    """For every pair, all conditions."""
    calibration: tuple[CalibrationDifference, ...]
    """For every pair and calibration score; empty if it was not computed."""

    def __repr__(self) -> str:
        return f"<Comparison of {self.scores!r}: {len(self.differences)} differences>"


def compare(
    results: Results,
    models: Sequence[str] | None = None,
    *,
    baseline: str | None = None,
    clusters: Mapping[str, str] | None = None,
    groups: Mapping[str, str] | None = None,
    seeds: Mapping[str, Sequence[str]] | None = None,
    level: float = 0.95,
    calibration: bool = True,
) -> Comparison:
    """Compare two or more models; arguments are those of `score`."""
    names = list(dict.fromkeys(results.models if models is None else models))
    if len(names) < 2:
        raise OptionError(f"models must name at least two, got {', '.join(names) or 'none'}")
    more: dict[str, Any] = {"clusters": clusters, "groups": groups, "seeds": seeds}
    scores = score(results, baseline=baseline, models=names, level=level, calibration=calibration, **more)
    predictions = scores.predictions(names)
    correct = {name: one.correct for name, one in predictions.items()}
    units = find_clusters(predictions[names[0]].ids, clusters)
    return Comparison(
        scores,
        scores.pairs.differences(),
        _condition_tests(scores, correct, units),
        calibration_differences(predictions, units, level) if calibration else (),
    )


def _condition_tests(
    scores: Scores, correct: Mapping[str, NDArray[np.bool_]], units: Clusters | None
) -> dict[tuple[str, str], tuple[ConditionTest, ...]]:
    conditions = list(scores.models[0].conditions)
    accuracies = {one.model: list(one.conditions.values()) for one in scores.models}
    tests: dict[tuple[str, str], list[ConditionTest]] = {}
    for a, b in combinations(correct, 2):
        for row, (first, second) in enumerate(zip(correct[a], correct[b], strict=True)):
            test = ConditionTest(
                conditions[row],
                accuracies[a][row],
                accuracies[b][row],
                only_first=int((first & ~second).sum()),
                only_second=int((second & ~first).sum()),
                p=_p_value(first, second, units),
                p_holm=1.0,
            )
            tests.setdefault((a, b), []).append(test)
    adjusted = iter(holm([test.p for some in tests.values() for test in some]).tolist())
    return {
        pair: tuple(replace(test, p_holm=next(adjusted)) for test in some) for pair, some in tests.items()
    }


def _p_value(first: NDArray[np.bool_], second: NDArray[np.bool_], units: Clusters | None) -> float:
    """Of the hypothesis that two models are right equally often; images of one cluster count together."""
    if units is None:
        return mcnemar(int((first & ~second).sum()), int((second & ~first).sum()))
    forms = [
        Linear.of(0.0, {name: (~hits[:, None], np.ones(1))}) for name, hits in (("a", first), ("b", second))
    ]
    return (forms[1] - forms[0]).clustered(units).p_value()


def calibration_differences(
    predictions: SharedPredictions, units: Clusters | None, level: float
) -> tuple[CalibrationDifference, ...]:
    """Return the difference of every pair in every calibration score, by severity; none without them."""
    if not all(one.has_probabilities for one in predictions.values()):
        return ()
    rows = calibration_rows(predictions[predictions.models[0]])
    forms: dict[str, dict[str, dict[str, Linear]]] = {}
    gaps: dict[str, dict[str, Estimate]] = {}
    for name, one in predictions.items():
        named = replace(one, model=name)
        forms[name] = {group: score_forms(named, places, units) for group, places in rows.items()}
        made = calibrate(named, units, (1 + level) / 2)
        gaps[name] = {group: calibration.ece for group, calibration in made.items()}
    found = []
    for group in rows:
        for a, b in combinations(forms, 2):
            both = _box(gaps[a][group], gaps[b][group], level)
            found.append(CalibrationDifference(group, "ece", a, b, both))
            for metric in SCORES:
                if metric in forms[a][group] and metric in forms[b][group]:
                    form = forms[b][group][metric] - forms[a][group][metric]
                    found.append(CalibrationDifference(group, metric, a, b, form.estimate(level)))
    return tuple(found)


def _box(first: Estimate, second: Estimate, level: float) -> Estimate:
    """A difference from two intervals that hold together; wider than need be."""
    low, high = second.low - first.high, second.high - first.low
    return Estimate(second.value - first.value, low, high, first.n, level)
