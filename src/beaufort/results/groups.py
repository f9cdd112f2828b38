"""Accuracy in groups of images, and in the worst of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats import Estimate
from beaufort.results.answers import Answers
from beaufort.results.clusters import Clusters, values_of
from beaufort.results.linear import Linear


@dataclass(frozen=True)
class GroupScores:
    """A model's accuracy over all conditions in each group."""

    accuracies: Mapping[str, Estimate]
    """By group; all intervals hold together."""
    worst: Estimate
    """The accuracy in the group where it is lowest; `n` is the number of images in that group, or of
    clusters of them."""
    worst_name: str


def group_scores(
    answers: Answers, named: Mapping[str, str], level: float, units: Clusters | None = None
) -> GroupScores:
    """The accuracy of a model in each group, the mean over all conditions.

    The intervals are Bonferroni's, so that they hold together; only then is the least of their ends an end of
    an interval of the least accuracy.
    """
    values = np.array(values_of(answers.ids, named))
    right = answers.correct.mean(axis=0, dtype=np.float64)
    names = sorted(set(values.tolist()))
    each = 1 - (1 - level) / len(names)
    found = {name: _mean(right, np.flatnonzero(values == name), each, units) for name in names}
    name, worst = min(found.items(), key=lambda item: item[1].value)
    low, high = (min(getattr(one, end) for one in found.values()) for end in ("low", "high"))
    return GroupScores(found, Estimate(worst.value, low, high, worst.n, level), name)


def _mean(
    right: NDArray[np.float64], places: NDArray[np.intp], level: float, units: Clusters | None
) -> Estimate:
    """The mean over some images, with an interval over images or over their clusters."""
    form = Linear.of(0.0, {"": (right[places, None], np.ones(1))})
    if units is not None:
        form = form.clustered(np.unique(units.index[places], return_inverse=True)[1])
    return form.estimate(level)
