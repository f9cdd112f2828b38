"""What is written about the values: a table as CSV, and a page."""

from __future__ import annotations

from collections.abc import Sequence

from beaufort.leave_out.scores import ValueScore
from beaufort.pages import render
from beaufort.stats import Estimate
from beaufort.training.ending import ENDING_RULE
from beaufort.words import counted, csv_text

__all__ = ["page", "table"]

_NUMBERS = ("accuracy", "seen", "drop")


def table(column: str, scores: Sequence[ValueScore]) -> str:
    """A row for each value; shares from 0 to 1, empty where there is no number."""
    ends = [f"{name}{end}" for name in _NUMBERS for end in ("", "_low", "_high")]
    head = [column, "images", "trained_on", *ends, "lowest_seed", "highest_seed", "seeds", "cap", "unread"]
    return csv_text(head, map(_row, scores))


def _row(one: ValueScore) -> list[object]:
    numbers = [cell for number in (one.accuracy, one.seen, one.drop) for cell in _cells(number)]
    seeds = (f"{min(one.by_seed):.6f}", f"{max(one.by_seed):.6f}", len(one.by_seed))
    return [one.value, one.accuracy.n, one.trained_on, *numbers, *seeds, f"{one.cap:.6f}", one.unread]


def _cells(number: Estimate | None) -> tuple[str, str, str]:
    if number is None:
        return "", "", ""
    return f"{number.value:.6f}", f"{number.low:.6f}", f"{number.high:.6f}"


def page(
    column: str, data: str, recipe: str, scores: Sequence[ValueScore], failed: Sequence[str] = ()
) -> str:
    """One HTML file: the values from the largest drop to the smallest."""
    order = sorted(scores, key=lambda one: -one.drop.value if one.drop else one.accuracy.value)
    return render(
        "leave_out/page.html",
        title=f"{column} left out",
        eyebrow=f"{data} · {recipe}",
        navigation={"values": "Values", "reading": "How to read it"},
        column=column,
        sentence=_sentence(column, order),
        level=100 * scores[0].accuracy.level,
        seeds=len(scores[0].by_seed),
        rows=order,
        capped=[one for one in order if one.cap < 1],
        unread=sum(one.unread for one in scores),
        failed=failed,
        ending_rule=ENDING_RULE,
    )


def _sentence(column: str, order: Sequence[ValueScore]) -> str:
    """What the numbers decide, and no more."""
    kinds = f"{counted(len(order), 'value')} of {column}"
    lost = [one for one in order if one.drop is not None and one.drop.low > 0]
    if all(one.drop is None for one in order):
        return f"{kinds}, each left out of training once."
    if not lost:
        return f"{kinds}, each left out of training once. No interval of what is lost is above zero."
    names = ", ".join(one.value for one in lost)
    return (
        f"{kinds}, each left out of training once. The interval of what is lost is above zero for: {names}."
    )
