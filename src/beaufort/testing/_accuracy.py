"""How often a model is right, whether that is more than chance, and which order of classes may be why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import counted
from beaufort.metrics.stats import clopper_pearson

_SURE = 0.99
"""Level of the intervals by which something is more than chance."""


@dataclass(frozen=True)
class MeasuredAccuracy:
    """How many of some labeled images a model gets right."""

    images: int
    right: int
    chance: float
    """What always naming one class, or any at random, would get right: the larger of the two."""
    order: str = ""
    """The order of classes that would explain an accuracy at chance; empty if none was found."""
    ordered: float = 0.0
    """The accuracy in that order."""

    @property
    def value(self) -> float:
        """The share of images."""
        return self.right / self.images

    @property
    def at_chance(self) -> bool:
        """Whether it is not surely more than chance."""
        return not above_chance(self.right, self.images, self.chance)

    def __str__(self) -> str:
        end = ", no better than chance" if self.at_chance else ""
        return (
            f"accuracy on {counted(self.images, 'image')}: {self.value:.1%}; chance: {self.chance:.1%}{end}"
        )


def above_chance(right: int, images: int, chance: float, tries: int = 1) -> bool:
    """Whether so many right answers are more than chance, when the best of some tries is looked at."""
    return clopper_pearson(right, images, 1 - (1 - _SURE) / tries).low > chance


def judge_accuracy(
    logits: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str] = ()
) -> MeasuredAccuracy:
    """The accuracy of some logits `(images, classes)`.

    Args:
        logits: in the order that the classes are said to have.
        labels: the true classes.
        names: what the classes are called, if that is known: models may have them in alphabetical order.
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
        share = learned[0] / learned[1]
        return MeasuredAccuracy(
            found.images, found.right, chance, "an order learned from half of the images", share
        )
    return found


def _orders(classes: int, names: Sequence[str]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Orders that outputs often have: the class of each output."""
    numbers = np.arange(classes)
    as_text = np.array(sorted(range(classes), key=str))
    yield "the order of their numbers sorted as text (0, 1, 10, 11, …)", as_text
    yield "the order in which data sorted as text (0, 1, 10, 11, …) has them", np.argsort(as_text)
    if len(names) == classes:
        by_name = np.array(sorted(range(classes), key=lambda label: names[label]))
        yield "the alphabetical order of their names", by_name
        yield "an order of which the labels are the alphabetical one", np.argsort(by_name)
    yield "an order shifted by one", (numbers + 1) % classes
    yield "an order shifted by one", (numbers - 1) % classes
    yield "the opposite order", numbers[::-1]


def _learned(predicted: NDArray[np.int64], labels: NDArray[np.int64], classes: int) -> tuple[int, int] | None:
    """Right answers, of how many, if each output stands for the class that it meant in the other half."""
    half = np.zeros(len(labels), np.bool_)
    for label in np.unique(labels):
        half[np.flatnonzero(labels == label)[::2]] = True
    if half.all():
        return None
    counts = np.zeros((classes, max(classes, int(labels.max()) + 1)), np.int64)
    np.add.at(counts, (predicted[half], labels[half]), 1)
    meant = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
    return int((meant[predicted[~half]] == labels[~half]).sum()), int((~half).sum())
