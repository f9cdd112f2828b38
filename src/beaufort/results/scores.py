"""The numbers of a suite, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import counted
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate, Ranked, clopper_pearson, rank
from beaufort.results.answers import Answers
from beaufort.results.baseline import ResultBaseline, find_baseline
from beaufort.results.calibration import Calibration, calibrate
from beaufort.results.clusters import Clusters
from beaufort.results.groups import GroupScores, group_scores
from beaufort.results.linear import Linear
from beaufort.results.open import Results
from beaufort.results.pairs import Pairs
from beaufort.results.seeds import Seeds, spread_over_seeds
from beaufort.results.shared import SharedAnswers
from beaufort.results.stability import Movement, divisors, movement, movement_forms, sequence_forms
from beaufort.results.statistics import (
    Columns,
    Divisor,
    Errors,
    columns_of,
    corruption_forms,
    find_divisor,
    metric_forms,
)
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition

if TYPE_CHECKING:
    import pandas as pd

_RESAMPLES = 1000
"""Of the calibration error, the only number that is not a mean over images."""


@dataclass(frozen=True)
class ModelScores:
    """One model's numbers; shares, not percent."""

    model: str
    digest: str
    images: int
    """Number of base images that the numbers are computed from."""
    unread: int
    """Images without an answer under at least one condition."""
    clean: Estimate | None
    """Accuracy on clean images."""
    metrics: Mapping[str, Estimate]
    """The suite's headline numbers, the first one first."""
    corruptions: Mapping[str, Estimate]
    """Error under each corruption, the mean over its severities."""
    ce: Mapping[str, Estimate]
    """Corruption error (CE): the error divided by the baseline's; empty without a baseline."""
    relative_ce: Mapping[str, Estimate]
    """Relative CE: the rise in error over clean images, divided by the baseline's rise."""
    conditions: Mapping[Condition, Estimate]
    """Accuracy under each condition."""
    top5: Mapping[Condition, Estimate]
    """Share of images whose true class is among the five most probable."""
    calibration: Mapping[str, Calibration]
    """For clean images and each severity; empty if it was not asked for."""
    groups: GroupScores | None = None
    """Accuracy in groups of images, if some were asked for."""
    movement: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """By kind, `flip_probability` or `top5_distance`, how much answers move over each sequence; empty for
    suites without sequences."""

    @property
    def headline(self) -> Estimate:
        """The suite's first number."""
        return next(iter(self.metrics.values()))


@dataclass(frozen=True, eq=False)
class Scores:
    """All numbers of some models on one suite."""

    results: Results
    baseline: ResultBaseline | None
    models: tuple[ModelScores, ...]
    """In the order of the ranking."""
    ranking: tuple[Ranked, ...]
    """By the headline number."""
    pairs: Pairs
    """Differences between the models, with what each image adds to them."""
    seeds: tuple[Seeds, ...]
    """Models that are trainings of one recipe with different seeds, if some were named."""
    errors: Mapping[str, Mapping[str, Linear]]
    """By model and corruption, what each image adds to the error."""
    ratios: Mapping[str, Mapping[str, Linear]]
    """By model and corruption, what each image adds to CE; empty for each model without a baseline."""
    images: int
    clusters: int
    """Number of independent units that intervals are computed over: clusters of images, or single images."""
    level: float
    notes: tuple[str, ...] = ()
    """Notes for the reader: which metrics could not be computed, for instance, and why."""
    image_notes: tuple[str, ...] = ()
    """Those of them that are about models of one name, and about images that do not count."""

    @property
    def suite(self) -> Suite:
        return self.results.suite

    @property
    def headline(self) -> str:
        """The name of the first metric."""
        return next(iter(self.models[0].metrics))

    @property
    def with_clean(self) -> bool:
        """Whether accuracy on clean images is a number of its own.

        It is not where nothing is done to the images: they may be a shift by themselves.
        """
        return self.models[0].clean is not None and bool(self.suite.families)

    def metric_title(self, name: str) -> str:
        """A metric's title; one that divides by a baseline says by which."""
        one = metrics[name]
        if one.unit == "ratio" and self.baseline is not None:
            return f"{one.title} vs {self.baseline.short_name}"
        return one.title

    def to_pandas(self) -> pd.DataFrame:
        """Every number as a row of a data frame; the columns are those of `beaufort report --format csv`."""
        from beaufort.results.tidy import COLUMNS, data_frame, tidy_rows

        columns = zip(*tidy_rows(self), strict=True)
        return data_frame(dict(zip(COLUMNS, columns, strict=True)), integers=["severity"])

    def _repr_html_(self) -> str:
        """The headline numbers, as a notebook shows them."""
        from beaufort.results.notebook import scores_html

        return scores_html(self)

    def corruption_errors(self, model: str, level: float) -> dict[str, Estimate]:
        """A model's error under each corruption, with intervals of another level."""
        return {corruption: form.estimate(level) for corruption, form in self.errors[model].items()}


