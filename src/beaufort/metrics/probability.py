"""Scores of probabilities `(images, classes)`, averaged over images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort.metrics._checks import Floats, MetricError, class_indices, probabilities, validate_images
from beaufort.metrics._metric import metric


@metric("brier", title="Brier score", better="lower", unit="score")
def brier_score(p: ArrayLike, labels: ArrayLike) -> float:
    """Return the squared distance of probabilities and label, summed over classes: 0 to 2 (Brier, 1950).

    >>> brier_score([[0.5, 0.5], [1.0, 0.0]], [0, 0])
    0.25
    """
    rows, true = _checked(p, labels)
    of_label = rows[np.arange(len(rows)), true]
    return float(((rows**2).sum(axis=1) - 2 * of_label + 1).mean())


@metric("nll", title="NLL", better="lower", unit="nats")
def negative_log_likelihood(p: ArrayLike, labels: ArrayLike) -> float:
    """Return the negative logarithm of the probability of the label, in nats; infinite if that is 0.

    >>> negative_log_likelihood([[0.5, 0.5], [1.0, 0.0]], [0, 0])
    0.34657359027997264
    """
    rows, true = _checked(p, labels)
    of_label = rows[np.arange(len(rows)), true]
    with np.errstate(divide="ignore"):  # a probability of 0 for the label is valid input
        return float(-np.log(of_label).mean())


@metric("entropy", better=None, unit="nats")
def entropy(p: ArrayLike) -> float:
    """Return the entropy of the probabilities: 0 to log(classes), in nats.

    >>> entropy([[0.5, 0.5], [1.0, 0.0]])
    0.34657359027997264
    """
    rows = probabilities(p)
    logs = np.log(np.where(rows > 0, rows, 1))
    return float(np.abs((rows * logs).sum(axis=1)).mean())


def _checked(p: ArrayLike, labels: ArrayLike) -> tuple[Floats, NDArray[Any]]:
    rows, true = probabilities(p), class_indices(labels, "labels")
    validate_images(len(rows), "labels", true, axes=1)
    classes = rows.shape[1]
    if true.min() < 0 or true.max() >= classes:
        raise MetricError(
            f"labels must be from 0 to {classes - 1}, because p has {classes} classes, got {true.min()} to "
            f"{true.max()}; map both to one label space first"
        )
    return rows, true
