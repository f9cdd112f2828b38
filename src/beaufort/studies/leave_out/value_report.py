"""The score of each left-out value, and a CSV table and a page of all of them."""

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


@dataclass(frozen=True)
class ValueScore:
    """The accuracy of networks on images of a value that they never saw."""

    value: str
    trained_on: int
    """Number of training images of each network."""
    accuracy: Estimate
    """On the images of the value; the mean over seeds, with an interval over images."""
    seen: Estimate | None
    """On images of other values that were kept out of training; None without."""
    drop: Estimate | None
    """`seen` minus `accuracy`."""
    by_seed: tuple[float, ...]
    """Accuracy on the images of the value for each seed."""
    cap: float
    """The highest accuracy without luck: below 1 if a class has images of this value alone. A network that is
    fine-tuned may know such a class from before."""
    unread: int
    """Number of images of the value that cannot be read and do not count."""


def value_score(
    value: str,
    trained_on: int,
    held_out: NDArray[np.bool_],
    seen: NDArray[np.bool_] | None,
    *,
    cap: float,
    unread: int,
) -> ValueScore:
    """Return the score from the correctness of predictions, `(seeds, images)`."""
    accuracy = mean_interval(held_out.mean(axis=0))
    other = None if seen is None else mean_interval(seen.mean(axis=0))
    drop = None if other is None else newcombe(other, accuracy)
    by_seed = tuple(map(float, held_out.mean(axis=1)))
    return ValueScore(value, trained_on, accuracy, other, drop, by_seed, cap, unread)


def values_csv(column: str, scores: Sequence[ValueScore]) -> str:
    """Return a row for each value, with fractions in 0..1 and empty cells for missing numbers."""
    ends = [f"{name}{end}" for name in ("accuracy", "seen", "drop") for end in ("", "_low", "_high")]
    head = ["images", "trained_on", *ends, "lowest_seed", "highest_seed", "seeds", "cap", "unread"]
    rows = []
    for one in scores:
        numbers: list[str] = []
        for number in (one.accuracy, one.seen, one.drop):
            interval = () if number is None else (number.value, number.low, number.high)
            numbers += [f"{end:.6f}" for end in interval] or [""] * 3
        seeds = (f"{min(one.by_seed):.6f}", f"{max(one.by_seed):.6f}", len(one.by_seed))
        rows.append(
            (one.value, one.accuracy.n, one.trained_on, *numbers, *seeds, f"{one.cap:.6f}", one.unread)
        )
    return csv_text([f"value of {column}" if column in head else column, *head], rows)


def remarks(scores: Sequence[ValueScore], unread: Sequence[Problem], start: str = "") -> list[str]:
    """Return limits of the numbers, as sentences.

    Args:
        scores: scores of all values.
        unread: images that cannot be read.
        start: the network that training started from; empty for random weights.
    """
    sentences = []
    if start:
        sentences.append(
            f"Training started from the weights of {start}. It is unknown whether it was trained on some of "
            "the images that are scored here; where it was, accuracy is too high."
        )
    for one in scores:
        if one.cap < 1:
            alone = round((1 - one.cap) * one.accuracy.n)
            before = f", unless {start} knows the class" if start else ""
            sentences.append(
                f"{one.value}: {alone:,} of {counted(one.accuracy.n, 'image')} "
                f"{'has' if alone == 1 else 'have'} a class that no other value has and that cannot be "
                f"learned here: accuracy above {100 * one.cap:.1f} % is chance{before}."
            )
    if unread:
        sentences.append(
            f"{counted(len(unread), 'image')} cannot be read and {'does' if len(unread) == 1 else 'do'} not "
            f"count (first: {unread[0].id}: {unread[0].message})."
        )
    return sentences


def values_page(
    column: str,
    data: str,
    recipe: Recipe,
    scores: Sequence[ValueScore],
    unread: Sequence[Problem],
    failed: Sequence[str] = (),
) -> str:
    """Return an HTML page with the values sorted by their drop, the largest first."""
    order = sorted(scores, key=lambda one: -one.drop.value if one.drop else one.accuracy.value)
    learning = "fine-tuning" if recipe.start else "training"
    return render(
        "studies/leave-out.html",
        title=f"{column} left out",
        eyebrow=f"{data} · {recipe.name}",
        navigation={"values": "Values", "reading": "How to read it"},
        column=column,
        learning=learning,
        sentence=_summary(column, order, learning),
        level=100 * scores[0].accuracy.level,
        seeds=len(scores[0].by_seed),
        rows=order,
        remarks=remarks(order, unread, recipe.start),
        failed=failed,
        ending_rule=ENDING_RULE,
    )


def _summary(column: str, order: Sequence[ValueScore], learning: str) -> str:
    turns = f", each left out of {learning} in turn." if len(order) > 1 else f", left out of {learning}."
    text = f"{counted(len(order), 'value')} of {column}{turns}"
    if all(one.drop is None for one in order):
        return text
    lost = [one.value for one in order if one.drop is not None and one.drop.low > 0]
    if not lost:
        return f"{text} No interval of a loss is above zero."
    return f"{text} The interval of the loss is above zero for: {', '.join(lost)}."
