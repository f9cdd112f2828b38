"""Compute the numbers of a suite from predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import counted
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate, clopper_pearson, rank
from beaufort.results.baseline import find_baseline
from beaufort.results.calibration import calibrate
from beaufort.results.differences import Pairs, Seeds
from beaufort.results.linear import Clusters, Linear, find_clusters, values_of
from beaufort.results.metric_forms import (
    Columns,
    Divisor,
    Errors,
    Movement,
    columns_of,
    corruption_forms,
    find_divisor,
    image_errors,
    metric_forms,
    movement,
    movement_divisors,
    movement_forms,
    sequence_forms,
)
from beaufort.results.predictions import Predictions, SharedPredictions
from beaufort.results.results import Results
from beaufort.results.scores import GroupScores, ModelScores, Scores
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition

_RESAMPLES = 1000
"""Resamples for the calibration error, the only number that is not a mean over images."""


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
    """Compute the numbers of models, on the images that all of them have predictions for.

    Args:
        results: from `open_results`.
        baseline: a published baseline, a model of the store, or `none`; the suite's own if None. For a suite
            of sequences also a CSV file with the columns `sequence`, `flip_probability`, `top5_distance`.
        models: only these; all if None.
        clusters: which cluster each image id belongs to (patient, video, photographer); images of one cluster
            are not independent, and intervals are over clusters. Images stand alone if None.
        groups: which group each image id belongs to (hospital, camera); accuracy is given for each.
        seeds: models that are training runs of one recipe, by the name of the recipe.
        calibration: whether to compute calibration, which takes longer than all the rest.
        resamples: of the calibration error's bootstrap.
        seed: of that bootstrap's weights.
        level: of all intervals.
    """
    suite, columns = results.suite, columns_of(results.suite)
    names = list(dict.fromkeys(results.models if models is None else models))
    divided_by, notes = find_baseline(results, baseline)
    stored = [divided_by.name] if divided_by and divided_by.stored else []
    predictions = SharedPredictions(results, list(dict.fromkeys([*names, *stored])))
    calibration = calibration and all(one.has_probabilities for one in predictions.values())
    ids = next(iter(predictions.values())).ids
    errors = {name: image_errors(one, columns) for name, one in predictions.items()}
    moved = {name: movement(one, suite) for name, one in predictions.items() if suite.sequences}
    divisor: Divisor | None = None
    movement_divisor: dict[str, Divisor] = {}
    if divided_by is not None and moved:
        movement_divisor = movement_divisors(suite, divided_by, moved[stored[0]] if stored else None)
    elif divided_by is not None:
        divisor = find_divisor(divided_by, columns, errors[stored[0]] if stored else None)
    units = find_clusters(ids, clusters)
    scorer = _Scorer(results, columns, divisor, movement_divisor, units, level)
    forms = {name: scorer.metrics(name, errors[name], moved.get(name)) for name in names}
    found = {}
    for name in names:
        one = replace(predictions[name], model=name)
        scored = scorer.scores(one, errors[name], forms[name], moved.get(name, {}))
        if groups is not None:
            scored = replace(scored, groups=_group_scores(one, groups, level, units))
        if calibration:
            made = calibrate(one, units, level, resamples=resamples, seed=seed)
            scored = replace(scored, calibration=made)
        found[name] = scored
    pairs = Pairs(forms, level)
    headline = next(iter(forms[names[0]]))
    ranking = rank(
        names,
        [found[name].metrics[headline].value for name in names],
        pairs.significant(headline),
        better=metrics[headline].better or "lower",
    )
    unlabeled = max(predictions[name].unlabeled for name in names)
    best = forms[ranking[0].name][headline]
    return Scores(
        results=results,
        baseline=divided_by,
        models=tuple(found[one.name] for one in ranking),
        ranking=tuple(ranking),
        pairs=pairs,
        seeds=tuple(Seeds.of(name, some, pairs) for name, some in (seeds or {}).items()),
        clusters=len(ids) if units is None else int(units.max()) + 1,
        image_notes=(*results.notes, *_omitted(found.values()), *predictions.notes()),
        metric_notes=(
            *_label_notes(results, names, unlabeled),
            *notes,
            *_missing_metrics(suite, columns, [*movement_divisor.values(), *([divisor] if divisor else [])]),
            *_too_few(best, level, "images" if units is None else "clusters"),
            *_warnings(forms[names[0]]),
        ),
    )


@dataclass(frozen=True, eq=False)
class _Scorer:
    """Computes the numbers of one model after the other."""

    results: Results
    columns: Columns
    divisor: Divisor | None
    movement_divisor: Mapping[str, Divisor]
    """Divisors by kind of movement."""
    units: Clusters | None
    level: float

    def metrics(self, name: str, errors: Errors, moved: Movement | None) -> dict[str, Linear]:
        """Return the headline metrics; those of the suite first, in its order."""
        suite = self.results.suite
        forms = metric_forms(suite, self.columns, name, errors, self.divisor)
        if moved is not None:
            forms = movement_forms(suite, name, moved, self.movement_divisor) | forms
            order = [metric for metric in suite.metrics if metric in forms]
            forms = {metric: forms[metric] for metric in dict.fromkeys([*order, *forms])}
        return {metric: form.clustered(self.units) for metric, form in forms.items()}

    def estimates(self, forms: Mapping[str, Linear]) -> dict[str, Estimate]:
        return {name: form.estimate(self.level) for name, form in forms.items()}

    def corruptions(self, name: str, errors: Errors, kind: str) -> dict[str, Linear]:
        forms = corruption_forms(self.columns, name, errors, self.divisor, kind)
        return {corruption: form.clustered(self.units) for corruption, form in forms.items()}

    def clean(self, name: str, errors: Errors) -> Linear | None:
        """Return the clean error, if there are clean images."""
        if None not in self.columns:
            return None
        weights = np.array([float(column is None) for column in self.columns])
        return Linear.of(0.0, {name: (errors, weights)}).clustered(self.units)

    def fractions(self, predictions: Predictions, hits: NDArray[np.bool_]) -> dict[Condition, Estimate]:
        """Return the fraction of images in each condition's row of `hits`."""
        if self.units is None:
            found = [clopper_pearson(int(count), hits.shape[1], self.level) for count in hits.sum(axis=1)]
        else:
            rows = [row.astype(np.float64)[:, None] for row in hits]
            forms = [Linear.of(0.0, {predictions.model: (row, np.ones(1))}) for row in rows]
            found = [form.clustered(self.units).estimate(self.level) for form in forms]
        return dict(zip(predictions.conditions, found, strict=True))

    def scores(
        self, predictions: Predictions, errors: Errors, forms: Mapping[str, Linear], moved: Movement
    ) -> ModelScores:
        """Return the metrics of a model, without groups and calibration."""
        name = predictions.model
        accuracies = self.fractions(predictions, predictions.correct)
        error_forms = self.corruptions(name, errors, "error")
        ce_forms = self.corruptions(name, errors, "ce")
        by_kind = sequence_forms(self.results.suite, name, moved)
        cell = next(iter(self.results.cells[name].values()))
        return ModelScores(
            model=name,
            digest=str(cell.model.get("digest") or ""),
            images=len(predictions),
            unread=predictions.unread,
            clean=next((value for condition, value in accuracies.items() if condition.clean), None),
            metrics=self.estimates(forms),
            corruptions=self.estimates(error_forms),
            ce=self.estimates(ce_forms),
            relative_ce=self.estimates(self.corruptions(name, errors, "relative_ce")),
            conditions=accuracies,
            top5=self.fractions(predictions, predictions.correct5),
            calibration={},
            error_forms=error_forms,
            ce_forms=ce_forms,
            clean_form=self.clean(name, errors),
            movement={
                kind: self.estimates({one: form.clustered(self.units) for one, form in some.items()})
                for kind, some in by_kind.items()
            },
        )


