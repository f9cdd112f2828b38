"""Tables and verdicts of the questions: the metrics of every arm beside its control, and what they decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from beaufort._core.text import counted
from beaufort.metrics.stats import Estimate, holm, mcnemar
from beaufort.studies.engine import definition
from beaufort.studies.enhancements.arm_metrics import (
    CIFAR,
    ArmMetrics,
    Contributions,
    StudyArms,
    combined,
    intervals,
)
from beaufort.studies.enhancements.enhancement_arms import BASE, CONTROL, STUDY_NAME, training_arms
from beaufort.studies.paper_tables import decide

OFF_THE_LINE = "off the line"
"""A metric: mCE minus the value of a line at the clean error."""

_LEVEL = 0.05
_MATTERS = 1.0
"""Points of mCE; a question stays open while a gain of this size is possible."""


class Flips(NamedTuple):
    """Images that an arm and its control classify differently under a condition, for the first seed."""

    condition: str
    gained: int
    """Correct only for the arm."""
    lost: int
    """Correct only for the control."""
    p: float
    """McNemar's p-value, adjusted for all conditions of the arm."""

    @property
    def verdict(self) -> str:
        if self.p >= _LEVEL:
            return "undecided"
        return "better" if self.gained > self.lost else "worse"


def find_flips(control: ArmMetrics, arm: ArmMetrics) -> tuple[Flips, ...]:
    """Return the flips under clean images and the corruptions in mCE."""
    if control.right is None or arm.right is None:
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
    """One arm of a question beside its control; percentages and points."""

    group: str
    """The network on photos, or `CIFAR-10`."""
    arm: str
    control: str
    numbers: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]
    """The arm minus its control; empty for the control."""
    lower: int
    """Number of corruptions whose CE is lower than the control's."""
    seeds: int
    """Number of seeds that both have."""
    flips: Sequence[Flips] = ()
    """One for each condition; empty for the control."""
    line_seeds: int = 0
    """Number of seeds that the arm and all networks of a line have; 0 without a line."""

    def seeds_of(self, metric: str) -> int:
        return self.line_seeds if metric == OFF_THE_LINE else self.seeds

    def count(self, verdict: str) -> int:
        """Return the number of conditions under which the arm is `better` or `worse` than its control."""
        return sum(one.verdict == verdict for one in self.flips)


def arm_row(
    group: str, arm: str, metrics: ArmMetrics, control: str = "", base: ArmMetrics | None = None
) -> ArmRow:
    """Return the metrics of an arm with intervals, and their differences from a control."""
    seeds = metrics.seeds if base is None else min(metrics.seeds, base.seeds)
    levels = {name: Contributions(rows.values[:seeds], rows.ends) for name, rows in metrics.rows.items()}
    if base is None:
        return ArmRow(group, arm, control, intervals(levels), {}, 0, seeds)
    pairs = {f"Δ {name}": combined((1, rows), (-1, base.rows[name])) for name, rows in levels.items()}
    found = intervals({**levels, **pairs}, paired=pairs)
    numbers, changes = {name: found[name] for name in levels}, {name: found[f"Δ {name}"] for name in levels}
    lower = sum(changes[f"{name} CE"].value < 0 for name in metrics.corruptions)
    return ArmRow(group, arm, control, numbers, changes, lower, seeds, find_flips(base, metrics))


def question_rows(arms: StudyArms, question: str) -> list[ArmRow]:
    """Return the arms of a question beside their controls, as far as they have predictions."""
    rows = []
    for data, control, patterns in definition(STUDY_NAME)["questions"][question]["rows"]:
        groups = arms.photos if data == "photos" else {CIFAR: arms.cifar}
        every = sorted({name for by_arm in groups.values() for name in by_arm})
        names = list(_expand(patterns, every, arms.settings.corruptions))
        for group, by_arm in groups.items():
            there = [name for name in names if name in by_arm]
            if control in by_arm and (there or data == "photos"):
                base = by_arm[control]
                rows.append(arm_row(group, control, base))
                rows += [arm_row(group, name, by_arm[name], control, base) for name in there]
    return rows


def _expand(patterns: Sequence[str], names: Sequence[str], corruptions: Sequence[str]) -> Iterator[str]:
    for pattern in patterns:
        if "CORRUPTION" in pattern:
            yield from (pattern.replace("CORRUPTION", name) for name in corruptions)
        else:
            yield from (name for name in names if fnmatchcase(name, pattern))


