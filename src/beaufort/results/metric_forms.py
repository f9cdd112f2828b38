"""The metrics of a suite as means over images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from beaufort.corruptions.sequences import sequences
from beaufort.metrics import (
    Metric,
    MetricError,
    flips,
    mean_accuracy,
    mean_corruption_error,
    metrics,
    relative_mean_corruption_error,
    top5_distances,
)
from beaufort.metrics.stability import Against
from beaufort.metrics.stats import mean_interval
from beaufort.results.baseline import ResultBaseline
from beaufort.results.linear import Linear
from beaufort.results.predictions import Predictions
from beaufort.suites import Suite
from beaufort.suites.frames import frames_shift_name

Means = NDArray[np.float64]
"""Mean errors `(1 + corruptions,)`: the clean images first, then each corruption."""

Columns = tuple[str | None, ...]
"""Columns of errors: None for the clean images, then the corruptions."""

Errors = NDArray[np.float64]
"""The error of each image, `(images, columns)`: the fraction of severities with a wrong prediction."""

_STEP = 1e-5
"""Step of the numerical derivative of a metric."""

FEWEST = 10
"""Smallest number of misclassified images under each corruption for a baseline of the store."""


def columns_of(suite: Suite) -> Columns:
    """Return the columns of errors of a suite."""
    return (*([None] if suite.clean else []), *suite.families)


def image_errors(predictions: Predictions, columns: Columns) -> Errors:
    """Return the errors of one model."""
    return np.stack([predictions.errors(column) for column in columns], axis=1)


@dataclass(frozen=True, eq=False)
class Divisor:
    """The mean errors of a baseline, and the metrics for which it cannot be the divisor."""

    name: str
    means: Means
    errors: Errors | None
    """Errors of each image, if the baseline is a model of the store."""
    unable: Mapping[str, str]
    """Metrics that cannot be computed, with the reason."""


def find_divisor(baseline: ResultBaseline, columns: Columns, errors: Errors | None) -> Divisor:
    """Return the divisor of a baseline; `errors` are those of a model of the store."""
    if errors is not None:
        return Divisor(baseline.name, errors.mean(axis=0, dtype=np.float64), errors, _unable(errors, columns))
    assert baseline.errors is not None
    clean = np.nan if baseline.clean is None else baseline.clean
    means = np.array([clean if column is None else baseline.errors[column] for column in columns])
    unable = {}
    if None in columns and baseline.clean is None:
        unable["relative_mce"] = f"the clean error of {baseline.title} was not published"
    return Divisor(baseline.name, means, None, unable)


def _unable(errors: Errors, columns: Columns) -> dict[str, str]:
    """Return the metrics that a model of the store cannot be the divisor of, with the reason."""
    n = len(errors)
    wrong = {column: int((errors[:, i] > 0).sum()) for i, column in enumerate(columns) if column is not None}
    corruption, fewest = min(wrong.items(), key=lambda item: item[1])
    if fewest < FEWEST:
        more = f"; about {-(-n * FEWEST // fewest):,} images would suffice" if fewest else ""
        reason = (
            f"not enough images: the baseline misclassifies {fewest} of {n:,} under {corruption}, but at "
            f"least {FEWEST} are required{more}"
        )
        return {"mce": reason, "relative_mce": reason}
    if None not in columns:
        return {}
    for i, column in enumerate(columns):
        if column is not None:
            lost = mean_interval(errors[:, i] - errors[:, 0], low=-1, high=1)
            if lost.low <= 0:
                return {
                    "relative_mce": "its divisor, the accuracy that the baseline loses, is not significantly "
                    f"above zero under {column} ({lost:.1%})"
                }
    return {}


def metric_forms(
    suite: Suite, columns: Columns, model: str, errors: Errors, divisor: Divisor | None
) -> dict[str, Linear]:
    """Return the metrics that can be computed; those of the suite first, in its order."""
    places = [i for i, column in enumerate(columns) if column is not None]
    found: dict[str, Linear] = {}
    for name, relative in (("mce", False), ("relative_mce", True)):
        if _can_divide(divisor, columns, relative=relative):
            found[name] = ratio_form(model, errors, divisor, places, columns, relative=relative)
    clean = suite.clean_in_mean or not places
    rows = [i for i, column in enumerate(columns) if column is not None or clean]
    found["mean_accuracy"] = _accuracy_form(model, errors, rows)
    for name in suite.metrics:
        if name in metrics and metrics[name].of_errors:
            found[name] = _own_form(metrics[name], columns, model, errors)
    order = [name for name in suite.metrics if name in found]
    return {name: found[name] for name in dict.fromkeys([*order, *found])}


def _can_divide(divisor: Divisor | None, columns: Columns, *, relative: bool) -> TypeGuard[Divisor]:
    needed = "relative_mce" if relative else "mce"
    return divisor is not None and needed not in divisor.unable and (None in columns or not relative)


def corruption_forms(
    columns: Columns, model: str, errors: Errors, divisor: Divisor | None, kind: str
) -> dict[str, Linear]:
    """Return the `error`, `ce` or `relative_ce` of each corruption; empty if it cannot be computed."""
    places = {column: i for i, column in enumerate(columns) if column is not None}
    if kind == "error":
        one = np.eye(len(columns))
        return {column: Linear.of(0.0, {model: (errors, one[i])}) for column, i in places.items()}
    relative = kind == "relative_ce"
    if not _can_divide(divisor, columns, relative=relative):
        return {}
    return {
        column: ratio_form(model, errors, divisor, [i], columns, relative=relative)
        for column, i in places.items()
    }


def ratio_form(
    model: str, errors: Errors, divisor: Divisor, places: Sequence[int], columns: Columns, *, relative: bool
) -> Linear:
    """Return the mean over columns of the model's error divided by the baseline's."""
    means = errors.mean(axis=0, dtype=np.float64)
    base = divisor.means
    named = {str(columns[i]): means[i : i + 1] for i in places}
    base_named = {str(columns[i]): base[i : i + 1] for i in places}
    if relative:
        value = float(relative_mean_corruption_error(named, means[0], base_named, base[0]))
    else:
        value = float(mean_corruption_error(named, base_named))
    clean = 1.0 if relative else 0.0
    below = base[places] - clean * base[0]
    quotient = (means[places] - clean * means[0]) / below
    ours, theirs = np.zeros(len(columns)), np.zeros(len(columns))
    ours[places] = 1 / (len(places) * below)
    theirs[places] = -quotient / (len(places) * below)
    if relative:
        ours[0], theirs[0] = -ours[places].sum(), -theirs[places].sum()
    if divisor.errors is None:
        return Linear.of(value - float(means @ ours), {model: (errors, ours)})
    if model == divisor.name:
        return Linear.of(value, {model: (errors, np.zeros(len(columns)))})
    constant = value - float(means @ ours) - float(base @ theirs)
    form = Linear.of(constant, {model: (errors, ours), divisor.name: (divisor.errors, theirs)})
    return form if relative else replace(form, floor=0.0)


def _own_form(own: Metric, columns: Columns, model: str, errors: Errors) -> Linear:
    """Return a registered metric, linearized at the measured errors."""
    means = errors.mean(axis=0, dtype=np.float64)
    units = _STEP * np.eye(len(means))
    above, below = np.minimum(means + units, 1), np.maximum(means - units, 0)
    rises = [
        _own_value(own, columns, up) - _own_value(own, columns, down)
        for up, down in zip(above, below, strict=True)
    ]
    weights = np.array(rises) / (above - below).sum(axis=1)
    if not weights.any():
        raise MetricError(f"the metric {own.name!r} does not depend on the errors around {means}")
    constant = _own_value(own, columns, means) - float(means @ weights)
    return Linear.of(constant, {model: (errors, weights)})


def _own_value(own: Metric, columns: Columns, means: Means) -> float:
    by_name = {str(name): float(mean) for name, mean in zip(columns, means, strict=True) if name is not None}
    clean = float(means[columns.index(None)]) if None in columns else None
    try:
        value = float(own(by_name, clean))
    except Exception as error:  # any error of a registered function
        cause = f"{type(error).__name__}: {error}"
        raise MetricError(f"cannot compute the metric {own.name!r} of {by_name}: {cause}") from error
    if not math.isfinite(value):
        raise MetricError(f"the metric {own.name!r} of {by_name} must be finite, got {value}")
    return value


def _accuracy_form(model: str, errors: Errors, rows: Sequence[int]) -> Linear:
    weights = np.zeros(errors.shape[1])
    weights[rows] = -1 / len(rows)
    means = errors.mean(axis=0, dtype=np.float64)
    value = float(mean_accuracy({str(i): 1 - means[i : i + 1] for i in rows}))
    return Linear.of(value - float(means @ weights), {model: (errors, weights)})


MAX_TOP5_DISTANCE = 15
"""Distance of two frames without a common class among the five best."""

RATES = {"flip_probability": "mfr", "top5_distance": "mt5d"}
"""Measures of a sequence, and their names after division by a baseline."""

Movement = Mapping[str, Errors]
"""By kind in `RATES`, how far predictions move over each sequence, `(images, sequences)`: flips as a fraction
of the frames, distances as a fraction of the largest; no distances if a model has fewer than five classes."""


def movement(predictions: Predictions, suite: Suite) -> Movement:
    """Return how often and how far predictions move over each sequence, by image."""
    found: dict[str, list[Errors]] = {}
    for name in suite.sequences:
        top = np.ascontiguousarray(predictions.top[predictions.rows[frames_shift_name(name)]].swapaxes(0, 1))
        against: Against = "first" if sequences[name][0].noise else "previous"
        found.setdefault("flip_probability", []).append(flips(top[..., 0], against=against))
        if top.shape[-1] == 5:
            far = top5_distances(top, against=against)
            found.setdefault("top5_distance", []).append(far / MAX_TOP5_DISTANCE)
    return {kind: np.stack(some, axis=1) for kind, some in found.items()}


def movement_divisors(suite: Suite, baseline: ResultBaseline, stored: Movement | None) -> dict[str, Divisor]:
    """Return the divisors of a baseline by kind; `stored` is the movement of a stored model."""
    if stored is not None:
        return {
            kind: Divisor(baseline.name, moved.mean(axis=0), moved, _too_still(suite, kind, moved))
            for kind, moved in stored.items()
        }
    return {
        kind: Divisor(
            baseline.name, np.array([values[one] for one in suite.sequences]) / _largest(kind), None, {}
        )
        for kind, values in (baseline.movement or {}).items()
    }


def _too_still(suite: Suite, kind: str, moved: Errors) -> dict[str, str]:
    """Return why a model of the store cannot be the divisor."""
    counts = (moved > 0).sum(axis=0)
    least = int(counts.argmin())
    if counts[least] >= FEWEST:
        return {}
    reason = (
        f"not enough images: the baseline's predictions change on {counts[least]} of {len(moved):,} images "
        f"over the frames of {suite.sequences[least]}, but at least {FEWEST} are required"
    )
    return {RATES[kind]: reason}


def movement_forms(suite: Suite, model: str, own: Movement, base: Mapping[str, Divisor]) -> dict[str, Linear]:
    """Return the means over all sequences, then those relative to a baseline."""
    every = range(len(suite.sequences))
    plain = {kind: _mean_movement(model, kind, moved, every) for kind, moved in own.items()}
    rates = {
        RATES[kind]: ratio_form(model, moved, base[kind], every, suite.sequences, relative=False)
        for kind, moved in own.items()
        if kind in base and not base[kind].unable
    }
    return {**plain, **rates}


def sequence_forms(suite: Suite, model: str, own: Movement) -> dict[str, dict[str, Linear]]:
    """Return the movement over each sequence by kind, not divided."""
    return {
        kind: {name: _mean_movement(model, kind, moved, [i]) for i, name in enumerate(suite.sequences)}
        for kind, moved in own.items()
    }


def _mean_movement(model: str, kind: str, moved: Errors, places: Sequence[int]) -> Linear:
    weights = np.zeros(moved.shape[1])
    weights[list(places)] = _largest(kind) / len(places)
    return Linear.of(0.0, {model: (moved, weights)})


def _largest(kind: str) -> float:
    return float(MAX_TOP5_DISTANCE) if kind == "top5_distance" else 1.0