def _group_scores(
    predictions: Predictions, named: Mapping[str, str], level: float, units: Clusters | None
) -> GroupScores:
    """Return the accuracy of a model in each group, the mean over all conditions.

    The intervals are Bonferroni's, so that they hold together; only then is the least of their ends an end of
    an interval of the least accuracy.
    """
    values = np.array(values_of(predictions.ids, named))
    correct = predictions.correct.mean(axis=0, dtype=np.float64)
    names = sorted(set(values.tolist()))
    each = 1 - (1 - level) / len(names)
    found = {}
    for name in names:
        places = np.flatnonzero(values == name)
        form = Linear.of(0.0, {"": (correct[places, None], np.ones(1))})
        if units is not None:
            form = form.clustered(np.unique(units[places], return_inverse=True)[1])
        found[name] = form.estimate(each)
    worst_name, worst = min(found.items(), key=lambda item: item[1].value)
    low, high = (min(getattr(one, end) for one in found.values()) for end in ("low", "high"))
    return GroupScores(found, Estimate(worst.value, low, high, worst.n, level), worst_name)


def _omitted(models: Iterable[ModelScores]) -> tuple[str, ...]:
    """Return a note on images without a prediction."""
    lost = {one.model: one.unread for one in models}
    if not any(lost.values()):
        return ()
    counts = set(lost.values())
    if len(counts) == 1:
        return (f"Omitted: {counted(counts.pop(), 'image')} without a prediction.",)
    each = (f"{counted(count, 'image')} of {name}" for name, count in lost.items() if count)
    return (f"Omitted, without a prediction: {', '.join(each)}.",)


