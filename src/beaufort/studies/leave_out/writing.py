"""What is written about the values: a table as CSV, and a page."""

from __future__ import annotations

from collections.abc import Sequence

from beaufort._core.pages import render
from beaufort._core.text import counted, csv_text
from beaufort.data import Problem
from beaufort.metrics.stats import Estimate
from beaufort.studies.leave_out.scores import ValueScore
from beaufort.training import Recipe
from beaufort.training.ending import ENDING_RULE

_NUMBERS = ("accuracy", "seen", "drop")


def table(column: str, scores: Sequence[ValueScore]) -> str:
    """A row for each value; shares from 0 to 1, empty where there is no number."""
    ends = [f"{name}{end}" for name in _NUMBERS for end in ("", "_low", "_high")]
    head = ["images", "trained_on", *ends, "lowest_seed", "highest_seed", "seeds", "cap", "unread"]
    first = f"value of {column}" if column in head else column
    return csv_text([first, *head], map(_row, scores))


def _row(one: ValueScore) -> list[object]:
    numbers = [cell for number in (one.accuracy, one.seen, one.drop) for cell in _cells(number)]
    seeds = (f"{min(one.by_seed):.6f}", f"{max(one.by_seed):.6f}", len(one.by_seed))
    return [one.value, one.accuracy.n, one.trained_on, *numbers, *seeds, f"{one.cap:.6f}", one.unread]


def _cells(number: Estimate | None) -> tuple[str, str, str]:
    if number is None:
        return "", "", ""
    return f"{number.value:.6f}", f"{number.low:.6f}", f"{number.high:.6f}"


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


def page(
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
        "studies/leave_out/page.html",
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
