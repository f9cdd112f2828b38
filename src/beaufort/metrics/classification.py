"""How often a model is right: over all images, and class by class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.validation import validate_count
from beaufort.metrics._checks import MetricError, class_indices, validate_images
from beaufort.metrics._metric import metric


class ClassAccuracy(NamedTuple):
    """How a class fares."""

    label: int
    accuracy: float
    n: int
    """Images that have the label."""


@metric(better="higher")
def accuracy(labels: ArrayLike, top: ArrayLike, k: int = 1) -> float:
    """Share of images whose label is among the k best answers.

    Args:
        labels: the true class of each image.
        top: the answers, best first, `(images, k or more)`; `(images,)` will do for k = 1.
        k: how many answers count.

    >>> accuracy([0, 1, 2, 3], [[0, 1], [0, 1], [0, 1], [3, 0]])
    0.5
    >>> accuracy([0, 1, 2, 3], [[0, 1], [0, 1], [0, 1], [3, 0]], k=2)
    0.75
    """
    return float(_hits(labels, top, k).mean())


@metric(better="lower")
def error(labels: ArrayLike, top: ArrayLike, k: int = 1) -> float:
    """Share of images whose label is not among the k best answers.

    >>> error([0, 1, 2, 3], [0, 0, 0, 3])
    0.5
    """
    return float((~_hits(labels, top, k)).mean())


def _hits(labels: ArrayLike, top: ArrayLike, k: int) -> NDArray[np.bool_]:
    truth, answers = class_indices(labels, "labels"), class_indices(top, "top")
    if answers.ndim == 1:
        answers = answers[:, None]
    validate_images(truth.size, "labels", truth, axes=1)
    validate_images(truth.size, "top", answers, axes=2)
    if validate_count("k", k) > answers.shape[1]:
        raise MetricError(
            f"k must be at most {answers.shape[1]}, the number of answers per image in top, got {k}"
        )
    hits: NDArray[np.bool_] = (answers[:, :k] == truth[:, None]).any(axis=1)
    return hits


def per_class_accuracy(labels: ArrayLike, predicted: ArrayLike) -> dict[int, float]:
    """Share of right answers among the images of each class that has any, by class.

    >>> per_class_accuracy([0, 0, 2, 2], [0, 1, 2, 2])
    {0: 0.5, 2: 1.0}
    """
    return {one.label: one.accuracy for one in _classes(labels, predicted)}


def worst_classes(labels: ArrayLike, predicted: ArrayLike, count: int = 5) -> list[ClassAccuracy]:
    """The classes with the lowest accuracy, worst first.

    Of equal ones that with more images comes first, then that with the lower number. Fewer than `count`
    come if there are fewer classes.

    >>> worst_classes([0, 0, 1, 2, 2], [0, 1, 0, 2, 2], count=2)
    [ClassAccuracy(label=1, accuracy=0.0, n=1), ClassAccuracy(label=0, accuracy=0.5, n=2)]
    """
    ranked = sorted(_classes(labels, predicted), key=lambda one: (one.accuracy, -one.n, one.label))
    return ranked[: validate_count("count", count)]


def _classes(labels: ArrayLike, predicted: ArrayLike) -> list[ClassAccuracy]:
    truth: NDArray[Any] = class_indices(labels, "labels")
    right = _hits(truth, predicted, 1)
    names, place = np.unique(truth, return_inverse=True)
    total = np.bincount(place, minlength=len(names))
    hits = np.bincount(place, weights=right, minlength=len(names))
    return [
        ClassAccuracy(int(name), float(hit / n), int(n))
        for name, hit, n in zip(names, hits, total, strict=True)
    ]
