"""Errors under corruptions, relative to a baseline's or plainly averaged.

Errors come by corruption, as arrays with the severities on the last axis: `{"fog": (0.2, 0.3, 0.5)}`.
Leading axes, such as the resamples of a bootstrap, are carried through: from `(10_000, 5)` arrays
comes a `(10_000,)` array. A plain number in place of an array is an average over the severities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from beaufort.metrics._checks import Floats, MetricError, MissingResultsError, Value, as_value, fractions
from beaufort.metrics._metric import metric

Errors: TypeAlias = Mapping[str, ArrayLike]
"""By corruption, the share of wrong answers at each severity (last axis), or a number: their average."""


@metric("ce", title="CE", better="lower", unit="ratio")
def corruption_error(errors: ArrayLike, baseline: ArrayLike) -> Value:
    """Error under one corruption, relative to a baseline's.

    Errors are summed over the severities and then divided (Hendrycks & Dietterich, 2019); dividing severity
    by severity and averaging is something else. Both must have the same severities, so as many. A
    plain number is an average over these severities.

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
    """How much error one corruption adds to the clean error, relative to what it adds to a baseline's.

    The clean error is subtracted at each severity, which is to subtract it from the average.

    Args:
        errors: by severity.
        clean: on the clean images; no axis of severities.
        baseline: errors of the baseline, by severity.
        baseline_clean: error of the baseline on the clean images.

    >>> relative_corruption_error((0.375, 0.625), 0.25, baseline=(0.75, 1.0), baseline_clean=0.5)
    0.6666666666666666
    """
    return as_value(_relative_ratio(errors, clean, baseline, baseline_clean, "the corruption"))


@metric("mce", title="mCE", better="lower", unit="ratio")
def mean_corruption_error(errors: Errors, baseline: Errors) -> Value:
    """Average over corruptions of the error under each, relative to a baseline's.

    Errors are summed over the severities of a corruption before they are divided, and the ratios are averaged
    over the corruptions of the baseline (Hendrycks & Dietterich, 2019). 1 is as good as the baseline.

    >>> mean_corruption_error({"fog": (0.25, 0.5)}, baseline={"fog": (0.5, 1.0)})
    0.5
    """
    _compare("mean_corruption_error", errors, baseline)
    return _mean([_ratio(errors[name], baseline[name], name) for name in baseline])


@metric("relative_mce", title="Relative mCE", better="lower", unit="ratio")
def relative_mean_corruption_error(
    errors: Errors, clean: ArrayLike, baseline: Errors, baseline_clean: ArrayLike
) -> Value:
    """Average over corruptions of the error that each adds, relative to what it adds to a baseline's.

    The clean error is subtracted at each severity; the ratios are averaged over the corruptions of the
    baseline. Relative to the baseline's *loss* of accuracy, 1 is as good as the baseline; a model that is
    bad on clean images can be good at this.

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
    """Average of the rows' accuracies, each row an average over its severities.

    Every row that comes is averaged, and all weigh the same. Whether the clean images are one is for the
    caller to say: the mean that MNIST-C prints has 16 rows, the 15 corruptions and the clean digits; for
    other suites it is the corruptions alone.

    >>> mean_accuracy({"clean": 1.0, "fog": (0.75, 0.25)})
    0.75
    """
    return _mean_of_rows(accuracies, "mean_accuracy", "the accuracy")


@metric(better="lower")
def mean_error(errors: Errors) -> Value:
    """Average of the rows' errors, each row an average over its severities; no baseline divides it.

    On CIFAR-10-C, and where it is said to be unnormalized, this is what others call mCE.

    >>> mean_error({"fog": (0.25, 0.75), "snow": (0.5, 1.0)})
    0.625
    """
    return _mean_of_rows(errors, "mean_error", "the error")


def _mean_of_rows(rows: Mapping[str, ArrayLike], what: str, of: str) -> Value:
    if not rows:
        raise MissingResultsError(f"{what} needs at least one row; evaluate at least one condition")
    return _mean([_average(fractions(row, f"{of} under {name}")) for name, row in rows.items()])


def _compare(what: str, errors: Errors, baseline: Errors) -> None:
    if not baseline:
        raise MissingResultsError(f"{what} needs a baseline of at least one corruption, got none")
    if absent := [name for name in baseline if name not in errors]:
        raise MissingResultsError(
            f"{what} needs {', '.join(absent)}: evaluate them, or leave them out of the baseline"
        )


def _mean(rows: list[Floats]) -> Value:
    return as_value(np.mean(np.broadcast_arrays(*rows), axis=0) if len(rows) > 1 else rows[0])


def _average(values: Floats) -> Floats:
    """Over the severities; a plain number is an average already."""
    return np.asarray(values.mean(axis=-1) if values.ndim else values)


def _pair(errors: ArrayLike, baseline: ArrayLike, name: str) -> tuple[Floats, Floats]:
    ours = fractions(errors, f"the error under {name}")
    theirs = fractions(baseline, f"the baseline's error under {name}")
    if ours.ndim and theirs.ndim and ours.shape[-1] != theirs.shape[-1]:
        raise MetricError(
            f"the errors under {name} have {ours.shape[-1]} severities (the last axis) and the baseline's "
            f"{theirs.shape[-1]}; select those of the baseline that were evaluated, or give its average as a "
            "number"
        )
    return _average(ours), _average(theirs)


def _ratio(errors: ArrayLike, baseline: ArrayLike, name: str) -> Floats:
    ours, theirs = _pair(errors, baseline, name)
    if (theirs <= 0).any():
        raise MetricError(
            f"the baseline makes no errors under {name}{_where(theirs <= 0)}, and CE divides by them; "
            f"leave {name} out, or take another baseline"
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
            f"the baseline's error under {name} is no higher than on clean images{_where(base <= 0)}, and "
            f"relative errors divide by the difference; leave {name} out, or take another baseline"
        )
    return np.asarray(added / base)


def _where(bad: np.typing.NDArray[np.bool_]) -> str:
    return f" in {bad.sum()} of {bad.size} resamples" if bad.ndim else ""