@dataclass(frozen=True)
class StudyFinding:
    """The result of a question."""

    name: str
    verdict: str
    """`confirmed`, `refuted`, `undecided`, or `not run` without predictions."""
    measured: str
    rows: Sequence[ArmRow]

    def _text(self, key: str) -> str:
        text: str = definition(STUDY_NAME)["questions"][self.name].get(key, "")
        return text

    @property
    def question(self) -> str:
        return self._text("question")

    @property
    def claim(self) -> str:
        return self._text("claim")

    @property
    def printed(self) -> str:
        """What the paper prints."""
        return self._text("paper")

    @property
    def scope(self) -> str:
        """Data and networks that decide the claim."""
        return self._text("scope")

    @property
    def caveat(self) -> str:
        small = (
            [definition(STUDY_NAME)["small_images"]] if any(row.group == CIFAR for row in self.rows) else []
        )
        return "; ".join(filter(None, [self._text("caveat"), *small]))

    @property
    def sentence(self) -> str:
        """The claim, the verdict, the intervals behind it, the paper's effect, and the caveats."""
        paper = self.printed and f"the paper: {self.printed}"
        parts = (f"{self.claim}: {self.verdict} ({self.scope})", self.measured, paper, self.caveat)
        return "; ".join(filter(None, parts)) + "."


Decision = tuple[str, str]
"""A verdict, and the numbers behind it."""

Rule = Callable[[StudyArms, list[ArmRow]], Decision | None]
"""Decides a question from its rows; None without the predictions that it needs."""


def signed(interval: Estimate) -> str:
    """Return a difference with its interval, with as many digits as it takes to tell its ends from zero.

    >>> signed(Estimate(-2.25, -3.5, -0.04, 1000))
    '−2.25 [−3.50, −0.04]'
    """
    ends = interval.low, interval.high
    digits = next((n for n in (1, 2) if all(round(x, n) or not x for x in ends)), 3)
    value, low, high = (f"{x:+z.{digits}f}".replace("-", "−") for x in (interval.value, *ends))
    return f"{value} [{low}, {high}]"


def runs_text(*seeds: int) -> str:
    """Return how many training runs of each arm a number contains.

    >>> runs_text(5, 5)
    '5 runs each'
    """
    least, most = min(seeds), max(seeds)
    if most == 1:
        return "one run each, which decides nothing"
    if least == most:
        return f"{most} runs each"
    return f"{least} to {most} runs each" + ", where one decides nothing" * (least == 1)


def first_row(rows: Sequence[ArmRow], arm: str) -> ArmRow | None:
    """Return the arm on the first network, which is the paper's if it has predictions."""
    return next((row for row in rows if row.arm == arm and row.differences), None)


def _best_on_extra(rows: Sequence[ArmRow]) -> ArmRow:
    """Return the arm that lowers the extra CE most compared with its control; nothing else selects arms."""
    return min(rows, key=lambda row: row.differences["extra CE"].value)


def _elsewhere(rows: Sequence[ArmRow], one: ArmRow, metric: str) -> str:
    """Return the differences of the deciding arm on other networks and data, which decide nothing."""
    others = [
        f"{row.group} {signed(row.differences[metric])}"
        for row in rows
        if row.arm == one.arm and row.group != one.group and metric in row.differences
    ]
    return f", Δ{'' if metric == 'mCE' else ' '}{metric} of {', '.join(others)}" if others else ""


def nlm(arms: StudyArms, rows: list[ArmRow]) -> Decision | None:
    """Confirmed if mCE and the CE of the others rise and noise CE falls; refuted if mCE falls."""
    if (one := first_row(rows, "nlm-h0.8")) is None:
        return None
    mce, noise, rest = (one.differences[name] for name in ("mCE", "noise CE", "other CE"))
    best = _best_on_extra([row for row in rows if row.group == one.group and row.differences])
    text = (
        f"ΔmCE {signed(mce)}, of noise {signed(noise)}, of the others {signed(rest)} ({one.group}, h 0.8)"
        f"{_elsewhere(rows, one, 'mCE')}; of all settings {best.arm} is best on the extra corruptions, "
        f"with ΔmCE {signed(best.differences['mCE'])}"
    )
    return decide(confirmed=mce.low > 0 and noise.high < 0 < rest.low, refuted=mce.high < 0), text


