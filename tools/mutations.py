"""Find the smallest change of each constant that the gate detects.

    python tools/mutations.py      # writes tests/golden/mutations.csv; takes minutes

A constant is moved up and down by 2 %, then 5 %, and so on (integers by 1 first), until our outputs differ
from the packed reference outputs by more than `gate.csv` allows. Most constants are detected at the first
step. The others have little or no effect on the pixels; the file records how far they had to be moved.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from golden_data import GOLDEN, Count, Entry, from_pack, measure, read_gate

from beaufort._core.errors import BeaufortError

__all__ = [
    "MUTATIONS",
    "STEPS",
    "Mutation",
    "by_condition",
    "mutated",
    "mutations",
    "noticed",
    "read_mutations",
]

MUTATIONS = GOLDEN / "mutations.csv"

STEPS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 9.0)
"""Relative changes of a constant; downward it is divided."""

ZERO = 0.1
"""Stands for the value of a constant that is zero."""


class Mutation(NamedTuple):
    """One constant, moved one way."""

    condition: str
    """`scale/corruption/severity`."""
    constant: str
    direction: str
    """`up` or `down`."""
    step: float | None
    """The smallest of `STEPS` that is detected; None if none is."""


def by_condition(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Group entries by corruption, scale and severity."""
    grouped = groupby(sorted(entries, key=_condition), key=_condition)
    return {condition: list(some) for condition, some in grouped}


def _condition(entry: Entry) -> str:
    return entry.key.rpartition("/")[0]


def constants(entry: Entry) -> list[str]:
    """Return the names of the numeric constants of a condition."""
    return [name for name, value in entry.choose().params._asdict().items() if isinstance(value, int | float)]


def mutated(entry: Entry, constant: str, direction: str, step: float) -> Count | None:
    """Compare with the reference under a wrong constant; None if the constant cannot be moved."""
    choice = entry.choose()
    value = getattr(choice.params, constant)
    wrong = _moved(value, direction, step)
    if wrong is None:
        return None
    try:
        return measure(entry, choice._replace(params=choice.params._replace(**{constant: wrong})))
    except (BeaufortError, ValueError, IndexError, OverflowError, ZeroDivisionError):
        return Count(entry.wanted.size, entry.wanted.size, 255)  # an error counts as detected


def _moved(value: float, direction: str, step: float) -> float | None:
    whole = isinstance(value, int)
    moved: float
    if value == 0:
        moved = ZERO * step if direction == "up" else None  # type: ignore[assignment]
        return moved
    if direction == "up":
        moved = max(value + 1, round(value * (1 + step))) if whole else value * (1 + step)
    else:
        moved = min(value - 1, round(value / (1 + step))) if whole else value / (1 + step)
    return moved if moved > 0 or not whole else None


def noticed(entries: Iterable[Entry], constant: str, direction: str, step: float, gate: Any) -> bool | None:
    """Return whether the gate fails on one of the entries."""
    known = False
    for entry in entries:
        count = mutated(entry, constant, direction, step)
        if count is None:
            continue
        known = True
        allowed = gate[entry.key, "packed"]
        if count.differ > allowed.differ or count.largest > allowed.largest:
            return True
    return False if known else None


def mutations(entries: Iterable[Entry]) -> Iterator[Mutation]:
    """Yield the smallest detected step of every constant in both directions."""
    gate = read_gate()
    for condition, some in by_condition(entries).items():
        for constant in constants(some[0]):
            for direction in ("up", "down"):
                if noticed(some[:1], constant, direction, STEPS[0], gate) is None:
                    continue
                steps = (step for step in STEPS if noticed(some, constant, direction, step, gate))
                yield Mutation(condition, constant, direction, next(steps, None))


def read_mutations() -> list[Mutation]:
    """Return the recorded mutations."""
    with MUTATIONS.open(newline="") as file:
        return [
            Mutation(
                row["condition"],
                row["constant"],
                row["direction"],
                float(row["step"]) if row["step"] else None,
            )
            for row in csv.DictReader(file)
        ]


def main() -> None:
    """Write the table row by row."""
    with MUTATIONS.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Mutation._fields)
        for mutation in mutations(from_pack()):
            out.writerow(["" if value is None else value for value in mutation])
            file.flush()


if __name__ == "__main__":
    main()
