"""Stability over short sequences of one picture, as in ImageNet-P: how often predictions change.

Labels are not used: a model that always says the same scores 0. Print the clean error beside these.
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
"""What a frame is compared with: one before it, or, where frames are noise anew, the first of all."""

_TOP = 5


def flips(predictions: ArrayLike, *, against: Against = "previous", stride: int = 1) -> Floats:
    """For each sequence the share of frames whose prediction differs from that of an earlier frame.

    Its mean is `flip_probability`; `beaufort.metrics.stats.mean_interval` has the interval over base images.

    >>> flips([[3, 3, 5, 5], [3, 5, 3, 3]]).round(2).tolist()
    [0.33, 0.67]
    >>> flips([[3, 3, 5, 5]], against="first").round(2).tolist()
    [0.67]

    Args:
        predictions: the class that was answered, `(sequences, frames)`.
        against: what a frame is compared with.
        stride: how many frames back, where that is not the first.
    """
    first, later = _pairs(_whole(predictions, 2), against, stride)
    return np.asarray((first != later).mean(axis=1), np.float64)


def top5_distances(top: ArrayLike, *, against: Against = "previous", stride: int = 1) -> Floats:
    """For each sequence how far, on average, the five best classes move; from 0 to 15.

    A class moves by the difference of its two places; one that leaves the five counts as sixth. The classes
    are those of the earlier frame, so it is not symmetric.

    >>> top5_distances([[[1, 2, 3, 4, 5], [2, 1, 3, 4, 5]], [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]]).tolist()
    [2.0, 15.0]

    Args:
        top: the five best classes, best first, `(sequences, frames, 5)`; of equal ones the lower first.
        against: what a frame is compared with.
        stride: how many frames back, where that is not the first.
    """
    best = _whole(top, 3)
    if best.shape[-1] != _TOP:
        raise MetricError(f"top must have the five best classes of each frame, got shape {best.shape}")
    first, later = _pairs(best, against, stride)
    same = first[..., :, None] == later[..., None, :]
    places = np.where(same.any(axis=-1), same.argmax(axis=-1), _TOP)
    return np.asarray(np.abs(places - np.arange(_TOP)).sum(axis=-1).mean(axis=1), np.float64)


@metric(better="lower")
def flip_probability(predictions: ArrayLike, *, against: Against = "previous", stride: int = 1) -> float:
    """Average over pictures how often the prediction changes from frame to frame.

    >>> flip_probability([[3, 3, 5, 5, 5], [7, 7, 7, 7, 7]])
    0.125

    The arguments are those of `flips`, whose mean it is.
    """
    return float(flips(predictions, against=against, stride=stride).mean())


@metric(better="lower", title="Top-5 distance (0 to 15)", unit="score")
def top5_distance(top: ArrayLike, *, against: Against = "previous", stride: int = 1) -> float:
    """Average over pictures how far the five best classes move from frame to frame, without a baseline.

    >>> top5_distance([[[1, 2, 3, 4, 5], [2, 1, 3, 4, 5]], [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]])
    1.0

    The arguments are those of `top5_distances`, whose mean it is.
    """
    return float(top5_distances(top, against=against, stride=stride).mean())


@metric("mt5d", better="lower", title="mT5D", unit="ratio")
@metric("mfr", better="lower", title="mFR", unit="ratio")
def mean_flip_rate(values: Mapping[str, float], baseline: Mapping[str, float]) -> float:
    """Average over sequences what a model has as a share of what a baseline has: mFR, or of distances mT5D.

    >>> mean_flip_rate({"snow": 0.02, "tilt": 0.03}, baseline={"snow": 0.08, "tilt": 0.06})
    0.375

    Args:
        values: flip probabilities, or distances, by the name of the sequence.
        baseline: the same of another model, which must be named beside the number.
    """
    if not baseline:
        raise MissingResultsError("baseline must have at least one sequence, got none")
    if absent := sorted(baseline.keys() ^ values.keys()):
        raise MissingResultsError(
            f"values and baseline must have the same sequences, got {', '.join(absent)} in one of them only"
        )
    if zero := sorted(name for name, value in baseline.items() if not value > 0):
        raise MetricError(f"values of the baseline must be positive, got {baseline[zero[0]]} for {zero[0]}")
    return fmean(values[name] / baseline[name] for name in baseline)


def _pairs(frames: NDArray[Any], against: str, stride: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Earlier and later frames, side by side."""
    validate_integer("stride", stride, 1, frames.shape[1] - 1)
    if against not in ("previous", "first"):
        raise OptionError(f"against must be 'previous' or 'first', got {against!r}")
    if against == "first":
        return frames[:, :1], frames[:, 1:]
    return frames[:, :-stride], frames[:, stride:]


def _whole(values: ArrayLike, dimensions: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != dimensions or array.size == 0 or array.dtype.kind not in "iu":
        raise MetricError(
            f"predictions must be a non-empty array of integers with {dimensions} dimensions, got "
            f"{array.dtype} of shape {array.shape}"
        )
    return array
