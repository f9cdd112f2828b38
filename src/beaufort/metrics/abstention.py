"""Abstention: the accuracy of a model that leaves its least confident predictions to somebody else."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from beaufort._core.validation import validate_number
from beaufort.metrics._checks import Floats, fractions, validate_images
from beaufort.metrics._metric import metric


class RiskCoverage(NamedTuple):
    """A risk–coverage curve: a point for each number of images that are predicted, from one to all."""

    coverage: Floats
    """Fraction of images that are predicted, the most confident ones."""
    risk: Floats
    """Error on these images."""


def risk_coverage(confidence: ArrayLike, correct: ArrayLike) -> RiskCoverage:
    """Return the error on the most confident images, for every number of them (El-Yaniv & Wiener, 2010).

    Images of equal confidence come in random order: the curve is the mean over all orders.

    Args:
        confidence: confidence of each prediction, such as the probability of the predicted class.
        correct: whether the prediction is correct.

    >>> risk_coverage([0.9, 0.8, 0.6, 0.6], [True, False, True, False]).risk.round(3).tolist()
    [0.0, 0.5, 0.5, 0.5]
    """
    order, blocks, right = sorted_blocks(confidence, correct)
    errors = block_means(1 - right[order], blocks)
    count = np.arange(1, len(errors) + 1)
    return RiskCoverage(count / len(errors), np.cumsum(errors) / count)


@metric("aurc", title="AURC", better="lower")
def area_under_risk_coverage(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the mean of the risk–coverage curve: 0 for no errors, the error rate for useless confidence.

    >>> area_under_risk_coverage([0.9, 0.8, 0.6, 0.6], [True, False, True, False])
    0.375
    """
    return float(risk_coverage(confidence, correct).risk.mean())


@metric(better="higher")
def accuracy_at_coverage(confidence: ArrayLike, correct: ArrayLike, coverage: float = 0.8) -> float:
    """Return the accuracy on a fraction of the images, the most confident ones.

    Args:
        confidence: confidence of each prediction.
        correct: whether the prediction is correct.
        coverage: fraction of images that are predicted, rounded up to an image.

    >>> accuracy_at_coverage([0.9, 0.8, 0.7, 0.6], [True, True, False, True], coverage=0.5)
    1.0
    """
    risk = risk_coverage(confidence, correct).risk
    return float(1 - risk[covered_count(len(risk), coverage) - 1])


def covered_count(count: int, coverage: float) -> int:
    """Return the number of images of a coverage: rounded up, at least one.

    >>> covered_count(10, 0.8), covered_count(10, 0.81)
    (8, 9)
    """
    validate_number("coverage", coverage, 0, 1)
    return max(1, math.ceil(round(count * coverage, 9)))


class Blocks(NamedTuple):
    """Images by descending confidence, with those of equal confidence in one block."""

    order: np.ndarray
    """Index of each image, most confident first."""
    block: np.ndarray
    """Number of the block of each sorted image."""
    correct: Floats
    """Whether each prediction is correct, in the original order."""


def sorted_blocks(confidence: ArrayLike, correct: ArrayLike) -> Blocks:
    """Return images by descending confidence, with those of equal confidence in one block."""
    sure = fractions(confidence, "confidence")
    right = fractions(np.asarray(correct), "correct")
    validate_images(sure.size, "confidence", sure, axes=1)
    validate_images(sure.size, "correct", right, axes=1)
    order = np.argsort(-sure, kind="stable")
    falls = np.diff(sure[order], prepend=sure[order[0]]) < 0
    return Blocks(order, np.cumsum(falls), right)


def block_means(values: Floats, blocks: np.ndarray) -> Floats:
    """Return values with each replaced by the mean of its block."""
    means = np.bincount(blocks, weights=values) / np.bincount(blocks)
    return np.asarray(means[blocks], np.float64)
