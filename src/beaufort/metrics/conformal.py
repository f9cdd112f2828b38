"""Conformal prediction sets: sets of classes that contain the label with a chosen probability.

A threshold on a score is found on images for calibration. On images of the same kind, the sets contain the
label at least as often as requested; under a shift they may not, and that is what a test shows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.validation import validate_choice, validate_number
from beaufort.metrics._checks import Floats, floats, fractions, probabilities, validate_images

CONFORMAL_METHODS = ("lac", "aps", "raps")
"""`lac`: sets of the most probable classes, the smallest on average (Sadinle et al., 2019). `aps`: adaptive
sets by cumulative probability (Romano et al., 2020). `raps`: the same with a penalty for large sets
(Angelopoulos et al., 2021)."""


def conformal_scores(
    p: ArrayLike,
    method: str = "lac",
    *,
    uniform: ArrayLike | None = None,
    penalty: float = 0.01,
    free_classes: int = 5,
) -> Floats:
    """Return the nonconformity score of each class for each image; lower is more conforming.

    Args:
        p: probabilities, `(images, classes)`.
        method: one of `CONFORMAL_METHODS`.
        uniform: a uniform random number for each image, with which `aps` and `raps` reach the requested
            coverage exactly; without it, their sets are larger.
        penalty: what `raps` adds for each class beyond the free ones.
        free_classes: number of most probable classes without a penalty.

    >>> conformal_scores([[0.7, 0.2, 0.1]], "aps").round(3).tolist()
    [[0.7, 0.9, 1.0]]
    """
    rows = probabilities(p)
    validate_choice("method", method, CONFORMAL_METHODS)
    if method == "lac":
        return np.asarray(1 - rows)
    order = np.argsort(-rows, axis=1, kind="stable")
    ranked = np.take_along_axis(rows, order, axis=1)
    before = np.cumsum(ranked, axis=1) - ranked
    if uniform is None:
        scores = before + ranked
    else:
        part = fractions(uniform, "uniform")
        validate_images(len(rows), "uniform", part, axes=1)
        scores = before + part[:, None] * ranked
    if method == "raps":
        rank = np.arange(1, rows.shape[1] + 1)
        scores = scores + penalty * np.maximum(rank - free_classes, 0)
    found = np.empty_like(scores)
    np.put_along_axis(found, order, scores, axis=1)
    return found


def conformal_threshold(scores: ArrayLike, coverage: float = 0.9) -> float:
    """Return the threshold below which the label of a new image has its score with a probability.

    It is the ⌈(n + 1) · coverage⌉-th smallest of n scores, and infinite if n is smaller than that: the sets
    then contain all classes.

    Args:
        scores: score of the label of each image for calibration.
        coverage: probability that a set shall contain the label.

    >>> conformal_threshold([0.1, 0.2, 0.3, 0.4], coverage=0.8), conformal_threshold([0.1], coverage=0.9)
    (0.4, inf)
    """
    values = np.sort(floats(scores, "scores").ravel())
    validate_number("coverage", coverage, 0, 1)
    place = math.ceil(round((len(values) + 1) * coverage, 9))
    return math.inf if place > len(values) else float(values[max(place, 1) - 1])


def conformal_sets(scores: ArrayLike, threshold: float) -> NDArray[np.bool_]:
    """Return whether each class is in the set of each image, `(images, classes)`.

    >>> conformal_sets(conformal_scores([[0.7, 0.2, 0.1]], "aps"), 0.9).tolist()
    [[True, True, False]]
    """
    return np.asarray(floats(scores, "scores") <= threshold)
