"""What came of each question: numbers of every arm, and one sentence that follows from an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from beaufort.metrics.stats import Estimate, holm, mcnemar
from beaufort.studies.enhancements.arm_predictions import CIFAR, StudyArms
from beaufort.studies.enhancements.enhancement_settings import DESIGNS
from beaufort.studies.enhancements.mce_statistics import (
    ArmMetrics,
    Contributions,
    combined,
    intervals,
)

OFF_THE_LINE = "off the line"
"""A number: mCE less what a line gives for the clean error."""
SMALL_PICTURES = "32-pixel results do not predict those on large pictures"


_LEVEL = 0.05


@dataclass(frozen=True)
class Flips:
    """Images whose answer changes between right and wrong under a condition; of the first seed."""

    condition: str
    gained: int
    """Right behind the arm only."""
    lost: int
    """Right for the control only."""
    p: float
    """Adjusted for all conditions of the arm."""

    @property
    def verdict(self) -> str:
        """`better`, `worse` or `undecided`."""
        if self.p >= _LEVEL:
            return "undecided"
        return "better" if self.gained > self.lost else "worse"


def find_flips(control: ArmMetrics, arm: ArmMetrics) -> tuple[Flips, ...]:
    """The flips of every condition that counts: the clean images and the corruptions that mCE is over."""
    if control.right is None or arm.right is None:  # made from numbers other than answers
        return ()
    names = [
        name
        for name in control.conditions
        if name in arm.conditions and name.partition("@")[0] in ("clean", *control.corruptions)
    ]
    before = control.right[[control.conditions.index(name) for name in names]]
    after = arm.right[[arm.conditions.index(name) for name in names]]
    gained, lost = (np.count_nonzero(one, axis=1) for one in (after & ~before, before & ~after))
    p = holm([mcnemar(int(a), int(b)) for a, b in zip(lost, gained, strict=True)])
    return tuple(
        Flips(name, int(a), int(b), float(c)) for name, a, b, c in zip(names, gained, lost, p, strict=True)
    )


@dataclass(frozen=True)
class ArmRow:
    """One arm of a question beside its control; percentages, differences in points."""

    group: str
    """The network on photos, or `CIFAR-10`."""
    arm: str
    control: str
    numbers: Mapping[str, Estimate]
    """Of the arm itself."""
    differences: Mapping[str, Estimate]
    """Less the control's; empty for the control."""
    lower: int
    """Corruptions whose CE is lower than the control's."""
    seeds: int
    """That both have, of which all numbers are but the distance from a line."""
    flips: Sequence[Flips] = ()
    """Of each condition; empty for the control."""
    line_seeds: int = 0
    """That it and all networks of a line have, of which the distance from the line is; 0 without one."""

    def seeds_of(self, metric: str) -> int:
        """How many seeds a number is of."""
        return self.line_seeds if metric == OFF_THE_LINE else self.seeds

    @property
    def better(self) -> int:
        """Conditions under which it is surely better than the control, by McNemar's test with Holm's rule."""
        return sum(one.verdict == "better" for one in self.flips)

    @property
    def worse(self) -> int:
        """Conditions under which it is surely worse."""
        return sum(one.verdict == "worse" for one in self.flips)


@dataclass(frozen=True)
class StudyFinding:
    """The answer to a question."""

    design: str
    statement: str
    """The claim that is tested."""
    verdict: str
    """`confirmed`, `refuted` or `undecided`; `not run` where there are no answers."""
    measured: str
    printed: str
    """What the paper prints; empty where it prints nothing."""
    caveat: str
    rows: Sequence[ArmRow]

    @property
    def question(self) -> str:
        return DESIGNS[self.design]

    @property
    def sentence(self) -> str:
        """The verdict with the interval that says so, the paper's effect, and what limits it."""
        paper = (f"the paper: {self.printed}",) if self.printed else ()
        caveat = (self.caveat,) if self.caveat else ()
        return "; ".join((f"{self.statement}: {self.verdict}", self.measured, *paper, *caveat)) + "."