def clahe(arms: StudyArms, rows: list[ArmRow]) -> Decision | None:
    """Confirmed if fine-tuning lowers mCE and two thirds of the CEs; refuted if it raises mCE."""
    untuned = [
        f"{name} {signed(row.differences['mCE'])}"
        for name in ("clahe", "clahe-renormalized")
        if (row := first_row(rows, name)) is not None
    ]
    beside = f"; on photos without training ΔmCE of {', '.join(untuned)}" if untuned else ""
    if (one := first_row(rows, "clahe-tuned")) is None:
        return "not run", f"no predictions decide it yet{beside}"
    mce, total = one.differences["mCE"], len(arms.settings.corruptions)
    confirmed = mce.high < 0 and one.lower >= 2 * total / 3
    text = (
        f"ΔmCE {signed(mce)}, CE lower for {one.lower} of {total} corruptions "
        f"({CIFAR}, {runs_text(one.seeds)}){beside}"
    )
    return decide(confirmed=confirmed, refuted=mce.low > 0, runs=one.seeds), text


def ten_crops(arms: StudyArms, rows: list[ArmRow]) -> Decision | None:
    """Confirmed if for every network the clean error falls and no interval allows a gain of a point.

    Refuted if the relative mCE of a network falls.
    """
    tested = [row for row in rows if row.arm == "ten-crop" and "relative mCE" in row.differences]
    if not tested:
        return None
    runs = min(row.seeds if row.group == CIFAR else 2 for row in tested)
    pairs = [(row.differences["clean error"], row.differences["relative mCE"]) for row in tested]
    verdict = decide(
        confirmed=all(clean.high < 0 and relative.low > -_MATTERS for clean, relative in pairs),
        refuted=any(relative.high < 0 for _, relative in pairs),
        runs=runs,
    )
    texts = [
        f"Δ clean error {signed(clean)}, Δ relative mCE {signed(relative)} ({row.group}"
        + (f", {runs_text(row.seeds)})" if row.group == CIFAR else ")")
        for row, (clean, relative) in zip(tested, pairs, strict=True)
    ]
    return verdict, f"{'; '.join(texts)}; a gain below {_MATTERS:g} point counts as none"


def stability(arms: StudyArms, rows: list[ArmRow]) -> Decision | None:
    """Confirmed if no interval allows a gain of a point; refuted if a setting lowers mCE or noise CE."""

    def in_grid(arm: str) -> bool:  # weights 1 and 10 are not the paper's
        return arm.startswith("stability-") and not arm.endswith(("-w1", "-w10"))

    if not (cells := [row for row in rows if in_grid(row.arm)]):
        return None
    planned = sum(in_grid(arm.name) for arm in training_arms(arms.settings)["stability"])
    pairs = [(row, [row.differences[name] for name in ("mCE", "noise CE")]) for row in cells]
    helped = [row for row, changes in pairs if any(change.high < 0 for change in changes)]
    open_ones = [row for row, changes in pairs if any(change.low <= -_MATTERS for change in changes)]
    seeds = [row.seeds for row in cells]
    verdict = decide(
        confirmed=not open_ones and len(cells) == planned and min(seeds) > 1,
        refuted=any(row.seeds > 1 for row in helped),
    )
    best = _best_on_extra(cells)
    settings = counted(len(cells), "setting") + f" out of {planned}" * (len(cells) < planned)
    text = (
        f"intervals of mCE or noise CE are below 0 for {len(helped)} of {settings}, and allow a gain of a "
        f"point or more for {len(open_ones)} ({CIFAR}, {runs_text(*seeds)}; {2 * len(cells)} intervals, not "
        f"corrected for their number); the best on the extra corruptions is {best.arm}, with ΔmCE "
        f"{signed(best.differences['mCE'])}, of noise {signed(best.differences['noise CE'])}"
    )
    return verdict, text


