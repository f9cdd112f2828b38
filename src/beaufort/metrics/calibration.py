"""Calibration: the difference between confidence and accuracy."""

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
    class_indices,
    floats,
    fractions,
    validate_images,
)
from beaufort.metrics._metric import metric


class CalibrationBins(NamedTuple):
    """Sums over the images of each bin, which are additive over parts of a dataset."""

    counts: Floats
    confidence_sums: Floats
    correct_sums: Floats


@metric("ece", title="ECE", better="lower")
def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> float:
    """Return the mean absolute difference between confidence and accuracy.

    Images are grouped into bins of equal width by confidence; bins are weighted by their numbers of images
    (Guo et al., 2017).

    Args:
        confidence: probability of the predicted class of each image.
        correct: whether the prediction is correct.
        bins: number of bins.

    >>> expected_calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, False, False])
    0.25
    """
    return float(ece_from_bins(*calibration_bins(confidence, correct, bins)))


def calibration_bins(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> CalibrationBins:
    """Return the number of images in each bin, and the sums of their confidences and correct predictions.

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
    """Return the bin of each confidence: bin i is (i / bins, (i + 1) / bins], and 0 is in the first one.

    >>> confidence_bin([0.0, 0.5, 0.51, 1.0], bins=2)
    array([0, 0, 1, 1])
    """
    edges = np.arange(1, validate_count("bins", bins)) / bins
    return np.searchsorted(edges, fractions(confidence, "confidence"), side="left")


def ece_from_bins(count: ArrayLike, confidence_sum: ArrayLike, correct_sum: ArrayLike) -> Value:
    """Return the expected calibration error from sums by bin on the last axis; leading axes are kept.

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
        raise MissingResultsError("the bins have no images")
    return as_value(np.asarray(np.abs(sure - right).sum(axis=-1) / total))


_TEMPERATURES = (0.01, 100.0)
"""Range of temperatures that are fitted."""


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the temperature by which to divide logits for the smallest negative log likelihood.

    The likelihood is convex in the inverse of the temperature (Guo et al., 2017). The result is from 0.01 to
    100: where every prediction is correct, lower temperatures are always better.

    Args:
        logits: logits `(images, classes)`; -inf stands for an impossible class.
        labels: label of each image.

    >>> round(fit_temperature([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]], [0, 0, 0, 0]), 4)
    1.8205
    """
    rows, true = floats(logits, "logits"), class_indices(labels, "labels")
    validate_images(len(true), "logits", rows, axes=2)
    rows = rows - rows.max(axis=1, keepdims=True)
    impossible = np.isneginf(rows)
    finite = np.where(impossible, 0.0, rows)
    of_label = rows[np.arange(len(rows)), true]
    if np.isneginf(of_label).any():
        raise MetricError("logits of labels must be finite, got -inf")

    def slope(inverse: float) -> float:
        """Return the derivative of the negative log likelihood by the inverse temperature."""
        weights = np.where(impossible, 0.0, np.exp(inverse * finite))
        return float(((weights * finite).sum(axis=1) / weights.sum(axis=1) - of_label).mean())

    coldest, hottest = _TEMPERATURES
    if slope(1 / coldest) <= 0:
        return coldest
    if slope(1 / hottest) >= 0:
        return hottest
    from scipy.optimize import brentq

    inverse = brentq(
        lambda log: slope(float(np.exp(log))), np.log(1 / hottest), np.log(1 / coldest), xtol=1e-12
    )
    return float(np.exp(-inverse))
