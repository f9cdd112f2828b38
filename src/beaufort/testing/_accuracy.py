"""The accuracy of a model, whether it is above chance, and which order of classes may explain if not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import counted
from beaufort.metrics.stats import clopper_pearson

_SURE = 0.99
"""Confidence level for accuracies above chance."""


@dataclass(frozen=True)
class MeasuredAccuracy:
    """Accuracy of a model on labeled images."""

    images: int
    right: int
    chance: float
    """Accuracy of always predicting the most frequent class, or of random guessing if that is larger."""
    order: str = ""
    """Order of classes that explains an accuracy at chance; empty if none was found."""
    ordered: float = 0.0
    """Accuracy in that order."""

    @property
    def value(self) -> float:
        """Accuracy, 0 to 1."""
        return self.right / self.images

    @property
    def at_chance(self) -> bool:
        """Whether it is not significantly above chance."""
        return not above_chance(self.right, self.images, self.chance)

    def __str__(self) -> str:
        end = ", no better than chance" if self.at_chance else ""
        return (
            f"accuracy on {counted(self.images, 'image')}: {self.value:.1%}; chance: {self.chance:.1%}{end}"
        )


def above_chance(right: int, images: int, chance: float, tries: int = 1) -> bool:
    """Return whether so many correct predictions, the best of some tries, are significantly above chance."""
    return clopper_pearson(right, images, 1 - (1 - _SURE) / tries).low > chance


def judge_accuracy(
    logits: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str] = ()
) -> MeasuredAccuracy:
    """Return the accuracy of logits `(images, classes)`.

    Args:
        logits: in the declared order of the classes.
        labels: the true classes.
        names: names of the classes, if known, because outputs may be in alphabetical order.
    """
    predicted, classes = logits.argmax(axis=1), logits.shape[1]
    chance = max(1 / classes, float(np.bincount(labels).max() / len(labels)))
    found = MeasuredAccuracy(len(labels), int((predicted == labels).sum()), chance)
    if not found.at_chance:
        return found
    orders = list(_orders(classes, names))
    rights = [int((order[predicted] == labels).sum()) for _, order in orders]
    best = int(np.argmax(rights))
    if above_chance(rights[best], len(labels), chance, len(orders)):
        return MeasuredAccuracy(
            found.images, found.right, chance, orders[best][0], rights[best] / len(labels)
        )
    learned = _learned(predicted, labels, classes)
    if learned is not None and above_chance(*learned, chance):
        accuracy = learned[0] / learned[1]
        return MeasuredAccuracy(
            found.images, found.right, chance, "an order learned from half of the images", accuracy
        )
    return found


def _orders(classes: int, names: Sequence[str]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield common orders of outputs, as the class of each output."""
    numbers = np.arange(classes)
    as_text = np.array(sorted(range(classes), key=str))
    yield "the order of their numbers sorted as text (0, 1, 10, 11, …)", as_text
    yield "the inverse of their numbers sorted as text (0, 1, 10, 11, …)", np.argsort(as_text)
    if len(names) == classes:
        by_name = np.array(sorted(range(classes), key=lambda label: names[label]))
        yield "the alphabetical order of their names", by_name
        yield "the inverse of the alphabetical order of their names", np.argsort(by_name)
    yield "an order shifted by one", (numbers + 1) % classes
    yield "an order shifted by one", (numbers - 1) % classes
    yield "reversed order", numbers[::-1]


def _learned(predicted: NDArray[np.int64], labels: NDArray[np.int64], classes: int) -> tuple[int, int] | None:
    """Return correct and all predictions on half of the images, mapping outputs to classes on the rest."""
    half = np.zeros(len(labels), np.bool_)
    for label in np.unique(labels):
        half[np.flatnonzero(labels == label)[::2]] = True
    if half.all():
        return None
    counts = np.zeros((classes, max(classes, int(labels.max()) + 1)), np.int64)
    np.add.at(counts, (predicted[half], labels[half]), 1)
    meant = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
    return int((meant[predicted[~half]] == labels[~half]).sum()), int((~half).sum())
