"""Abstention under shift: which predictions to trust, and prediction sets calibrated on clean images.

The risk–coverage numbers need the stored confidences alone. Temperature scaling and conformal prediction sets
need all logits of a run with `keep_logits`. They are calibrated on the clean versions of one half of the
images and judged on all versions of the other half. An image's half depends on its id alone, so that it is
the same for every model.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_fraction
from beaufort.metrics import (
    CONFORMAL_METHODS,
    conformal_scores,
    conformal_sets,
    conformal_threshold,
    fit_temperature,
)
from beaufort.metrics.abstention import block_means, covered_count, sorted_blocks
from beaufort.metrics.stats import Estimate, clopper_pearson
from beaufort.models.scoring import score_logits
from beaufort.results._match import ResultsError
from beaufort.results.calibration import Calibration, calibrate, calibration_rows
from beaufort.results.linear import Clusters, Linear, find_clusters
from beaufort.results.predictions import Predictions, SharedPredictions
from beaufort.results.results import Results
from beaufort.store.columns import column_of, numbers_of
from beaufort.suites.conditions import Condition

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


UNSEEN = 2.0
"""Largest influence of an unseen image on the area under the risk–coverage curve, at least.

A wrong image in front of a fraction G of all images adds -ln G: 2 for the most confident 14 %. The logarithm
has no limit; in simulations, intervals with this one cover the area in at least 94 % of cases."""


@dataclass(frozen=True)
class PredictionSetScore:
    """Prediction sets of one method under one condition."""

    method: str
    """One of `beaufort.metrics.CONFORMAL_METHODS`."""
    coverage: Estimate
    """Fraction of images whose set contains the label."""
    size: Estimate
    """Mean number of classes in a set."""
    form: Linear | None = field(default=None, repr=False, compare=False)
    """What each judging image adds to the coverage."""


@dataclass(frozen=True)
class ConditionAbstention:
    """What can be gained by abstention under one condition."""

    condition: Condition
    accuracy: Estimate
    aurc: Estimate
    """Area under the risk–coverage curve."""
    selective: Estimate
    """Accuracy on the most confident images, at the coverage of the `Abstention`."""
    sets: tuple[PredictionSetScore, ...] = ()
    """Prediction sets on the second half of the images; empty without stored logits."""


@dataclass(frozen=True)
class TemperatureScaling:
    """A temperature that was fitted on clean images, judged on the second half of the images."""

    temperature: float
    before: Mapping[str, Calibration]
    after: Mapping[str, Calibration]
    """Calibration on clean images and at each severity, as from `calibrate`."""


@dataclass(frozen=True)
class Abstention:
    """Selective prediction and prediction sets of one model under all conditions."""

    model: str
    conditions: tuple[ConditionAbstention, ...]
    coverage: float
    """Fraction of images that are predicted, for `ConditionAbstention.selective`."""
    set_coverage: float
    """Coverage that prediction sets are calibrated to."""
    scaling: TemperatureScaling | None
    """None without stored logits."""
    images: int
    calibrated_on: int
    """Number of clean images for calibration; the others judge."""
    level: float
    notes: tuple[str, ...] = ()
    """Why numbers are missing."""


def score_abstention(
    results: Results,
    models: Sequence[str] | None = None,
    *,
    coverage: float = 0.8,
    set_coverage: float = 0.9,
    clusters: Mapping[str, str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Abstention, ...]:
    """Return risk–coverage numbers, temperature scaling and prediction sets of models on the same images.

    Args:
        results: results of the models.
        models: names of the models; all if None.
        coverage: fraction of images that are predicted, for the accuracy at fixed coverage.
        set_coverage: coverage that prediction sets are calibrated to.
        clusters: clusters of images that are not independent, as for `score`; a cluster is in one half.
        level: confidence level of all intervals.
        seed: of the halves and of randomized sets.
    """
    validate_fraction("coverage", coverage)
    validate_fraction("set_coverage", set_coverage)
    names = list(dict.fromkeys(results.models if models is None else models))
    if not names:
        raise OptionError("models must name at least one")
    shared = SharedPredictions(results, names)
    found = []
    for name in names:
        predictions = replace(shared[name], model=name)
        if not predictions.has_probabilities:
            raise ResultsError(f"the predictions of {name} were published without probabilities")
        units = find_clusters(predictions.ids, clusters)
        split = _Split.of(predictions, clusters, units, seed)
        calibrated = _calibrated(results, predictions, split, set_coverage, level)
        conditions = tuple(
            ConditionAbstention(
                condition,
                _proportion(predictions.correct[row], units, level),
                _fraction(aurc_form(*_pair(predictions, row)).clustered(units), level),
                _fraction(selective_form(*_pair(predictions, row), coverage).clustered(units), level),
                calibrated.sets.get(condition, ()),
            )
            for row, condition in enumerate(predictions.conditions)
        )
        used = int(split.calibrating.sum()) if calibrated.scaling is not None else 0
        found.append(
            Abstention(
                name,
                conditions,
                coverage,
                set_coverage,
                calibrated.scaling,
                len(predictions),
                used,
                level,
                calibrated.notes,
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class SetsBySeverity:
    """Prediction sets of one model on clean images and at each severity."""

    model: str
    scores: Mapping[str, tuple[PredictionSetScore, ...]]
    """Means over corruptions for `clean` and each severity, or `corrupted`; empty without stored logits."""
    set_coverage: float
    images: int
    calibrated_on: int
    """Number of clean images for calibration; the others judge."""
    notes: tuple[str, ...] = ()
    """Why numbers are missing."""


def sets_by_severity(
    results: Results,
    models: Sequence[str] | None = None,
    *,
    set_coverage: float = 0.9,
    clusters: Mapping[str, str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[SetsBySeverity, ...]:
    """Return prediction sets of models by severity; the arguments are those of `score_abstention`."""
    names = list(results.models if models is None else models)
    shared = SharedPredictions(results, names)
    found = []
    for name in names:
        predictions = replace(shared[name], model=name)
        split = _Split.of(predictions, clusters, find_clusters(predictions.ids, clusters), seed)
        calibrated = _calibrated(results, predictions, split, set_coverage, level)
        count = int(split.calibrating.sum())
        found.append(
            SetsBySeverity(
                name, calibrated.by_severity, set_coverage, len(predictions), count, calibrated.notes
            )
        )
    return tuple(found)


def _pair(predictions: Predictions, row: int) -> tuple[NDArray[np.float32], Flags]:
    """Return the confidence and whether the prediction is correct, under one condition."""
    return predictions.confidence[row], predictions.correct[row]


def _fraction(form: Linear, level: float) -> Estimate:
    """Return the interval of a number from 0 to 1, whose influences may be outside."""
    one = form.estimate(level)
    return replace(one, low=max(one.low, 0.0), high=min(one.high, max(1.0, one.value)))


def aurc_form(confidence: NDArray[Any], correct: Flags) -> Linear:
    """Return the area under the risk–coverage curve with the influence of each image.

    The area is the mean of err · h, with h = Σ 1/k over the positions from the image's own to the last. An
    image also moves all that are less confident: its influence adds the mean error, minus Σ err/j over these.
    The mean of the influences is the area. What an unseen image can add is limited by the largest value that
    was observed, or `UNSEEN`.
    """
    order, blocks, right = sorted_blocks(confidence, correct)
    n = len(order)
    errors = 1 - right[order]
    mean_errors = block_means(errors, blocks)
    position = np.arange(1, n + 1)
    harmonic = block_means(np.cumsum((1 / position)[::-1])[::-1], blocks)
    behind = block_means(np.cumsum((mean_errors / position)[::-1])[::-1], blocks)
    values = np.empty(n)
    values[order] = errors * harmonic + errors.mean() - behind
    high = float(max(UNSEEN, values.max()))
    low = float(min(0.0, values.min()))
    return Linear(values, {"": np.array([low, high])}, 0.0, floor=0.0, paired=True)


def selective_form(confidence: NDArray[Any], correct: Flags, coverage: float) -> Linear:
    """Return the accuracy at a coverage with the influence of each image.

    Other images would move the threshold: a covered one counts relative to the accuracy at the threshold,
    which is that of the √n images on either side of it.
    """
    order, blocks, right = sorted_blocks(confidence, correct)
    n = len(order)
    count = covered_count(n, coverage)
    covered = block_means((np.arange(n) < count).astype(np.float64), blocks)
    near = math.isqrt(n)
    at = float(right[order][max(0, count - near) : count + near].mean()) if count < n else 0.0
    fraction = count / n
    values = np.empty(n)
    values[order] = at + covered * (right[order] - at) / fraction
    low, high = at - at / fraction, at + (1 - at) / fraction
    return Linear(values, {"": np.array([high - low])}, low)


class SelectiveScores(NamedTuple):
    """Selective prediction on several conditions together."""

    aurc: Estimate
    """Area under the risk–coverage curve, the mean over conditions."""
    selective: Estimate
    """Accuracy at the coverage, the mean over conditions."""


def selective_by_severity(
    predictions: Predictions, coverage: float = 0.8, level: float = 0.95
) -> dict[str, SelectiveScores]:
    """Return selective prediction on clean images and at each severity, the mean over corruptions.

    Suites with one published severity have `clean` and `corrupted`.
    """
    found = {}
    for name, rows in calibration_rows(predictions).items():
        area = Linear.mean([aurc_form(*_pair(predictions, row)) for row in rows])
        selective = Linear.mean([selective_form(*_pair(predictions, row), coverage) for row in rows])
        found[name] = SelectiveScores(_fraction(area, level), _fraction(selective, level))
    return found


@dataclass(frozen=True, eq=False)
class _Split:
    """Which images calibrate; the others judge."""

    calibrating: Flags
    uniform: Floats
    """A uniform random number for each image, for randomized sets."""
    units: Clusters | None
    """Clusters of the judging images."""

    @classmethod
    def of(
        cls,
        predictions: Predictions,
        clusters: Mapping[str, str] | None,
        units: Clusters | None,
        seed: int,
    ) -> _Split:
        names = predictions.ids if clusters is None else [clusters[image] for image in predictions.ids]
        calibrating = np.array([_uniform(seed, "half", name) < 0.5 for name in names])
        uniform = np.array([_uniform(seed, "set", image) for image in predictions.ids])
        judging = None
        if units is not None:
            judging = np.unique(units[~calibrating], return_inverse=True)[1].astype(np.intp)
        return cls(calibrating, uniform, judging)


def _uniform(seed: int, purpose: str, name: str) -> float:
    """Return a number from 0 to 1 that depends on the name alone."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class _Calibrated(NamedTuple):
    """Numbers of what is calibrated on clean images, or notes on why they are missing."""

    sets: Mapping[Condition, tuple[PredictionSetScore, ...]] = {}
    by_severity: Mapping[str, tuple[PredictionSetScore, ...]] = {}
    scaling: TemperatureScaling | None = None
    notes: tuple[str, ...] = ()


