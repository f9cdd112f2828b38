"""The numbers of a suite, each with its interval.

Every headline number is a function of the mean errors under each corruption; the bootstrap draws base
images and takes all their versions along, the same draws for all models, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort.conditions import Condition
from beaufort.metrics import (
    corruption_error,
    mean_accuracy,
    mean_corruption_error,
    metrics,
    relative_corruption_error,
    relative_mean_corruption_error,
)
from beaufort.results.answers import Answers
from beaufort.results.baseline import Reference, find_reference
from beaufort.results.calibration import Calibration, calibrate
from beaufort.results.open import Results
from beaufort.results.shared import SharedAnswers
from beaufort.stats import RESAMPLES, Estimate, Ranked, bootstrap_means, clopper_pearson, interval, rank
from beaufort.suites import Suite

__all__ = ["Columns", "ModelScores", "Scores", "score", "statistics"]

Means = NDArray[np.float64]
"""Mean errors `(…, 1 + corruptions)`: the clean images first, then each corruption."""

Columns = tuple[str | None, ...]
"""What the columns of means are: None for the clean images, then the corruptions."""


@dataclass(frozen=True)
class ModelScores:
    """One model's numbers; shares, not percent."""

    model: str
    digest: str
    images: int
    """Base images that the numbers rest on."""
    unread: int
    """Images without an answer under at least one condition."""
    clean: Estimate | None
    """Accuracy on clean images."""
    metrics: Mapping[str, Estimate]
    """The suite's headline numbers, the first one first."""
    corruptions: Mapping[str, Estimate]
    """Error under each corruption, the mean over its severities."""
    ce: Mapping[str, Estimate]
    """The same over the baseline's error; empty without a baseline."""
    relative_ce: Mapping[str, Estimate]
    """What is lost against clean images over what the baseline loses."""
    conditions: Mapping[Condition, Estimate]
    """Accuracy under each condition."""
    top5: Mapping[Condition, float]
    """Share of images whose true class is among the five most probable."""
    calibration: Mapping[str, Calibration]
    """For clean images and each severity."""

    @property
    def headline(self) -> Estimate:
        """The suite's first number."""
        return next(iter(self.metrics.values()))


@dataclass(frozen=True, eq=False)
class Scores:
    """All numbers of some models on one suite."""

    results: Results
    reference: Reference | None
    models: tuple[ModelScores, ...]
    """In the order of the ranking."""
    ranking: tuple[Ranked, ...]
    """By the headline number."""
    drawn: Mapping[str, Mapping[str, NDArray[np.float64]]]
    """Each metric of each model in every resample; the same resamples for all."""
    images: int
    resamples: int
    seed: int
    """Of the resamples."""
    level: float

    @property
    def suite(self) -> Suite:
        return self.results.suite

    @property
    def headline(self) -> str:
        """The name of the first metric."""
        return next(iter(self.models[0].metrics))


