"""The classes that suffer most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from beaufort._core.text import counted
from beaufort.metrics import worst_classes
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval
from beaufort.report._answers import scored_answers
from beaufort.results import Predictions, Scores

FEWEST = 5
"""Images that a class must have to be named; with fewer, its accuracy says next to nothing."""

_SHOWN = 12


@dataclass(frozen=True)
class WorstClass:
    """A class with its accuracy under all corruptions, beside that on its clean images."""

    label: int
    n: int
    corrupted: Estimate
    clean: Estimate | None


@dataclass(frozen=True)
class WorstClasses:
    """Those of every model, and what to know about them."""

    by_model: Mapping[str, tuple[WorstClass, ...]]
    """Worst first; empty where no class has enough images."""
    note: str


def find_worst_classes(scores: Scores) -> WorstClasses:
    """The classes with the lowest mean accuracy under corruption, of those with enough images."""
    answers = scored_answers(scores)
    labels = answers[scores.models[0].model].labels
    present, counts = np.unique(labels, return_counts=True)
    enough = present[counts >= FEWEST]
    if not len(enough):
        most = counted(int(counts.max()), "image")
        return WorstClasses(
            {},
            f"No class has more than {most} here, and at least {FEWEST} are needed to say anything about a "
            "class: so none is named.",
        )
    chosen = np.isin(labels, enough)
    places = np.flatnonzero(chosen)
    found = {name: _worst(one.take(places), scores.level) for name, one in answers.items()}
    few = len(present) - len(enough)
    left_out = f" {counted(few, 'class', 'classes')} with fewer than {FEWEST} images left out." if few else ""
    if len(enough) <= _SHOWN:
        every = f"All {len(enough)} classes, the lowest mean accuracy under corruption first."
        note = f"{every if len(enough) > 1 else 'There is one class.'}{left_out}"
    else:
        note = (
            f"The {_SHOWN} of {len(enough):,} classes with the lowest mean accuracy under corruption."
            f"{left_out} Picked because they are the lowest: on new images they are likely to do better."
        )
    return WorstClasses(found, note)


def _worst(answers: Predictions, level: float) -> tuple[WorstClass, ...]:
    damaged = [row for row, condition in enumerate(answers.conditions) if not condition.clean]
    clean = next((row for row, condition in enumerate(answers.conditions) if condition.clean), None)
    predicted = np.where(answers.correct[damaged], answers.labels, answers.top[damaged, :, 0]).ravel()
    worst = worst_classes(np.tile(answers.labels, len(damaged)), predicted, _SHOWN)
    return tuple(_class(answers, one.label, damaged, clean, level) for one in worst)


def _class(
    answers: Predictions, label: int, damaged: list[int], clean: int | None, level: float
) -> WorstClass:
    mine = answers.labels == label
    shares = answers.correct[damaged][:, mine].mean(axis=0)
    count = int(mine.sum())
    under = mean_interval(shares, level=level)
    hits = None if clean is None else int(answers.correct[clean, mine].sum())
    return WorstClass(label, count, under, None if hits is None else clopper_pearson(hits, count, level))
