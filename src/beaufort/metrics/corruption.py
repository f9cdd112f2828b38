"""Errors under corruptions, relative to a baseline or averaged.

Errors are arrays by corruption with severities on the last axis: `{"fog": (0.2, 0.3, 0.5)}`. Leading axes,
such as bootstrap resamples, are kept: `(10_000, 5)` arrays give a `(10_000,)` array. A number in place of an
array is a mean over severities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from beaufort.metrics._checks import Floats, MetricError, MissingResultsError, Value, as_value, fractions
from beaufort.metrics._metric import metric

Errors: TypeAlias = Mapping[str, ArrayLike]
"""Error at each severity (last axis) by corruption, or the mean over severities."""


@metric("ce", title="CE", better="lower", unit="ratio")
def corruption_error(errors: ArrayLike, baseline: ArrayLike) -> Value:
    """Return the error under one corruption, relative to a baseline.

    Errors are summed over severities and then divided (Hendrycks & Dietterich, 2019). Both must have the same
    severities; a number is a mean over these severities.

    >>> corruption_error((0.25, 0.5), baseline=(0.5, 1.0))
    0.5
    >>> corruption_error((0.25, 0.5), baseline=0.75)
    0.5
    """
    return as_value(_ratio(errors, baseline, "the corruption"))


@metric("relative_ce", title="Relative CE", better="lower", unit="ratio")
def relative_corruption_error(
    errors: ArrayLike, clean: ArrayLike, baseline: ArrayLike, baseline_clean: ArrayLike
) -> Value:
    """Return the increase of the error under one corruption, relative to that of a baseline.

    The clean error is subtracted at each severity.

    Args:
        errors: errors by severity.
        clean: error on clean images, without the axis of severities.
        baseline: errors of the baseline, by severity.
        baseline_clean: error of the baseline on clean images.

    >>> relative_corruption_error((0.375, 0.625), 0.25, baseline=(0.75, 1.0), baseline_clean=0.5)
    0.6666666666666666
    """
    return as_value(_relative_ratio(errors, clean, baseline, baseline_clean, "the corruption"))


@metric("mce", title="mCE", better="lower", unit="ratio")
def mean_corruption_error(errors: Errors, baseline: Errors) -> Value:
    """Return the mean over corruptions of the error relative to a baseline.

    Errors are summed over the severities of a corruption and then divided, and the ratios are averaged over
    the corruptions of the baseline (Hendrycks & Dietterich, 2019). The baseline itself has 1.

    >>> mean_corruption_error({"fog": (0.25, 0.5)}, baseline={"fog": (0.5, 1.0)})
    0.5
    """
    _compare("mean_corruption_error", errors, baseline)
    return _mean([_ratio(errors[name], baseline[name], name) for name in baseline])


@metric("relative_mce", title="Relative mCE", better="lower", unit="ratio")
def relative_mean_corruption_error(
    errors: Errors, clean: ArrayLike, baseline: Errors, baseline_clean: ArrayLike
) -> Value:
    """Return the mean over corruptions of the increase of the error relative to that of a baseline.

    The clean error is subtracted at each severity, and the ratios are averaged over the corruptions of the
    baseline. The baseline itself has 1. A model with low clean accuracy can have a low value.

    >>> alexnet = {"fog": (0.75, 1.0)}
    >>> relative_mean_corruption_error({"fog": (0.5, 0.75)}, 0.5, baseline=alexnet, baseline_clean=0.5)
    0.3333333333333333
    """
    _compare("relative_mean_corruption_error", errors, baseline)
    return _mean(
        [_relative_ratio(errors[name], clean, baseline[name], baseline_clean, name) for name in baseline]
    )


@metric(better="higher")
def mean_accuracy(accuracies: Mapping[str, ArrayLike]) -> Value:
    """Return the mean accuracy over rows, each of which is averaged over its severities.

    All rows have the same weight. The caller decides whether clean images are a row: the mean of MNIST-C has
    16 rows, including the clean digits; other suites average corruptions only.

    >>> mean_accuracy({"clean": 1.0, "fog": (0.75, 0.25)})
    0.75
    """
    return _mean_of_rows(accuracies, "mean_accuracy", "the accuracy")


@metric(better="lower")
def mean_error(errors: Errors) -> Value:
    """Return the mean error over rows, each of which is averaged over its severities.

    This is what is called mCE on CIFAR-10-C, and unnormalized mCE elsewhere.

    >>> mean_error({"fog": (0.25, 0.75), "snow": (0.5, 1.0)})
    0.625
    """
    return _mean_of_rows(errors, "mean_error", "the error")


def _mean_of_rows(rows: Mapping[str, ArrayLike], what: str, of: str) -> Value:
    if not rows:
        raise MissingResultsError(f"{what} requires at least one row")
    return _mean([_average(fractions(row, f"{of} under {name}")) for name, row in rows.items()])


def _compare(what: str, errors: Errors, baseline: Errors) -> None:
    if not baseline:
        raise MissingResultsError(f"{what} requires a baseline of at least one corruption")
    if missing := [name for name in baseline if name not in errors]:
        raise MissingResultsError(
            f"{what} has no errors under {', '.join(missing)}; evaluate them, or omit them from the baseline"
        )


def _mean(rows: list[Floats]) -> Value:
    return as_value(np.mean(np.broadcast_arrays(*rows), axis=0) if len(rows) > 1 else rows[0])


def _average(values: Floats) -> Floats:
    """Return the mean over severities; a number is a mean already."""
    return np.asarray(values.mean(axis=-1) if values.ndim else values)


def _pair(errors: ArrayLike, baseline: ArrayLike, name: str) -> tuple[Floats, Floats]:
    ours = fractions(errors, f"the error under {name}")
    theirs = fractions(baseline, f"the baseline's error under {name}")
    if ours.ndim and theirs.ndim and ours.shape[-1] != theirs.shape[-1]:
        raise MetricError(
            f"the errors under {name} have {ours.shape[-1]} severities (last axis), but the baseline has "
            f"{theirs.shape[-1]}; select the evaluated ones, or pass the mean of the baseline as a number"
        )
    return _average(ours), _average(theirs)


def _ratio(errors: ArrayLike, baseline: ArrayLike, name: str) -> Floats:
    ours, theirs = _pair(errors, baseline, name)
    if (theirs <= 0).any():
        raise MetricError(
            f"the error of the baseline under {name}, the divisor of CE, is 0{_where(theirs <= 0)}; omit "
            f"{name}, or use another baseline"
        )
    return np.asarray(ours / theirs)


def _relative_ratio(
    errors: ArrayLike, clean: ArrayLike, baseline: ArrayLike, baseline_clean: ArrayLike, name: str
) -> Floats:
    ours, theirs = _pair(errors, baseline, name)
    added = np.asarray(ours - fractions(clean, "the clean error"))
    base = np.asarray(theirs - fractions(baseline_clean, "the baseline's clean error"))
    if (base <= 0).any():
        raise MetricError(
            f"the error of the baseline under {name} is not higher than on clean images{_where(base <= 0)}, "
            f"but relative CE divides by the difference; omit {name}, or use another baseline"
        )
    return np.asarray(added / base)


def _where(bad: np.typing.NDArray[np.bool_]) -> str:
    return f" in {bad.sum()} of {bad.size} resamples" if bad.ndim else ""