def _calibrated(
    results: Results, predictions: Predictions, split: _Split, set_coverage: float, level: float
) -> _Calibrated:
    model = predictions.model

    def without(reason: str) -> _Calibrated:
        note = f"{model}: prediction sets and temperature scaling are omitted, because {reason}"
        return _Calibrated(notes=(note,))

    clean = next((condition for condition in predictions.conditions if condition.clean), None)
    if clean is None:
        return without("the suite has no clean images to calibrate on")
    at = int(split.calibrating.sum())
    if not 0 < at < len(predictions) or (split.units is not None and split.units.max() < 1):
        return without("there are too few images to calibrate and evaluate")
    first = stored_logits(results, model, clean, predictions.ids)
    if first is None:
        return without("the run did not store all logits; run it again with --config keep_logits=true")
    labels = predictions.labels if predictions.label_sets is None else predictions.label_sets
    chosen = split.calibrating
    one_label = labels if labels.ndim == 1 else labels[:, 0]
    temperature = fit_temperature(first[chosen], one_label[chosen].astype(np.int64))
    thresholds = {}
    for method in CONFORMAL_METHODS:
        scores = conformal_scores(_softmax(first[chosen]), method, uniform=split.uniform[chosen])
        thresholds[method] = conformal_threshold(_label_scores(scores, labels[chosen]), set_coverage)
    judging = np.flatnonzero(~chosen)
    hits: dict[str, list[Flags]] = {method: [] for method in thresholds}
    sizes: dict[str, list[Floats]] = {method: [] for method in thresholds}
    scaled: dict[str, list[NDArray[Any]]] = {name: [] for name in ("confidence", "nll", "brier", "entropy")}
    for condition in predictions.conditions:
        logits = first if condition == clean else stored_logits(results, model, condition, predictions.ids)
        if logits is None:
            return without(f"{condition} was stored without all logits")
        logits = logits[judging]
        p = _softmax(logits)
        for method, threshold in thresholds.items():
            scores = conformal_scores(p, method, uniform=split.uniform[judging])
            hits[method].append(_label_scores(scores, labels[judging]) <= threshold)
            sizes[method].append(conformal_sets(scores, threshold).sum(axis=1) / p.shape[1])
        scores_at = score_logits((logits / temperature).astype(np.float32), labels[judging])
        scaled["confidence"].append(scores_at.p[:, 0])
        for name in ("nll", "brier", "entropy"):
            scaled[name].append(getattr(scores_at, name))
    before = predictions.take(judging)
    stacked: dict[str, Any] = {name: np.stack(rows) for name, rows in scaled.items()}
    after = replace(before, **stacked)

    def scored(rows: Sequence[int]) -> tuple[PredictionSetScore, ...]:
        return tuple(
            _set_score(
                method,
                [hits[method][row] for row in rows],
                [sizes[method][row] for row in rows],
                first.shape[1],
                split.units,
                level,
            )
            for method in thresholds
        )

    return _Calibrated(
        {condition: scored([row]) for row, condition in enumerate(predictions.conditions)},
        {name: scored(rows) for name, rows in calibration_rows(predictions).items()},
        TemperatureScaling(
            temperature, calibrate(before, split.units, level), calibrate(after, split.units, level)
        ),
    )