def score(
    results: Results,
    *,
    baseline: str | None = None,
    models: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Scores:
    """The numbers of a store's models, on the images that all of them answered.

    Args:
        results: from `open_results`.
        baseline: a published baseline, a model of the store, or `none`; the suite's own if None.
        models: only these; all if None.
        resamples: of the bootstrap.
        seed: of the bootstrap's draws.
        level: of all intervals.
    """
    names = list(results.models if models is None else models)
    reference = find_reference(results, baseline)
    stored = [reference.name] if reference and reference.stored else []
    needed = list(dict.fromkeys([*names, *stored]))
    columns = columns_of(results.suite)
    answers = SharedAnswers(results, needed)
    values = np.hstack([error_columns(one, columns) for one in answers.values()])
    draws = bootstrap_means(values, resamples=resamples, seed=seed)
    means = {name: np.array([one.error(column) for column in columns]) for name, one in answers.items()}
    width = len(columns)
    drawn = {name: draws[:, i * width : (i + 1) * width] for i, name in enumerate(needed)}
    made, resampled = [], {}
    base = _base(reference, columns, means, drawn)
    for name in dict.fromkeys(names):
        scorer = _Scorer(
            results.suite, columns, reference, means[name], drawn[name], base, len(values), level
        )
        resampled[name] = scorer.drawn_metrics()
        made.append(_model_scores(name, answers[name], results, scorer))
    headline = next(iter(made[0].metrics))
    ranking = rank(
        list(resampled),
        [one.metrics[headline].value for one in made],
        np.stack([one[headline] for one in resampled.values()]),
        len(values),
        better=metrics[headline].better or "lower",
        level=level,
    )
    order = {ranked.name: place for place, ranked in enumerate(ranking)}
    made.sort(key=lambda one: order[one.model])
    return Scores(
        results, reference, tuple(made), tuple(ranking), resampled, len(values), resamples, seed, level
    )


def columns_of(suite: Suite) -> Columns:
    """The columns that a suite's numbers are made of."""
    return (*([None] if suite.clean else []), *suite.corruptions)


def error_columns(answers: Answers, columns: Columns) -> NDArray[np.float32]:
    """The errors of each image, `(images, columns)`."""
    return np.stack([answers.errors(column) for column in columns], axis=1)


def _base(
    reference: Reference | None, columns: Columns, means: Mapping[str, Means], drawn: Mapping[str, Means]
) -> tuple[Means, Means] | None:
    """The baseline's means, and the same in every resample; a published one does not vary."""
    if reference is None:
        return None
    if reference.errors is None:
        return means[reference.name], drawn[reference.name]
    clean = np.nan if reference.clean is None else reference.clean
    fixed = np.array([clean if column is None else reference.errors[column] for column in columns])
    return fixed, fixed


class _Scorer:
    """The numbers of one model from its means, and the same of its resamples."""

    def __init__(
        self,
        suite: Suite,
        columns: Columns,
        reference: Reference | None,
        means: Means,
        drawn: Means,
        base: tuple[Means, Means] | None,
        images: int,
        level: float,
    ) -> None:
        self.columns = columns
        self.means, self.drawn = means, drawn
        self.base = base
        self.images, self.level = images, level
        self.metrics = statistics(suite, columns, reference)
        if base is not None and None in columns and not (base[1][..., 1:] > base[1][..., :1]).all():
            self.metrics.pop("relative_mce", None)  # a baseline that loses nothing cannot be divided by

    def estimate(self, statistic: Callable[[Means, Means | None], Any]) -> Estimate:
        value, drawn = self.both(statistic)
        return interval(value, drawn, self.images, self.level)

    def both(self, statistic: Callable[[Means, Means | None], Any]) -> tuple[float, NDArray[np.float64]]:
        base, base_drawn = self.base or (None, None)
        return float(statistic(self.means, base)), np.asarray(statistic(self.drawn, base_drawn))

    def drawn_metrics(self) -> dict[str, NDArray[np.float64]]:
        return {name: self.both(statistic)[1] for name, statistic in self.metrics.items()}

    def each(self, made: Callable[[Means, Means | None, int], Any]) -> dict[str, Estimate]:
        """One number a corruption."""
        return {
            column: self.estimate(lambda means, base, i=i: made(means, base, i))  # type: ignore[misc]
            for i, column in enumerate(self.columns)
            if column is not None
        }


def statistics(
    suite: Suite, columns: Columns, reference: Reference | None
) -> dict[str, Callable[[Means, Means | None], Any]]:
    """The metrics that can be had, each a function of a model's means and the baseline's.

    The suite's own come first, in its order.
    """
    clean = None in columns
    possible: dict[str, Callable[[Means, Means | None], Any]] = {}
    if reference is not None:
        possible["mce"] = lambda means, base: mean_corruption_error(
            _errors(means, columns), _errors(base, columns)
        )
        if clean and (reference.stored or reference.clean is not None):
            possible["relative_mce"] = lambda means, base: relative_mean_corruption_error(
                _errors(means, columns), means[..., 0], _errors(base, columns), _first(base)
            )
    rows = [i for i, column in enumerate(columns) if column is not None or suite.clean_in_mean]
    possible["mean_accuracy"] = lambda means, _: mean_accuracy(
        {str(columns[i]): 1 - means[..., i : i + 1] for i in rows}
    )
    order = [name for name in suite.metrics if name in possible]
    return {name: possible[name] for name in dict.fromkeys([*order, *possible])}


def _first(base: Means | None) -> Any:
    assert base is not None
    return base[..., 0]


def _errors(means: Means | None, columns: Columns) -> dict[str, Means]:
    assert means is not None
    return {column: means[..., i : i + 1] for i, column in enumerate(columns) if column is not None}


def _model_scores(name: str, answers: Answers, results: Results, scorer: _Scorer) -> ModelScores:
    hits = answers.correct.sum(axis=1)
    count = len(answers)
    accuracies = {
        condition: clopper_pearson(int(hit), count, scorer.level)
        for condition, hit in zip(answers.conditions, hits, strict=True)
    }
    top5 = answers.correct5.mean(axis=1)
    clean = next((value for condition, value in accuracies.items() if condition.clean), None)
    cell = next(iter(results.cells[name].values()))
    ratio = scorer.base is not None
    lost = "relative_mce" in scorer.metrics
    return ModelScores(
        model=name,
        digest=str(cell.model.get("digest") or ""),
        images=count,
        unread=answers.unread,
        clean=clean,
        metrics={metric: scorer.estimate(statistic) for metric, statistic in scorer.metrics.items()},
        corruptions=scorer.each(lambda means, _, i: means[..., i]),
        ce=scorer.each(_ce) if ratio else {},
        relative_ce=scorer.each(_relative_ce) if lost else {},
        conditions=accuracies,
        top5={condition: float(share) for condition, share in zip(answers.conditions, top5, strict=True)},
        calibration=calibrate(answers, scorer.level),
    )


def _ce(means: Means, base: Means | None, i: int) -> Any:
    assert base is not None
    return corruption_error(means[..., i : i + 1], base[..., i : i + 1])


def _relative_ce(means: Means, base: Means | None, i: int) -> Any:
    assert base is not None
    return relative_corruption_error(means[..., i : i + 1], means[..., 0], base[..., i : i + 1], base[..., 0])
