"""Stability over short sequences of perturbed frames, as in ImageNet-P: how often predictions change.

Labels are not used: a model that always predicts the same class has 0. Report the clean error as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_integer
from beaufort.metrics._checks import Floats, MetricError, MissingResultsError
from beaufort.metrics._metric import metric

Against = Literal["previous", "first"]
"""Frame to compare with: a previous one, or the first one, for sequences of independent noise."""

_TOP = 5


def flips(predictions: ArrayLike, *, against: Against = "previous", stride: int = 1) -> Floats:
    """Return, by sequence, the fraction of frames whose prediction differs from that of an earlier frame.

    Its mean is `flip_probability`; `beaufort.metrics.stats.mean_interval` computes the interval over images.

    >>> flips([[3, 3, 5, 5], [3, 5, 3, 3]]).round(2).tolist()
    [0.33, 0.67]
    >>> flips([[3, 3, 5, 5]], against="first").round(2).tolist()
    [0.67]

    Args:
        predictions: predicted classes, `(sequences, frames)`.
        against: frame to compare with.
        stride: distance of the previous frame.
    """
    first, later = _pairs(_integers(predictions, 2), against, stride)
    return np.asarray((first != later).mean(axis=1), np.float64)


def top5_distances(top: ArrayLike, *, against: Against = "previous", stride: int = 1) -> Floats:
    """Return, by sequence, how far the five most probable classes move on average; from 0 to 15.

    A class moves by the difference of its ranks; a class that leaves the five has rank six. The classes are
    those of the earlier frame, so the distance is not symmetric.

    >>> top5_distances([[[1, 2, 3, 4, 5], [2, 1, 3, 4, 5]], [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]]).tolist()
    [2.0, 15.0]

    Args:
        top: the five most probable classes, best first, `(sequences, frames, 5)`; ties by label.
        against: frame to compare with.
        stride: distance of the previous frame.
    """
    best = _integers(top, 3)
    if best.shape[-1] != _TOP:
        raise MetricError(f"top must have shape (sequences, frames, 5), got {best.shape}")
    first, later = _pairs(best, against, stride)
    same = first[..., :, None] == later[..., None, :]
    places = np.where(same.any(axis=-1), same.argmax(axis=-1), _TOP)
    return np.asarray(np.abs(places - np.arange(_TOP)).sum(axis=-1).mean(axis=1), np.float64)


@metric(better="lower")
def flip_probability(predictions: ArrayLike, *, against: Against = "previous", stride: int = 1) -> float:
    """Return the mean over sequences of the fraction of frames whose prediction changes.

    >>> flip_probability([[3, 3, 5, 5, 5], [7, 7, 7, 7, 7]])
    0.125

    The arguments are those of `flips`.
    """
    return float(flips(predictions, against=against, stride=stride).mean())


@metric(better="lower", title="Top-5 distance (0 to 15)", unit="score")
def top5_distance(top: ArrayLike, *, against: Against = "previous", stride: int = 1) -> float:
    """Return the mean over sequences of how far the five most probable classes move, without a baseline.

    >>> top5_distance([[[1, 2, 3, 4, 5], [2, 1, 3, 4, 5]], [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]])
    1.0

    The arguments are those of `top5_distances`.
    """
    return float(top5_distances(top, against=against, stride=stride).mean())


@metric("mt5d", better="lower", title="mT5D", unit="ratio")
@metric("mfr", better="lower", title="mFR", unit="ratio")
def mean_flip_rate(values: Mapping[str, float], baseline: Mapping[str, float]) -> float:
    """Return the mean over sequences of values relative to a baseline: mFR, or mT5D for distances.

    >>> mean_flip_rate({"snow": 0.02, "tilt": 0.03}, baseline={"snow": 0.08, "tilt": 0.06})
    0.375

    Args:
        values: flip probabilities or distances by sequence.
        baseline: values of the baseline, which must be reported with the result.
    """
    if not baseline:
        raise MissingResultsError("baseline must have at least one sequence")
    if missing := sorted(baseline.keys() ^ values.keys()):
        raise MissingResultsError(
            f"values and baseline must have the same sequences, but only one of them has {', '.join(missing)}"
        )
    if zero := sorted(name for name, value in baseline.items() if not value > 0):
        raise MetricError(f"values of the baseline must be positive, got {baseline[zero[0]]} for {zero[0]}")
    return fmean(values[name] / baseline[name] for name in baseline)


def _pairs(frames: NDArray[Any], against: str, stride: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return earlier frames and the later ones to compare them with."""
    validate_integer("stride", stride, 1, frames.shape[1] - 1)
    if against not in ("previous", "first"):
        raise OptionError(f"against must be 'previous' or 'first', got {against!r}")
    if against == "first":
        return frames[:, :1], frames[:, 1:]
    return frames[:, :-stride], frames[:, stride:]


def _integers(values: ArrayLike, dimensions: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != dimensions or array.size == 0 or array.dtype.kind not in "iu":
        raise MetricError(
            f"predictions must be a non-empty array of integers with {dimensions} dimensions, got "
            f"{array.dtype} of shape {array.shape}"
        )
    return array
