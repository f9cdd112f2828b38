"""Whether a model is as often right as it is sure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.validation import validate_count
from beaufort.metrics._checks import (
    Floats,
    MetricError,
    MissingResultsError,
    Value,
    as_value,
    floats,
    fractions,
    validate_images,
)
from beaufort.metrics._metric import metric


class CalibrationBins(NamedTuple):
    """Sums over the images of each bin, so that those of parts add up."""

    counts: Floats
    confidence_sums: Floats
    correct_sums: Floats


@metric("ece", title="ECE", better="lower")
def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> float:
    """Average distance between how sure a model is and how often it is right.

    Images are put into bins of equal width by confidence, and the distance of each bin counts as often as
    it has images (Guo et al., 2017).

    Args:
        confidence: the probability of each image's best answer.
        correct: whether that answer is right.
        bins: how many.

    >>> expected_calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, False, False])
    0.25
    """
    return float(ece_from_bins(*calibration_bins(confidence, correct, bins)))


def calibration_bins(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> CalibrationBins:
    """How many images each bin has, and what their confidences and right answers add up to.

    >>> calibration_bins([0.25, 0.75, 1.0], [False, True, True], bins=2).confidence_sums
    array([0.25, 1.75])
    """
    sure = fractions(confidence, "confidence")
    right = fractions(np.asarray(correct), "correct")
    validate_images(sure.size, "confidence", sure, axes=1)
    validate_images(sure.size, "correct", right, axes=1)
    place = confidence_bin(sure, bins)
    return CalibrationBins(*(_sums(place, weights, bins) for weights in (np.ones_like(sure), sure, right)))


def _sums(place: NDArray[np.intp], weights: Floats, bins: int) -> Floats:
    return np.bincount(place, weights=weights, minlength=bins).astype(np.float64, copy=False)


def confidence_bin(confidence: ArrayLike, bins: int = 15) -> NDArray[np.intp]:
    """The bin of each confidence: bin i has those above i / bins, up to (i + 1) / bins; 0 is in the first.

    >>> confidence_bin([0.0, 0.5, 0.51, 1.0], bins=2)
    array([0, 0, 1, 1])
    """
    edges = np.arange(1, validate_count("bins", bins)) / bins
    return np.searchsorted(edges, fractions(confidence, "confidence"), side="left")


def ece_from_bins(count: ArrayLike, confidence_sum: ArrayLike, correct_sum: ArrayLike) -> Value:
    """Expected calibration error from sums by bin, bins on the last axis; leading axes are carried through.

    >>> ece_from_bins([1, 3], [0.25, 2.5], [0, 3])
    0.1875
    """
    images_in = floats(count, "count")
    sure, right = floats(confidence_sum, "confidence_sum"), floats(correct_sum, "correct_sum")
    if not images_in.shape == sure.shape == right.shape or images_in.ndim == 0:
        raise MetricError(
            "count, confidence_sum and correct_sum must have the same shape, with bins on the last axis, "
            f"got {images_in.shape}, {sure.shape} and {right.shape}"
        )
    total = images_in.sum(axis=-1)
    if (total <= 0).any():
        raise MissingResultsError("the bins have no images: evaluate some first")
    return as_value(np.asarray(np.abs(sure - right).sum(axis=-1) / total))
