"""What came of each question: numbers of every arm, and one sentence that follows from an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort.reproduce.answers import StudyAnswers, answers_by_seed, read_answers
from beaufort.reproduce.enhancements.arms import BASE, CONTROL
from beaufort.reproduce.enhancements.settings import DESIGNS, EnhancementSettings
from beaufort.reproduce.enhancements.statistics import (
    Normalizer,
    Shares,
    alexnet,
    difference,
    level_of,
    normalizer_of,
    shares_of,
)
from beaufort.stats import Estimate

__all__ = ["ArmRow", "Finding", "StudyArms", "find_all", "load_arms"]

_LEAST_SPREAD = 0.05
"""Points of clean error that networks must differ by to give a line."""
Floats = NDArray[np.float64]

_MATTERS = 1.0
"""Points of mCE that a gain must be able to have for a question to stay open."""
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


@dataclass(frozen=True)
class Finding:
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
        """The verdict with the interval that says so."""
        beside = f" The paper: {self.printed}." if self.printed else ""
        more = f" Note: {self.caveat}." if self.caveat else ""
        return f"{self.statement}: {self.verdict}. {self.measured}.{beside}{more}"


@dataclass(frozen=True)
class StudyArms:
    """All answers that a folder has, as shares."""

    photos: Mapping[str, Mapping[str, Shares]]
    """By network and arm."""
    cifar: Mapping[str, Shares]
    settings: EnhancementSettings
    images: Mapping[str, int]


def load_arms(folder: Path, settings: EnhancementSettings) -> StudyArms:
    """What is there; nothing is made."""
    photos: dict[str, dict[str, Shares]] = {}
    images: dict[str, int] = {}
    for path in sorted((folder / "photos").glob("*/*.npz")):
        answers = read_answers(path)
        images["photos"] = answers.right.shape[1]
        photos.setdefault(path.parent.name, {})[path.stem] = shares_of([answers], alexnet(settings), settings)
    trained: Mapping[str, list[StudyAnswers]] = answers_by_seed(folder / "cifar")
    cifar: dict[str, Shares] = {}
    if BASE in trained:
        base: Normalizer = normalizer_of(trained[BASE][0])
        cifar = {name: shares_of(answers, base, settings) for name, answers in trained.items()}
        images["CIFAR-10"] = trained[BASE][0].right.shape[1]
    return StudyArms(photos, cifar, settings, images)


def find_all(arms: StudyArms) -> list[Finding]:
    """A finding for each question, in order."""
    return [_FINDERS[design](arms) for design in DESIGNS]


def _row(group: str, arm: str, shares: Shares, control: str = "", base: Shares | None = None) -> ArmRow:
    metrics = [name for name in shares.rows if not name.startswith("ce: ")]
    lower = 0
    changes: dict[str, Estimate] = {}
    if base is not None:
        changes = {name: difference(base, shares, name) for name in metrics if name in base.rows}
        lower = sum(
            float(shares.rows[f"ce: {name}"].mean()) < float(base.rows[f"ce: {name}"].mean())
            for name in shares.corruptions
        )
    numbers = {name: level_of(shares, name) for name in metrics}
    return ArmRow(group, arm, control, numbers, changes, lower, len(shares.rows["mCE"]))


def _photo_rows(arms: StudyArms, control: str, names: Sequence[str]) -> list[ArmRow]:
    rows = []
    for network, found in arms.photos.items():
        if control not in found:
            continue
        rows.append(_row(network, control, found[control]))
        rows += [_row(network, n, found[n], control, found[control]) for n in names if n in found]
    return rows


def _cifar_rows(arms: StudyArms, control: str, names: Sequence[str]) -> list[ArmRow]:
    there = [name for name in names if name in arms.cifar]
    if control not in arms.cifar or not there:
        return []
    base = arms.cifar[control]
    changed = [_row("CIFAR-10", name, arms.cifar[name], control, base) for name in there]
    return [_row("CIFAR-10", control, base), *changed]


def _verdict(interval: Estimate, *, above: bool) -> str:
    """Whether a number is surely on the side that a claim says."""
    if interval.low > 0:
        return "confirmed" if above else "refuted"
    if interval.high < 0:
        return "refuted" if above else "confirmed"
    return "undecided"


def _both(*verdicts: str) -> str:
    if set(verdicts) == {"confirmed"}:
        return "confirmed"
    return "refuted" if "refuted" in verdicts else "undecided"


def _told(interval: Estimate) -> str:
    return f"{interval.value:+.1f} [{interval.low:+.1f}, {interval.high:+.1f}]"


def _not_run(design: str, statement: str, printed: str, rows: Sequence[ArmRow] = ()) -> Finding:
    return Finding(design, statement, "not run", "its arms have no answers yet", printed, "", rows)


def _first(rows: Sequence[ArmRow], arm: str) -> ArmRow | None:
    """The arm on the first network, which is the paper's where it is there."""
    return next((row for row in rows if row.arm == arm and row.differences), None)