def score(
    results: Results,
    *,
    baseline: str | None = None,
    models: Sequence[str] | None = None,
    clusters: Mapping[str, str] | None = None,
    groups: Mapping[str, str] | None = None,
    seeds: Mapping[str, Sequence[str]] | None = None,
    calibration: bool = True,
    resamples: int = _RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Scores:
    """The numbers of a store's models, on the images that all of them answered.

    Args:
        results: from `open_results`.
        baseline: a published baseline, a model of the store, or `none`; the suite's own if None. For a suite
            of sequences also a CSV file with the columns `sequence`, `flip_probability`, `top5_distance`.
        models: only these; all if None.
        clusters: which cluster each image id belongs to (patient, video, photographer); images of one cluster
            are not independent, and intervals are over clusters. Images stand alone if None.
        groups: which group each image id belongs to (hospital, camera); accuracy is given for each.
        seeds: models that are trainings of one recipe, by the name of the recipe.
        calibration: whether calibration is wanted, which takes longer than all the rest.
        resamples: of the calibration error's bootstrap.
        seed: of that bootstrap's weights.
        level: of all intervals.
    """
    names = list(dict.fromkeys(results.models if models is None else models))
    divided_by, notes = find_baseline(results, baseline)
    stored = [divided_by.name] if divided_by and divided_by.stored else []
    columns = columns_of(results.suite)
    answers = SharedAnswers(results, list(dict.fromkeys([*names, *stored])))
    ids = next(iter(answers.values())).ids
    units = None if clusters is None else Clusters.of(ids, clusters)
    errors = {name: _errors(one, columns) for name, one in answers.items()}
    moved = {name: movement(one, results.suite) for name, one in answers.items() if results.suite.sequences}
    divisor, rates = None, {}
    if divided_by is not None and moved:
        base = moved[stored[0]] if stored else None
        rates = divisors(results.suite, divided_by.name, base, divided_by.movement or {})
        unable = {name: why for one in rates.values() for name, why in one.unable.items()}
        notes = (*notes, *(f"{metrics[name].title} is not shown: {why}." for name, why in unable.items()))
    elif divided_by is not None:
        divisor = find_divisor(divided_by, columns, errors[stored[0]] if stored else None)
        notes = (*notes, *_missing(divisor, results.suite, columns))
    maker = _Maker(
        results, columns, divisor, units, groups, calibration, resamples, seed, level, moved, rates
    )
    forms = {name: maker.metrics(name, errors[name]) for name in names}
    under = {name: maker.each_form(name, errors[name], "error") for name in names}
    ratios = {name: maker.each_form(name, errors[name], "ce") for name in names}
    made = {
        name: maker.scores(name, answers[name], errors[name], forms[name], under[name], ratios[name])
        for name in names
    }
    pairs = Pairs(forms, level)
    headline = next(iter(forms[names[0]]))
    ranking = rank(
        names,
        [made[name].metrics[headline].value for name in names],
        pairs.apart(headline),
        better=metrics[headline].better or "lower",
    )
    count = len(ids)
    image_notes = (*results.notes, *left_out(made.values()), *answers.notes())
    return Scores(
        results,
        divided_by,
        tuple(made[one.name] for one in ranking),
        tuple(ranking),
        pairs,
        spread_over_seeds(forms, seeds or {}, level),
        under,
        ratios,
        count,
        count if units is None else units.count,
        level,
        (
            *image_notes,
            *_labels(results, names, max(answers[name].unlabeled for name in names)),
            *notes,
            *_few(forms[ranking[0].name][headline], level, "images" if units is None else "clusters"),
            *_warnings(forms[names[0]]),
        ),
        image_notes,
    )


def left_out(models: Iterable[ModelScores]) -> tuple[str, ...]:
    """A note on images without an answer, most likely as they could not be read; none if there are none."""
    lost = {one.model: one.unread for one in models}
    if not any(lost.values()):
        return ()
    counts = set(lost.values())
    if len(counts) == 1:
        return (f"Left out: {counted(counts.pop(), 'image')} without an answer.",)
    told = (f"{counted(count, 'image')} of {name}" for name, count in lost.items() if count)
    return (f"Left out, without an answer: {', '.join(told)}.",)


def _labels(results: Results, names: Sequence[str], unlabeled: int) -> list[str]:
    """What counts as which class, unless every output is one, and which images have no truth."""
    spaces = {name: results.space(name) for name in names}
    said: dict[str, list[str]] = {}
    for name, space in spaces.items():
        if not space.identity:
            said.setdefault(str(space), []).append(name)
    alike = len(said) == 1 and len(next(iter(said.values()))) == len(names)
    notes = [f"Labels{'' if alike else ' of ' + ', '.join(some)}: {words}." for words, some in said.items()]
    if some := [name for name, space in spaces.items() if space.foregone]:
        way = (
            ""
            if any(spaces[name].identity for name in some)
            else " Convention 'all' lets all outputs compete."
        )
        notes.append(
            f"One class alone competes, so it is the answer of {', '.join(some)} to every image, whatever it "
            f"shows: these numbers say nothing about the model.{way}"
        )
    if results.by_sets:
        notes.append(
            "An image has a set of labels, and any of them is right"
            + (f"; {unlabeled:,} images with none are left out." if unlabeled else ".")
        )
    return notes


def _errors(answers: Answers, columns: Columns) -> Errors:
    """How often each image was answered wrongly, `(images, columns)`."""
    return np.stack([answers.errors(column) for column in columns], axis=1)


def _missing(divisor: Divisor, suite: Suite, columns: Columns) -> list[str]:
    """Headline numbers that cannot be had, and why."""
    wanted = [name for name in suite.metrics if name != "relative_mce" or None in columns]
    return [
        f"{metrics[name].title} is not shown: {divisor.unable[name]}."
        for name in wanted
        if name in divisor.unable
    ]


def _warnings(forms: Mapping[str, Linear]) -> list[str]:
    """What to know about metrics that are easily misread."""
    if "relative_mce" not in forms:
        return []
    return [
        "Relative mCE divides by what the baseline loses, which is little under some corruptions, and it "
        "rewards a low clean accuracy: read it beside mCE and the clean accuracy."
    ]


def _few(headline: Linear, level: float, units: str) -> list[str]:
    """A note if there are so few images, or clusters of them, that the headline number says little."""
    known = headline.estimate(level)
    if known.exact or known.half_width <= 0.1:
        return []
    low, high = headline.bounds
    needed = math.ceil((1.96 * (high - low) / 2 / 0.05) ** 2 / 100) * 100  # if images are all or nothing
    return [
        f"Not enough {units} to say much: with {known.n:,} the headline number is known to "
        f"±{100 * known.half_width:.0f} points; about {needed:,} would give ±5, or fewer."
    ]


@dataclass(frozen=True, eq=False)
class _Maker:
    """What makes the numbers of one model after the other."""

    results: Results
    columns: Columns
    divisor: Divisor | None
    units: Clusters | None
    groups: Mapping[str, str] | None
    calibration: bool
    resamples: int
    seed: int
    level: float
    moved: Mapping[str, Movement]
    """Of each model over the sequences of the suite; empty if it has none."""
    rates: Mapping[str, Divisor]
    """What movement is divided by, by kind."""

    def metrics(self, name: str, errors: Errors) -> dict[str, Linear]:
        forms = metric_forms(self.results.suite, self.columns, name, errors, self.divisor)
        if name in self.moved:
            forms = movement_forms(self.results.suite, name, self.moved[name], self.rates) | forms
            order = [metric for metric in self.results.suite.metrics if metric in forms]
            forms = {metric: forms[metric] for metric in dict.fromkeys([*order, *forms])}
        return {metric: self.united(form) for metric, form in forms.items()}

    def united(self, form: Linear) -> Linear:
        return form if self.units is None else form.clustered(self.units.index)

    def each_form(self, name: str, errors: Errors, kind: str) -> dict[str, Linear]:
        forms = corruption_forms(self.columns, name, errors, self.divisor, kind)
        return {corruption: self.united(form) for corruption, form in forms.items()}

    def each(self, name: str, errors: Errors, kind: str) -> dict[str, Estimate]:
        forms = self.each_form(name, errors, kind)
        return {corruption: form.estimate(self.level) for corruption, form in forms.items()}

    def movement(self, name: str) -> dict[str, dict[str, Estimate]]:
        """How much a model's answers move over each sequence, by kind."""
        if name not in self.moved:
            return {}
        by_kind = {
            kind: sequence_forms(self.results.suite, name, self.moved[name], kind)
            for kind in self.moved[name].shares
        }
        return {
            kind: {sequence: self.united(form).estimate(self.level) for sequence, form in forms.items()}
            for kind, forms in by_kind.items()
        }

    def shares(self, answers: Answers, hits: NDArray[np.bool_]) -> dict[Condition, Estimate]:
        """The share of images that a condition's row of `hits` has."""
        if self.units is None:
            counts = hits.sum(axis=1)
            found = [clopper_pearson(int(count), len(answers), self.level) for count in counts]
        else:
            rows = [row.astype(np.float64)[:, None] for row in hits]
            forms = [Linear.of(0.0, {answers.model: (row, np.ones(1))}) for row in rows]
            found = [self.united(form).estimate(self.level) for form in forms]
        return dict(zip(answers.conditions, found, strict=True))

    def scores(
        self,
        name: str,
        answers: Answers,
        errors: Errors,
        forms: Mapping[str, Linear],
        under: Mapping[str, Linear],
        ratios: Mapping[str, Linear],
    ) -> ModelScores:
        """The numbers of a model, from what each image adds to its metrics, its errors and its CE."""
        accuracies = self.shares(answers, answers.correct)
        clean = next((value for condition, value in accuracies.items() if condition.clean), None)
        cell = next(iter(self.results.cells[name].values()))
        grouped = None if self.groups is None else group_scores(answers, self.groups, self.level, self.units)
        return ModelScores(
            model=name,
            digest=str(cell.model.get("digest") or ""),
            images=len(answers),
            unread=answers.unread,
            clean=clean,
            metrics={metric: form.estimate(self.level) for metric, form in forms.items()},
            corruptions={corruption: form.estimate(self.level) for corruption, form in under.items()},
            ce={corruption: form.estimate(self.level) for corruption, form in ratios.items()},
            relative_ce=self.each(name, errors, "relative_ce"),
            conditions=accuracies,
            top5=self.shares(answers, answers.correct5),
            calibration=self.calibrated(replace(answers, model=name)),
            groups=grouped,
            movement=self.movement(name),
        )

    def calibrated(self, answers: Answers) -> dict[str, Calibration]:
        if not self.calibration:
            return {}
        return calibrate(answers, self.units, self.level, resamples=self.resamples, seed=self.seed)
