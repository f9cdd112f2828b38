"""Differences between models, and the spread over training runs of one recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate, Family, simultaneous
from beaufort.results.linear import Linear


def difference_text(
    subject: str, other: str, title: str, difference: Estimate, *, points: bool = True, digits: int = 2
) -> str:
    """State a difference in words; `difference` is the subject's value minus the other's.

    The interval has the sign of the words: its lower end is negative if the opposite may be true.

    >>> difference_text("new", "old", "mCE", Estimate(-0.031, -0.05, -0.012, 1000))
    'new has 3.10 points lower mCE than old [1.20, 5.00]'
    """
    if title[:1].isupper() and title[1:2].islower():
        title = title[0].lower() + title[1:]
    if difference.exact:
        return f"{subject} and {other} have the same {title} by definition"
    lower = difference.value < 0
    size = -difference if lower else difference
    times, unit = (100, " points") if points else (1, "")
    value, low, high = (f"{times * one:z.{digits}f}" for one in (size.value, size.low, size.high))
    return (
        f"{subject} has {value}{unit} {'lower' if lower else 'higher'} {title} than {other} [{low}, {high}]"
    )


@dataclass(frozen=True)
class Difference:
    """One metric of two models: the second minus the first; as text, the better model is the subject."""

    metric: str
    first: str
    second: str
    difference: Estimate
    """The second minus the first; the intervals of a family hold together at the level."""
    p: float
    """Two-sided, adjusted for the family: below 1 - level exactly if the difference is significant."""
    family: str = ""
    """`headline` for the first metric of the suite, `other` for the rest."""

    @property
    def significant(self) -> bool:
        """Whether the interval excludes zero."""
        return self.difference.low > 0 or self.difference.high < 0

    def __str__(self) -> str:
        one = metrics[self.metric]
        worse = (self.difference.value > 0) == (one.better == "lower")
        pair = (self.first, self.second) if worse else (self.second, self.first)
        difference = -self.difference if worse else self.difference
        return difference_text(*pair, one.title, difference, points=one.in_percent)


HEADLINE, OTHER = "headline", "other"
"""Names of the two families of differences."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of models under all metrics.

    The differences in the first metric are one family, those in the other metrics a second one. Within each,
    all intervals hold together at `level` (single-step max-T over the joint distribution of the differences),
    and a difference is significant exactly if its interval excludes zero.
    """

    forms: Mapping[str, Mapping[str, Linear]]
    """By model and metric."""
    level: float

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self.forms)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        return tuple(next(iter(self.forms.values()))) if self.forms else ()

    @cached_property
    def families(self) -> dict[str, tuple[str, ...]]:
        """The metrics of each family; a suite with one metric has one family."""
        parts = {HEADLINE: self.metrics[:1], OTHER: self.metrics[1:]}
        return {name: some for name, some in parts.items() if some}

    def family_of(self, metric: str) -> str:
        """Return the name of the family that a metric belongs to."""
        return HEADLINE if metric == self.metrics[0] else OTHER

    def size(self, family: str) -> int:
        """Return the number of differences in a family."""
        models = len(self.forms)
        return models * (models - 1) // 2 * len(self.families.get(family, ()))

    @cached_property
    def _joint(self) -> dict[str, Family]:
        return {}

    def joint(self, family: str) -> Family:
        """Return what the intervals and p-values of a family are adjusted by."""
        if family not in self._joint:
            count, metrics = len(self.forms), self.families[family]
            columns = [forms[metric].values for metric in metrics for forms in self.forms.values()]
            pairs = np.array(list(combinations(range(count), 2)), np.intp).reshape(-1, 2)
            pairs = np.concatenate([pairs + count * place for place in range(len(metrics))])
            self._joint[family] = simultaneous(columns, pairs)
        return self._joint[family]

    def form(self, metric: str, first: str, second: str) -> Linear:
        """Return what each image adds to the second model's metric minus the first one's."""
        return self.forms[second][metric] - self.forms[first][metric]

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return the second model's metric minus the first one's."""
        form = self.form(metric, first, second)
        family = self.family_of(metric)
        joint = self.joint(family)
        estimate = form.estimate(joint.level(self.level))
        return Difference(metric, first, second, estimate, joint.adjusted(form.p_value()), family)

    def differences(self) -> tuple[Difference, ...]:
        """Return the differences of every pair under every metric."""
        pairs = combinations(self.models, 2)
        return tuple(self.difference(metric, *pair) for pair in pairs for metric in self.metrics)

    def significant(self, metric: str) -> NDArray[np.bool_]:
        """Return which pairs differ significantly, a symmetric matrix in the order of the models."""
        count = len(self.models)
        matrix = np.zeros((count, count), np.bool_)
        if count < 2:
            return matrix
        miss = 1 - self.joint(self.family_of(metric)).level(self.level)
        for (a, first), (b, second) in combinations(enumerate(self.models), 2):
            matrix[a, b] = matrix[b, a] = self.form(metric, first, second).p_value() < miss
        return matrix


@dataclass(frozen=True)
class SeedSpread:
    """One metric of several training runs."""

    mean: Estimate
    """The mean over the training runs, with its interval over images for just these runs."""
    deviation: float
    """The standard deviation over the training runs."""
    lowest: float
    highest: float


@dataclass(frozen=True)
class Seeds:
    """Several training runs of one recipe."""

    name: str
    models: tuple[str, ...]
    metrics: Mapping[str, SeedSpread]

    @classmethod
    def of(cls, name: str, models: Sequence[str], pairs: Pairs) -> Seeds:
        """The mean and the spread of each metric over some of the models of `pairs`."""
        for model in models:
            if model not in pairs.forms:
                raise OptionError(unknown_message("model", model, pairs.forms))
        chosen = tuple(dict.fromkeys(models))
        if len(chosen) < 2:
            raise OptionError(f"seeds of {name!r} must be at least two models, got {', '.join(chosen)}")
        spreads = {}
        for metric in pairs.metrics:
            forms = [pairs.forms[model][metric] for model in chosen]
            values = [form.value for form in forms]
            mean, deviation = Linear.mean(forms).estimate(pairs.level), float(np.std(values, ddof=1))
            spreads[metric] = SeedSpread(mean, deviation, min(values), max(values))
        return cls(name, chosen, spreads)