def _nlm(arms: StudyArms) -> Finding:
    statement = "An ungated non-local means front end raises mCE: noise gains, and the rest loses"
    printed = "+5.4, mCE 82.1 against 76.7"
    names = sorted(n for found in arms.photos.values() for n in found if n.startswith("nlm"))
    rows = _photo_rows(arms, "plain", list(dict.fromkeys(names)))
    one = _first(rows, "nlm-h0.8")
    if one is None:
        return _not_run("nlm", statement, printed, rows)
    mce, noise, rest = (one.differences[name] for name in ("mCE", "noise CE", "other CE"))
    verdict = _both(_verdict(mce, above=True), _verdict(noise, above=False), _verdict(rest, above=True))
    told = f"ΔmCE {_told(mce)}, of noise {_told(noise)}, of the others {_told(rest)} ({one.group}, h 0.8)"
    return Finding("nlm", statement, verdict, told, printed, "a gated gain is no refutation", rows)


def _clahe(arms: StudyArms) -> Finding:
    statement = "CLAHE with fine-tuning lowers mCE against fine-tuning alone, under most corruptions"
    printed = "−2.2, mCE 74.5 against 76.7; without a control"
    rows = [
        *_photo_rows(arms, "plain", ["clahe", "equalize", "stretch"]),
        *_cifar_rows(arms, BASE, ["clahe-untuned"]),
        *_cifar_rows(arms, CONTROL, ["clahe-tuned"]),
    ]
    one = _first(rows, "clahe-tuned")
    if one is None:
        return _not_run("clahe", statement, printed, rows)
    mce, total = one.differences["mCE"], len(arms.settings.corruptions)
    verdict = _verdict(mce, above=False)
    if verdict == "confirmed" and one.lower < 2 * total / 3:
        verdict = "undecided"
    told = f"ΔmCE {_told(mce)}, CE lower for {one.lower} of {total} corruptions"
    return Finding("clahe", statement, verdict, told, printed, SMALL_PICTURES, rows)


def _stability(arms: StudyArms) -> Finding:
    statement = "No setting of stability training lowers mCE against fine-tuning alone"
    printed = "all nine settings above 76.7; no number is printed"
    names = sorted(n for n in arms.cifar if n.startswith(("stability-", "noise-")))
    rows = _cifar_rows(arms, CONTROL, names)
    cells = [row for row in rows if row.arm.startswith("stability") and not row.arm.endswith(("w1", "w10"))]
    if not cells:
        return _not_run("stability", statement, printed, rows)
    best = min(cells, key=lambda row: row.differences["mCE"].value)
    helped = [row.arm for row in cells if row.differences["mCE"].high < 0]
    unsure = [row.arm for row in cells if row.differences["mCE"].low <= -_MATTERS]
    verdict = "refuted" if helped else "undecided" if unsure else "confirmed"
    told = (
        f"{len(helped)} of {len(cells)} settings surely lower it, {len(unsure)} may by a point or more; "
        f"the lowest is {best.arm}, ΔmCE {_told(best.differences['mCE'])}, of noise "
        f"{_told(best.differences['noise CE'])}"
    )
    return Finding("stability", statement, verdict, told, printed, SMALL_PICTURES, rows)