def _label_notes(results: Results, names: Sequence[str], unlabeled: int) -> list[str]:
    """Return notes on label spaces and on images without a label."""
    spaces = {name: results.space(name) for name in names}
    said: dict[str, list[str]] = {}
    for name, space in spaces.items():
        if not space.identity:
            said.setdefault(str(space), []).append(name)
    alike = len(said) == 1 and len(next(iter(said.values()))) == len(names)
    notes = [f"Labels{'' if alike else ' of ' + ', '.join(some)}: {words}." for words, some in said.items()]
    if some := [name for name, space in spaces.items() if space.is_trivial]:
        way_out = " Use the convention 'all' to let all outputs compete."
        notes.append(
            f"Only one class competes, so {', '.join(some)} predicts it for every image, and these numbers "
            f"are meaningless.{'' if any(spaces[name].identity for name in some) else way_out}"
        )
    if results.by_sets:
        notes.append(
            "An image has a set of valid labels"
            + (f"; {unlabeled:,} images without one are omitted." if unlabeled else ".")
        )
    return notes


def _missing_metrics(suite: Suite, columns: Columns, divisors: Sequence[Divisor]) -> list[str]:
    """Return notes on metrics that cannot be computed."""
    unable = {name: why for one in divisors for name, why in one.unable.items()}
    if None not in columns and "relative_mce" not in suite.metrics:
        unable.pop("relative_mce", None)
    if "relative_mce" not in suite.metrics and unable.get("relative_mce") == unable.get("mce"):
        unable.pop("relative_mce", None)
    return [f"{metrics[name].title} is not shown: {why}." for name, why in unable.items()]


def _warnings(forms: Mapping[str, Linear]) -> list[str]:
    """Return notes on metrics that are easily misinterpreted."""
    if "relative_mce" not in forms:
        return []
    return [
        "Relative mCE divides by the accuracy that the baseline loses, which is small under some "
        "corruptions, and rewards a low clean accuracy; interpret it with mCE and the clean accuracy."
    ]


def _too_few(headline: Linear, level: float, units: str) -> list[str]:
    """Return a note if the interval of the headline metric is very wide."""
    known = headline.estimate(level)
    if known.exact or known.half_width <= 0.1:
        return []
    low, high = headline.bounds
    needed = math.ceil((1.96 * (high - low) / 2 / 0.05) ** 2 / 100) * 100  # if images are all or nothing
    return [
        f"Too few {units}: the headline metric of {known.n:,} {units} has an interval of "
        f"±{100 * known.half_width:.0f} points; at most {needed:,} are required for ±5 points."
    ]