def _row(
    group: str, arm: str, shares: ArmMetrics, control: str = "", base: ArmMetrics | None = None
) -> ArmRow:
    seeds = shares.seeds if base is None else min(shares.seeds, base.seeds)
    levels = {name: Contributions(rows.values[:seeds], rows.ends) for name, rows in shares.rows.items()}
    if base is None:
        return ArmRow(group, arm, control, intervals(levels), {}, 0, seeds)
    pairs = {name: combined((1, rows), (-1, base.rows[name])) for name, rows in levels.items()}
    found = intervals({**levels, **{f"Δ {name}": rows for name, rows in pairs.items()}})
    numbers, changes = {name: found[name] for name in levels}, {name: found[f"Δ {name}"] for name in levels}
    lower = sum(changes[f"{name} CE"].value < 0 for name in shares.corruptions)
    return ArmRow(group, arm, control, numbers, changes, lower, seeds, find_flips(base, shares))


def photo_rows(arms: StudyArms, control: str, names: Sequence[str]) -> list[ArmRow]:
    """Arms on photos beside their control, network by network."""
    rows = []
    for network, found in arms.photos.items():
        if control not in found:
            continue
        rows.append(_row(network, control, found[control]))
        rows += [_row(network, n, found[n], control, found[control]) for n in names if n in found]
    return rows


def cifar_rows(arms: StudyArms, control: str, names: Sequence[str]) -> list[ArmRow]:
    """Arms on CIFAR-10 beside their control."""
    there = [name for name in names if name in arms.cifar]
    if control not in arms.cifar or not there:
        return []
    base = arms.cifar[control]
    changed = [_row(CIFAR, name, arms.cifar[name], control, base) for name in there]
    return [_row(CIFAR, control, base), *changed]


def verdict_of(interval: Estimate, *, above: bool) -> str:
    """Whether a number is surely on the side that a claim says."""
    if interval.low > 0:
        return "confirmed" if above else "refuted"
    if interval.high < 0:
        return "refuted" if above else "confirmed"
    return "undecided"


def decided(verdict: str, seeds: int) -> str:
    """A verdict about trainings; of one each it is open, because how far another comes out is not known."""
    return verdict if seeds > 1 else "undecided"


def trainings_text(*seeds: int) -> str:
    """How many trainings of each arm numbers are of.

    >>> trainings_text(5, 5)
    'of 5 trainings each'
    """
    least, most = min(seeds), max(seeds)
    if most == 1:
        return "of one training each, which decides nothing"
    if least == most:
        return f"of {most} trainings each"
    return f"of {least} to {most} trainings each" + ", where one decides nothing" * (least == 1)


def both(*verdicts: str) -> str:
    """Confirmed if all are, refuted if one is."""
    if set(verdicts) == {"confirmed"}:
        return "confirmed"
    return "refuted" if "refuted" in verdicts else "undecided"


def signed(interval: Estimate) -> str:
    """A difference with its interval; with more digits where one does not tell an end from zero.

    >>> signed(Estimate(-2.25, -3.5, -0.04, 1000))
    '−2.25 [−3.50, −0.04]'
    """
    ends = interval.low, interval.high
    digits = next((n for n in (1, 2) if all(round(x, n) or not x for x in ends)), 3)
    value, low, high = (f"{x:+z.{digits}f}".replace("-", "−") for x in (interval.value, *ends))
    return f"{value} [{low}, {high}]"


def chosen_on_extra(rows: Sequence[ArmRow]) -> ArmRow:
    """The arm that lowers CE most under the extra corruptions, whose numbers alone may choose one.

    By the difference from the control, because arms may have different seeds.
    """
    return min(rows, key=lambda row: row.differences["extra CE"].value)


def not_run(
    design: str, statement: str, printed: str, rows: Sequence[ArmRow] = (), beside: str = ""
) -> StudyFinding:
    """A finding without the answers that decide it; others may be told beside."""
    told = f"what decides it has no answers yet{beside}"
    return StudyFinding(design, statement, "not run", told, printed, small_pictures(rows), rows)


def small_pictures(rows: Sequence[ArmRow]) -> str:
    """What has to be said wherever rows show CIFAR-10; nothing where they do not."""
    return SMALL_PICTURES if any(row.group == CIFAR for row in rows) else ""


def first_row(rows: Sequence[ArmRow], arm: str) -> ArmRow | None:
    """The arm on the first network, which is the paper's where it is there."""
    return next((row for row in rows if row.arm == arm and row.differences), None)