def _ten_crop(arms: StudyArms) -> Finding:
    statement = "Ten crops lower the clean error, and relative mCE does not fall with it"
    printed = "more accurate, no gain in relative mCE; no number is printed"
    rows = [*_photo_rows(arms, "middle-crop", ["ten-crop"]), *_cifar_rows(arms, BASE, ["ten-crop"])]
    one = _first(rows, "ten-crop")
    if one is None or "relative mCE" not in one.differences:
        return _not_run("ten-crop", statement, printed, rows)
    clean, relative = one.differences["clean error"], one.differences["relative mCE"]
    verdict = "refuted" if relative.high < 0 else "confirmed" if clean.high < 0 else "undecided"
    told = f"Δ clean error {_told(clean)}, Δ relative mCE {_told(relative)} ({one.group})"
    caveat = SMALL_PICTURES if one.group == "CIFAR-10" else ""
    return Finding("ten-crop", statement, verdict, told, printed, caveat, rows)


def _off_the_line(arms: StudyArms, line: Sequence[str], name: str, metric: str = "mCE") -> Estimate | None:
    """How far a network's mCE is above the line through others against clean error, over images and seeds.

    None if there is no line: of one network, or of networks with one clean error. The slope is that of all
    images; it does not vary in the interval.
    """
    known = [arms.cifar[one] for one in line if one in arms.cifar]
    errors = [float(one.rows["clean error"].mean()) for one in known]
    if name not in arms.cifar or len(known) < 2 or max(errors) - min(errors) < _LEAST_SPREAD:
        return None
    seeds = min(len(one.rows["mCE"]) for one in (*known, arms.cifar[name]))
    slope = float(np.polyfit(errors, [one.rows[metric].mean() for one in known], 1)[0])
    one = arms.cifar[name]
    own = one.rows[metric][:seeds] - slope * one.rows["clean error"][:seeds]
    others = np.mean(
        [other.rows[metric][:seeds] - slope * other.rows["clean error"][:seeds] for other in known], axis=0
    )
    shares = Shares({"residual": own - others}, one.corruptions)
    return level_of(shares, "residual")


_RESNETS = ("resnet20", "resnet56", "resnet110")


def _about_line(
    arms: StudyArms, design: str, statement: str, printed: str, names: Sequence[str], *, above: bool
) -> Finding:
    rows = _cifar_rows(arms, BASE, [*_RESNETS[1:], *names])
    found = {name: off for name in names if (off := _off_the_line(arms, _RESNETS, name)) is not None}
    if not found and rows:
        told = "the ResNets do not differ in clean error, so there is no line"
        return Finding(design, statement, "undecided", told, printed, SMALL_PICTURES, rows)
    if not found:
        return _not_run(design, statement, printed, rows)
    each = [_verdict(off, above=above) for off in found.values()]
    verdict = (
        "confirmed" if set(each) == {"confirmed"} else "refuted" if set(each) == {"refuted"} else "undecided"
    )
    told = "off the line of ResNets: " + ", ".join(f"{name} {_told(off)}" for name, off in found.items())
    return Finding(design, statement, verdict, told, printed, SMALL_PICTURES, rows)


def _small(arms: StudyArms) -> Finding:
    names = [n for n in arms.cifar if n.startswith(("resnet20-", "resnet56-pruned"))]
    return _about_line(
        arms,
        "small",
        "Small and pruned networks lie above the line of accuracy",
        "CondenseNet +1.1 and +1.6 above the line of ResNets",
        [n for n in names if not n.endswith("double")],
        above=True,
    )


def _aggregation(arms: StudyArms) -> Finding:
    return _about_line(
        arms,
        "aggregation",
        "Aggregating networks lie below the line of accuracy",
        "DenseNet-121 −5.5 and ResNeXt-50 −7.2 off the line of ResNets",
        ["densenet40", "resnext29"],
        above=False,
    )


