"""Accuracy over all images, and by class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.validation import validate_count
from beaufort.metrics._checks import MetricError, class_indices, validate_images
from beaufort.metrics._metric import metric


class ClassAccuracy(NamedTuple):
    """Accuracy of a class."""

    label: int
    accuracy: float
    n: int
    """Number of images with the label."""


@metric(better="higher")
def accuracy(labels: ArrayLike, top: ArrayLike, k: int = 1) -> float:
    """Return the fraction of images whose label is among the k most probable classes.

    Args:
        labels: label of each image.
        top: predicted classes, most probable first, `(images, k or more)`, or `(images,)` for k = 1.
        k: number of classes that count.

    >>> accuracy([0, 1, 2, 3], [[0, 1], [0, 1], [0, 1], [3, 0]])
    0.5
    >>> accuracy([0, 1, 2, 3], [[0, 1], [0, 1], [0, 1], [3, 0]], k=2)
    0.75
    """
    return float(_hits(labels, top, k).mean())


@metric(better="lower")
def error(labels: ArrayLike, top: ArrayLike, k: int = 1) -> float:
    """Return the fraction of images whose label is not among the k most probable classes.

    >>> error([0, 1, 2, 3], [0, 0, 0, 3])
    0.5
    """
    return float((~_hits(labels, top, k)).mean())


def _hits(labels: ArrayLike, top: ArrayLike, k: int) -> NDArray[np.bool_]:
    true, predicted = class_indices(labels, "labels"), class_indices(top, "top")
    if predicted.ndim == 1:
        predicted = predicted[:, None]
    validate_images(true.size, "labels", true, axes=1)
    validate_images(true.size, "top", predicted, axes=2)
    if validate_count("k", k) > predicted.shape[1]:
        raise MetricError(
            f"k must be at most {predicted.shape[1]}, the number of classes per image in top, got {k}"
        )
    hits: NDArray[np.bool_] = (predicted[:, :k] == true[:, None]).any(axis=1)
    return hits


def per_class_accuracy(labels: ArrayLike, predicted: ArrayLike) -> dict[int, float]:
    """Return the accuracy of each class that has images.

    >>> per_class_accuracy([0, 0, 2, 2], [0, 1, 2, 2])
    {0: 0.5, 2: 1.0}
    """
    return {one.label: one.accuracy for one in _classes(labels, predicted)}


def worst_classes(labels: ArrayLike, predicted: ArrayLike, count: int = 5) -> list[ClassAccuracy]:
    """Return the classes with the lowest accuracy, worst first.

    Ties are sorted by the number of images, descending, then by label. The list is shorter than `count` if
    there are fewer classes.

    >>> worst_classes([0, 0, 1, 2, 2], [0, 1, 0, 2, 2], count=2)
    [ClassAccuracy(label=1, accuracy=0.0, n=1), ClassAccuracy(label=0, accuracy=0.5, n=2)]
    """
    ranked = sorted(_classes(labels, predicted), key=lambda one: (one.accuracy, -one.n, one.label))
    return ranked[: validate_count("count", count)]


def _classes(labels: ArrayLike, predicted: ArrayLike) -> list[ClassAccuracy]:
    true: NDArray[Any] = class_indices(labels, "labels")
    right = _hits(true, predicted, 1)
    names, place = np.unique(true, return_inverse=True)
    total = np.bincount(place, minlength=len(names))
    hits = np.bincount(place, weights=right, minlength=len(names))
    return [
        ClassAccuracy(int(name), float(hit / n), int(n))
        for name, hit, n in zip(names, hits, total, strict=True)
    ]
