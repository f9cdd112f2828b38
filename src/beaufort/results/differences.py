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
from beaufort.metrics.stats import Estimate
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
    """The second minus the first; the intervals of the whole family hold together at the level."""
    p: float
    """Two-sided, adjusted for the whole family: below 1 - level exactly if the difference is significant."""

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


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of models under all metrics: the family that p-values and intervals are adjusted for.

    Each of m intervals has the level 1 - (1 - level) / m (Bonferroni). Other corrections have more power, but
    with this one a difference is significant exactly if its interval excludes zero.
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

    @property
    def size(self) -> int:
        """Number of differences in the family."""
        models = len(self.forms)
        return models * (models - 1) // 2 * len(self.metrics)

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return the second model's metric minus the first one's."""
        form = self.forms[second][metric] - self.forms[first][metric]
        level = 1 - (1 - self.level) / max(self.size, 1)
        p = min(1.0, self.size * form.p_value())
        return Difference(metric, first, second, form.estimate(level), p)

    def differences(self) -> tuple[Difference, ...]:
        """Return the differences of every pair under every metric."""
        pairs = combinations(self.models, 2)
        return tuple(self.difference(metric, *pair) for pair in pairs for metric in self.metrics)

    def significant(self, metric: str) -> NDArray[np.bool_]:
        """Return which pairs differ significantly, a symmetric matrix in the order of the models."""
        count = len(self.models)
        matrix = np.zeros((count, count), np.bool_)
        for (a, first), (b, second) in combinations(enumerate(self.models), 2):
            form = self.forms[second][metric] - self.forms[first][metric]
            matrix[a, b] = matrix[b, a] = self.size * form.p_value() < 1 - self.level
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
