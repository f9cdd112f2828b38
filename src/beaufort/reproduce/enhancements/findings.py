"""What came of each question: numbers of every arm, and one sentence that follows from an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from beaufort.reproduce.answers import StudyAnswers, answers_by_seed
from beaufort.reproduce.enhancements.arms import BASE, CONTROL
from beaufort.reproduce.enhancements.flips import Flips, find_flips
from beaufort.reproduce.enhancements.photo_files import photo_answers
from beaufort.reproduce.enhancements.settings import DESIGNS, EnhancementSettings, PhotoPass
from beaufort.reproduce.enhancements.statistics import (
    Normalizer,
    Shares,
    alexnet,
    difference,
    level_of,
    normalizer_of,
    shares_of,
)
from beaufort.reproduce.failed import TrainingsLooked, ending_facts, look_at_trainings
from beaufort.stats import Estimate

__all__ = [
    "SMALL_PICTURES",
    "ArmRow",
    "StudyArms",
    "StudyFinding",
    "both",
    "chosen_on_extra",
    "cifar_rows",
    "first_row",
    "load_arms",
    "not_run",
    "photo_rows",
    "signed",
    "verdict_of",
]

SMALL_PICTURES = "32-pixel results do not predict those on large pictures"


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
    flips: Sequence[Flips] = ()
    """Of each condition; empty for the control."""

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


@dataclass(frozen=True)
class StudyArms:
    """All answers that a folder has, as shares."""

    photos: Mapping[str, Mapping[str, Shares]]
    """By network and arm."""
    cifar: Mapping[str, Shares]
    settings: EnhancementSettings
    images: Mapping[str, int]
    styles: Mapping[str, StudyAnswers] = field(default_factory=dict)
    """Of stylized photos by network."""
    trainings: TrainingsLooked = field(default_factory=TrainingsLooked)


def load_arms(folder: Path, settings: EnhancementSettings) -> StudyArms:
    """What is there; nothing is made."""
    photos: dict[str, dict[str, Shares]] = {}
    images: dict[str, int] = {}
    passes: tuple[PhotoPass, ...] = ("fronts", "crops")
    for which in passes:
        for network, by_arm in photo_answers(folder, which, settings).items():
            for arm, answers in by_arm.items():
                images["photos"] = answers.right.shape[1]
                found = shares_of([answers], alexnet(settings), settings)
                photos.setdefault(network, {})[arm] = found
    styled = photo_answers(folder, "styles", settings)
    styles = {network: by_arm["plain"] for network, by_arm in styled.items()}
    trained = {name: _without_gap(found) for name, found in answers_by_seed(folder / "cifar").items()}
    trained = {name: found for name, found in trained.items() if found}
    cifar: dict[str, Shares] = {}
    if BASE in trained:
        base: Normalizer = normalizer_of(trained[BASE][0])
        cifar = {name: shares_of(answers, base, settings) for name, answers in trained.items()}
        images["CIFAR-10"] = trained[BASE][0].right.shape[1]
    return StudyArms(photos, cifar, settings, images, styles, _trainings(trained))


def _trainings(trained: Mapping[str, Sequence[StudyAnswers]]) -> TrainingsLooked:
    """What the losses of all arms say that were trained, and which numbers each is part of."""
    named = {
        BASE: "its rows, all differences to it, arms that start from it or test it; of seed 0, every mCE",
        CONTROL: "its rows and all differences to it",
        "resnet56": "its rows, and arms that start from it",
    }
    return look_at_trainings(
        (arm, named.get(arm, "its rows"), ending_facts(one))
        for arm, some in trained.items()
        for one in some
        if one.facts.get("recipe", {}).get("name") == arm  # others test what another arm trained
    )


def _without_gap(answers: Sequence[StudyAnswers]) -> list[StudyAnswers]:
    """Those of seeds 0, 1, … up to the first that is missing, so that arms are compared seed by seed."""
    return [one for place, one in enumerate(answers) if one.facts.get("seed", place) == place]


def _row(group: str, arm: str, shares: Shares, control: str = "", base: Shares | None = None) -> ArmRow:
    metrics = [name for name in shares.rows if not name.startswith("ce: ")]
    lower = 0
    changes: dict[str, Estimate] = {}
    flips: Sequence[Flips] = ()
    if base is not None:
        changes = {name: difference(base, shares, name) for name in metrics if name in base.rows}
        lower = sum(
            float(shares.rows[f"ce: {name}"].mean()) < float(base.rows[f"ce: {name}"].mean())
            for name in shares.corruptions
        )
        flips = find_flips(base, shares)
    numbers = {name: level_of(shares, name) for name in metrics}
    return ArmRow(group, arm, control, numbers, changes, lower, len(shares.rows["mCE"]), flips)


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
    changed = [_row("CIFAR-10", name, arms.cifar[name], control, base) for name in there]
    return [_row("CIFAR-10", control, base), *changed]


def verdict_of(interval: Estimate, *, above: bool) -> str:
    """Whether a number is surely on the side that a claim says."""
    if interval.low > 0:
        return "confirmed" if above else "refuted"
    if interval.high < 0:
        return "refuted" if above else "confirmed"
    return "undecided"


def both(*verdicts: str) -> str:
    """Confirmed if all are, refuted if one is."""
    if set(verdicts) == {"confirmed"}:
        return "confirmed"
    return "refuted" if "refuted" in verdicts else "undecided"


def signed(interval: Estimate) -> str:
    """A difference with its interval."""
    return f"{interval.value:+.1f} [{interval.low:+.1f}, {interval.high:+.1f}]".replace("-", "−")


def chosen_on_extra(rows: Sequence[ArmRow]) -> ArmRow:
    """The arm with the lowest CE under the extra corruptions: the only numbers that may choose one."""
    return min(rows, key=lambda row: row.numbers["extra CE"].value)


def not_run(design: str, statement: str, printed: str, rows: Sequence[ArmRow] = ()) -> StudyFinding:
    """A finding without answers."""
    return StudyFinding(design, statement, "not run", "what decides it has no answers yet", printed, "", rows)


def first_row(rows: Sequence[ArmRow], arm: str) -> ArmRow | None:
    """The arm on the first network, which is the paper's where it is there."""
    return next((row for row in rows if row.arm == arm and row.differences), None)
