"""The score of each left-out value, and what is written about all of them: a CSV table and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort._core.pages import render
from beaufort._core.text import counted, csv_text
from beaufort.data import Problem
from beaufort.metrics.stats import Estimate, mean_interval, newcombe
from beaufort.training import Recipe
from beaufort.training.ending import ENDING_RULE

_NUMBERS = ("accuracy", "seen", "drop")


@dataclass(frozen=True)
class ValueScore:
    """How models that never saw a value do on its images."""

    value: str
    trained_on: int
    """Images of other values that each network was trained on."""
    accuracy: Estimate
    """On the images of the value; the mean over seeds, with an interval over images."""
    seen: Estimate | None
    """On images of other values that were not trained on; None if none were kept back."""
    drop: Estimate | None
    """What is lost: `seen` less `accuracy`."""
    by_seed: tuple[float, ...]
    """The accuracy on the images of the value, of each seed."""
    cap: float
    """The highest accuracy without luck: less than 1 if a class has images of this value alone. A network
    that was fine-tuned may know such a class from before."""
    unread: int
    """Images of the value that could not be read, and do not count."""


def value_score(
    value: str,
    trained_on: int,
    held_out: NDArray[np.bool_],
    seen: NDArray[np.bool_] | None,
    *,
    cap: float,
    unread: int,
) -> ValueScore:
    """The score of right and wrong answers, `(seeds, images)`."""
    accuracy = mean_interval(held_out.mean(axis=0))
    other = None if seen is None else mean_interval(seen.mean(axis=0))
    drop = None if other is None else newcombe(other, accuracy)
    by_seed = tuple(map(float, held_out.mean(axis=1)))
    return ValueScore(value, trained_on, accuracy, other, drop, by_seed, cap, unread)


def values_csv(column: str, scores: Sequence[ValueScore]) -> str:
    """A row for each value; shares from 0 to 1, empty where there is no number."""
    ends = [f"{name}{end}" for name in _NUMBERS for end in ("", "_low", "_high")]
    head = ["images", "trained_on", *ends, "lowest_seed", "highest_seed", "seeds", "cap", "unread"]
    first = f"value of {column}" if column in head else column
    return csv_text([first, *head], map(_row, scores))


def _row(one: ValueScore) -> list[object]:
    numbers: list[str] = []
    for number in (one.accuracy, one.seen, one.drop):
        ends = ("", "", "") if number is None else (number.value, number.low, number.high)
        numbers += [end if isinstance(end, str) else f"{end:.6f}" for end in ends]
    seeds = (f"{min(one.by_seed):.6f}", f"{max(one.by_seed):.6f}", len(one.by_seed))
    return [one.value, one.accuracy.n, one.trained_on, *numbers, *seeds, f"{one.cap:.6f}", one.unread]


def remarks(scores: Sequence[ValueScore], unread: Sequence[Problem], start: str = "") -> list[str]:
    """What must be known beside the numbers, in sentences.

    Args:
        scores: of all values.
        unread: images that could not be read.
        start: the network that trainings began with; empty if they began with random weights.
    """
    told = []
    if start:
        told.append(
            f"Trainings began with the weights of {start}. Whether it had seen some of the images that are "
            "scored here is not known; where it had, accuracy is too high."
        )
    for one in scores:
        if one.cap < 1:
            alone = round((1 - one.cap) * one.accuracy.n)
            before = f", unless {start} knows the class" if start else ""
            told.append(
                f"{one.value}: {alone:,} of {counted(one.accuracy.n, 'image')} "
                f"{'has' if alone == 1 else 'have'} a class that no other value has, which cannot be "
                f"learned here: accuracy above {100 * one.cap:.1f} % is chance{before}."
            )
    if unread:
        told.append(
            f"{counted(len(unread), 'image')} could not be read and "
            f"{'does' if len(unread) == 1 else 'do'} not count (first: {unread[0].id}: {unread[0].message})."
        )
    return told


def values_page(
    column: str,
    data: str,
    recipe: Recipe,
    scores: Sequence[ValueScore],
    unread: Sequence[Problem],
    failed: Sequence[str] = (),
) -> str:
    """One HTML file: the values from the largest drop to the smallest."""
    order = sorted(scores, key=lambda one: -one.drop.value if one.drop else one.accuracy.value)
    return render(
        "studies/leave_out/leave-out.html",
        title=f"{column} left out",
        eyebrow=f"{data} · {recipe.name}",
        navigation={"values": "Values", "reading": "How to read it"},
        column=column,
        learning=(learning := "fine-tuning" if recipe.start else "training"),
        sentence=_sentence(column, order, learning),
        level=100 * scores[0].accuracy.level,
        seeds=len(scores[0].by_seed),
        rows=order,
        remarks=remarks(order, unread, recipe.start),
        failed=failed,
        ending_rule=ENDING_RULE,
    )


def _sentence(column: str, order: Sequence[ValueScore], learning: str) -> str:
    """What the numbers decide, and no more."""
    turns = f", each left out of {learning} in turn." if len(order) > 1 else f", left out of {learning}."
    kinds = f"{counted(len(order), 'value')} of {column}{turns}"
    if all(one.drop is None for one in order):
        return kinds
    lost = [one.value for one in order if one.drop is not None and one.drop.low > 0]
    if not lost:
        return f"{kinds} No interval of what is lost is above zero."
    return f"{kinds} The interval of what is lost is above zero for: {', '.join(lost)}."