def _multiscale(arms: StudyArms) -> Finding:
    statement = "A multigrid network has a lower noise CE than a ResNet and than MSDNet, and a lower mCE"
    printed = "Multigrid mCE 73.3, MSDNet 73.6, ResNet-50 76.7"
    rows = _cifar_rows(arms, BASE, ["multigrid", "msdnet"])
    if "multigrid" not in arms.cifar or "msdnet" not in arms.cifar or not rows:
        return _not_run("multiscale", statement, printed, rows)
    against = {
        name: difference(arms.cifar[name], arms.cifar["multigrid"], "noise CE") for name in (BASE, "msdnet")
    }
    mce = difference(arms.cifar[BASE], arms.cifar["multigrid"])
    verdict = _both(*(_verdict(one, above=False) for one in (*against.values(), mce)))
    noise = ", ".join(f"to {name} {_told(one)}" for name, one in against.items())
    told = f"Δ noise CE {noise}; ΔmCE {_told(mce)}"
    return Finding("multiscale", statement, verdict, told, printed, SMALL_PICTURES, rows)


def _transfer(arms: StudyArms) -> Finding:
    statement = "Fine-tuning on one corruption helps with others less than a quarter as much as with itself"
    printed = "only cited (Vasiljevic et al., Geirhos et al.)"
    names = [f"on-{name}" for name in arms.settings.corruptions if f"on-{name}" in arms.cifar]
    rows = _cifar_rows(
        arms, CONTROL, [*names, "on-all", "on-extra", *sorted(n for n in arms.cifar if n[:4] == "but-")]
    )
    if len(names) < 2 or CONTROL not in arms.cifar:
        return _not_run("transfer", statement, printed, rows)
    control = arms.cifar[CONTROL]
    own: list[Floats] = []
    others: list[Floats] = []
    for name in names:
        seeds = min(len(arms.cifar[name].rows["mCE"]), len(control.rows["mCE"]))
        for other in arms.settings.corruptions:
            gain = control.rows[f"ce: {other}"][:seeds] - arms.cifar[name].rows[f"ce: {other}"][:seeds]
            (own if name == f"on-{other}" else others).append(gain)
    gap = Shares({"gap": np.mean(own, axis=0) / 4 - np.mean(others, axis=0)}, control.corruptions)
    interval = level_of(gap, "gap")
    told = (
        f"mean gain in CE {np.mean(own):.1f} under the corruption itself, {np.mean(others):.1f} under others;"
        f" a quarter of the first less the second {_told(interval)}"
    )
    caveat = f"training on the test's corruptions breaks the benchmark's rule: a diagnosis; {SMALL_PICTURES}"
    return Finding("transfer", statement, _verdict(interval, above=True), told, printed, caveat, rows)


def _shake(arms: StudyArms) -> Finding:
    statement = "Shaking lowers mCE of one network at equal training"
    printed = "Icons-50 style 76.0 against 51.8, with ten times the epochs and another network"
    rows = _cifar_rows(arms, "shake26-no-shake", ["shake26-shake"])
    one = _first(rows, "shake26-shake")
    if one is None:
        return _not_run("shake", statement, printed, rows)
    mce = one.differences["mCE"]
    told = f"ΔmCE {_told(mce)}, Δ clean error {_told(one.differences['clean error'])}"
    return Finding("shake", statement, _verdict(mce, above=False), told, printed, SMALL_PICTURES, rows)


def _augmentation(arms: StudyArms) -> Finding:
    statement = "AugMix lowers mCE against fine-tuning alone"
    rows = _cifar_rows(arms, CONTROL, ["augmix", "prime", "gaussian-0.1"])
    one = _first(rows, "augmix")
    if one is None:
        return _not_run("augmentation", statement, "", rows)
    told = "; ".join(f"{row.arm} ΔmCE {_told(row.differences['mCE'])}" for row in rows if row.differences)
    verdict = _verdict(one.differences["mCE"], above=False)
    return Finding("augmentation", statement, verdict, told, "", SMALL_PICTURES, rows)


_FINDERS: Mapping[str, Callable[[StudyArms], Finding]] = {
    "nlm": _nlm,
    "clahe": _clahe,
    "stability": _stability,
    "ten-crop": _ten_crop,
    "small": _small,
    "aggregation": _aggregation,
    "multiscale": _multiscale,
    "transfer": _transfer,
    "shake": _shake,
    "augmentation": _augmentation,
}
