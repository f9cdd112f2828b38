"""Models side by side on the same images: differences, and which of them are more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from beaufort.conditions import Condition
from beaufort.errors import OptionError
from beaufort.results.open import Results
from beaufort.results.scores import Scores, score
from beaufort.results.shared import SharedAnswers
from beaufort.stats import RESAMPLES, Estimate, clopper_pearson, holm, interval, mcnemar, paired_p_value

__all__ = ["Comparison", "ConditionTest", "Difference", "compare"]


@dataclass(frozen=True)
class Difference:
    """One headline number of two models: the second less the first."""

    metric: str
    first: str
    second: str
    difference: Estimate
    p: float
    """Two-sided, from the standard error of the paired bootstrap."""


@dataclass(frozen=True)
class ConditionTest:
    """Two models under one condition: McNemar's exact test."""

    condition: Condition
    first: Estimate
    second: Estimate
    """Accuracies."""
    only_first: int
    only_second: int
    """Images that one of the two gets right and the other wrong."""
    p: float
    p_holm: float
    """Adjusted for all conditions of the pair."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Some models on one suite and the same images."""

    scores: Scores
    differences: tuple[Difference, ...]
    """For every pair and metric."""
    conditions: Mapping[tuple[str, str], tuple[ConditionTest, ...]]
    """For every pair, all conditions."""


def compare(
    results: Results,
    models: Sequence[str] | None = None,
    *,
    baseline: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Comparison:
    """Compare two or more models; arguments are those of `score`."""
    names = list(results.models if models is None else models)
    if len(set(names)) < 2:
        raise OptionError(f"{', '.join(names)} came; a comparison takes two models or more")
    scores = score(results, baseline=baseline, models=names, resamples=resamples, seed=seed, level=level)
    by_name = {one.model: one for one in scores.models}
    correct = {name: answers.correct for name, answers in SharedAnswers(results, names).items()}
    conditions = results.answers(names[0]).conditions
    differences: list[Difference] = []
    tests: dict[tuple[str, str], tuple[ConditionTest, ...]] = {}
    for first, second in combinations(names, 2):
        for metric in by_name[first].metrics:
            value = by_name[second].metrics[metric].value - by_name[first].metrics[metric].value
            drawn = scores.drawn[second][metric] - scores.drawn[first][metric]
            estimate = interval(value, drawn, scores.images, level)
            p = paired_p_value(value, float(np.std(drawn)), scores.images)
            differences.append(Difference(metric, first, second, estimate, p))
        tests[first, second] = _condition_tests(conditions, correct[first], correct[second], level)
    return Comparison(scores, tuple(differences), tests)


def _condition_tests(
    conditions: Sequence[Condition], first: NDArray[np.bool_], second: NDArray[np.bool_], level: float
) -> tuple[ConditionTest, ...]:
    only_first = (first & ~second).sum(axis=1)
    only_second = (second & ~first).sum(axis=1)
    p = [mcnemar(int(a), int(b)) for a, b in zip(only_first, only_second, strict=True)]
    adjusted = holm(p)
    count = first.shape[1]
    return tuple(
        ConditionTest(
            condition,
            clopper_pearson(int(first[row].sum()), count, level),
            clopper_pearson(int(second[row].sum()), count, level),
            int(only_first[row]),
            int(only_second[row]),
            p[row],
            float(adjusted[row]),
        )
        for row, condition in enumerate(conditions)
    )