def multiscale(arms: StudyArms, rows: list[ArmRow]) -> Decision | None:
    """Confirmed if noise CE is lower than both and mCE than the ResNet's; refuted if one is higher."""
    against = {row.control: row for row in rows if row.arm == "multigrid"}
    if set(against) != {BASE, "msdnet"}:
        return None
    mce, seeds = against[BASE].differences["mCE"], [row.seeds for row in against.values()]
    parts = [(row.differences["noise CE"], row.seeds) for row in against.values()]
    parts.append((mce, against[BASE].seeds))
    verdict = decide(
        confirmed=all(change.high < 0 and runs > 1 for change, runs in parts),
        refuted=any(change.low > 0 and runs > 1 for change, runs in parts),
    )
    noise = ", ".join(f"to {name} {signed(row.differences['noise CE'])}" for name, row in against.items())
    return verdict, f"Δ noise CE {noise}; ΔmCE to {BASE} {signed(mce)} ({CIFAR}, {runs_text(*seeds)})"


def transfer(arms: StudyArms, rows: list[ArmRow]) -> Decision | None:
    """Confirmed if a quarter of the mean gain under the corruption itself exceeds that under the others.

    Each arm is trained once, and the interval is over images and arms. Without a gain under the corruption
    itself there is nothing to compare with.
    """
    gains = transfer_gains(arms)
    names = list(dict.fromkeys(tuned for tuned, _ in gains))
    if len(names) < 2:
        return None
    own, others, gap = [], [], []
    for one in names:
        rest = [gain for (tuned, tested), gain in gains.items() if tuned == one != tested]
        own.append(gains[one, one])
        others.append(combined(*((1 / len(rest), gain) for gain in rest)))
        gap.append(combined((0.25, own[-1]), (-1, others[-1])))
    found = intervals({"itself": _stack(own), "others": _stack(others), "gap": _stack(gap)})
    helps = found["itself"].low > 0
    verdict = decide(confirmed=helps and found["gap"].low > 0, refuted=helps and found["gap"].high < 0)
    text = (
        f"mean gain in CE {signed(found['itself'])} under the corruption itself, {signed(found['others'])} "
        f"under the others; a quarter of the first minus the second {signed(found['gap'])} ({CIFAR}, one run "
        f"on each of {counted(len(gap), 'corruption')})"
    )
    return verdict, text


def _stack(each: Sequence[Contributions]) -> Contributions:
    """Return one metric of several arms, which count like seeds of one."""
    low, high = min(one.ends[0] for one in each), max(one.ends[1] for one in each)
    return Contributions(np.concatenate([one.values for one in each]), (low, high))


def transfer_gains(arms: StudyArms) -> dict[tuple[str, str], Contributions]:
    """Return what each image adds to the gain in CE, by corruption of training and of the test."""
    names, control = arms.settings.corruptions, arms.cifar.get(CONTROL)
    if control is None:
        return {}
    return {
        (one, other): combined(
            (1, control.rows[f"{other} CE"]), (-1, arms.cifar[f"on-{one}"].rows[f"{other} CE"])
        )
        for one in names
        if f"on-{one}" in arms.cifar
        for other in names
    }


def shake(arms: StudyArms, rows: list[ArmRow]) -> Decision | None:
    """Confirmed if mCE falls; refuted if it rises."""
    if (one := first_row(rows, "shake26-shake")) is None:
        return None
    mce, clean = one.differences["mCE"], one.differences["clean error"]
    text = f"ΔmCE {signed(mce)}, Δ clean error {signed(clean)} ({CIFAR}, {runs_text(one.seeds)})"
    return decide(confirmed=mce.high < 0, refuted=mce.low > 0, runs=one.seeds), text


def augmentation(arms: StudyArms, rows: list[ArmRow]) -> Decision | None:
    """Confirmed if AugMix lowers mCE; refuted if it raises it."""
    if (one := first_row(rows, "augmix")) is None:
        return None
    changed, mce = [row for row in rows if row.differences], one.differences["mCE"]
    changes = ", ".join(f"{row.arm} {signed(row.differences['mCE'])}" for row in changed)
    others = ", ".join(f"{row.arm} {signed(row.differences['other CE'])}" for row in changed)
    text = (
        f"ΔmCE of {changes} ({CIFAR}, {runs_text(*(row.seeds for row in changed))}); under the corruptions "
        f"that are not noise, which gaussian-0.1 trains on, {others}"
    )
    return decide(confirmed=mce.high < 0, refuted=mce.low > 0, runs=one.seeds), text