def _set_score(
    method: str,
    hits: Sequence[Flags],
    sizes: Sequence[Floats],
    classes: int,
    units: Clusters | None,
    level: float,
) -> PredictionSetScore:
    """Return the score of a method, the mean over conditions; sizes are fractions of all classes."""
    form = _mean(np.mean(hits, axis=0)).clustered(units)
    return PredictionSetScore(
        method,
        _proportion(hits[0], units, level) if len(hits) == 1 else form.estimate(level),
        _mean(np.mean(sizes, axis=0), classes).clustered(units).estimate(level),
        form,
    )


def stored_logits(
    results: Results, model: str, condition: Condition, ids: Sequence[str]
) -> NDArray[np.float32] | None:
    """Return the logits of a model for some images in its label space; None if they were not stored."""
    source = results.sources[model]
    if isinstance(source, Predictions):
        return None
    table = source.store.read(results.cells[model][condition], source.listing)
    if "logits" not in table.column_names:
        return None
    places = {str(image): place for place, image in enumerate(table["id"].to_pylist())}
    rows = table.take(column_of(np.array([places[image] for image in ids])))
    column: Any = rows["logits"].combine_chunks()
    flat = np.asarray(numbers_of(column.flatten()), np.float32)
    return np.asarray(results.space(model).apply(flat.reshape(len(rows), -1)), np.float32)


def _softmax(logits: NDArray[np.float32]) -> Floats:
    wide = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return np.asarray(wide / wide.sum(axis=1, keepdims=True))


def _label_scores(scores: Floats, labels: NDArray[Any]) -> Floats:
    """Return the score of the label of each image; of the most conforming one of several."""
    several = labels[:, None] if labels.ndim == 1 else labels
    of_each = np.take_along_axis(scores, np.maximum(several, 0), axis=1)
    return np.asarray(np.where(several >= 0, of_each, np.inf).min(axis=1))


def _mean(values_per_image: NDArray[Any], high: float = 1.0) -> Linear:
    """Return the mean of numbers from 0 to `high`, given as fractions of it."""
    return Linear.of(0.0, {"": (np.asarray(values_per_image, np.float64)[:, None], np.array([high]))})


def _proportion(flags: Flags, units: Clusters | None, level: float) -> Estimate:
    if units is None:
        return clopper_pearson(int(flags.sum()), len(flags), level)
    return _mean(flags).clustered(units).estimate(level)
