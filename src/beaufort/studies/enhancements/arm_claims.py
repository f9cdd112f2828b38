"""Claims about arms beside their controls: image filters on photos, and training runs on CIFAR-10."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from beaufort._core.text import counted
from beaufort.studies.enhancements.arm_predictions import CIFAR, StudyArms
from beaufort.studies.enhancements.findings import (
    SMALL_PICTURES,
    ArmRow,
    StudyFinding,
    both,
    chosen_on_extra,
    cifar_rows,
    decided,
    first_row,
    not_run,
    photo_rows,
    signed,
    small_pictures,
    trainings_text,
    verdict_of,
)
from beaufort.studies.enhancements.mce_statistics import Contributions, combined, intervals
from beaufort.studies.enhancements.training_arms import BASE, CONTROL, training_arms

_MATTERS = 1.0
"""Points of mCE that a gain must be able to have for a question to stay open."""


def about_nlm(arms: StudyArms) -> StudyFinding:
    """Refuted by a gain in mCE alone; a loss that is not noise gaining and the rest losing is undecided."""
    statement = "An ungated non-local means front end raises mCE (noise gains, the rest loses)"
    printed = "+5.4, mCE 82.1 against 76.7"
    names = sorted(n for found in arms.photos.values() for n in found if n.startswith("nlm"))
    rows = photo_rows(arms, "plain", list(dict.fromkeys(names)))
    one = first_row(rows, "nlm-h0.8")
    if one is None:
        return not_run("nlm", statement, printed, rows)
    mce, noise, rest = (one.differences[name] for name in ("mCE", "noise CE", "other CE"))
    verdict = verdict_of(mce, above=True)
    if verdict == "confirmed" and not (noise.high < 0 < rest.low):
        verdict = "undecided"
    best = chosen_on_extra([row for row in rows if row.group == one.group and row.differences])
    told = (
        f"ΔmCE {signed(mce)}, of noise {signed(noise)}, of the others {signed(rest)} ({one.group}, h 0.8)"
        f"{_elsewhere(rows, one, 'mCE')}; of all settings {best.arm} does best on the extra corruptions, "
        f"its ΔmCE is {signed(best.differences['mCE'])}"
    )
    return StudyFinding("nlm", statement, verdict, told, printed, "a gated gain is no refutation", rows)


def about_clahe(arms: StudyArms) -> StudyFinding:
    """By CIFAR-10, where networks are fine-tuned; photos show what CLAHE does without."""
    statement = "CLAHE with fine-tuning lowers mCE against fine-tuning alone, under most corruptions"
    printed = "−2.2, mCE 74.5 against 76.7; without a control"
    rows = [
        *photo_rows(arms, "plain", ["clahe", "clahe-renormalized", "equalize", "stretch"]),
        *cifar_rows(arms, BASE, ["clahe-untuned"]),
        *cifar_rows(arms, CONTROL, ["clahe-tuned"]),
    ]
    one = first_row(rows, "clahe-tuned")
    untuned = [
        f"{name} {signed(row.differences['mCE'])}"
        for name in ("clahe", "clahe-renormalized")
        if (row := first_row(rows, name)) is not None
    ]
    beside = f"; on photos without training ΔmCE of {', '.join(untuned)}" if untuned else ""
    if one is None:
        return not_run("clahe", statement, printed, rows, beside)
    mce, total = one.differences["mCE"], len(arms.settings.corruptions)
    verdict = decided(verdict_of(mce, above=False), one.seeds)
    if verdict == "confirmed" and one.lower < 2 * total / 3:
        verdict = "undecided"
    told = (
        f"ΔmCE {signed(mce)}, CE lower for {one.lower} of {total} corruptions "
        f"({CIFAR}, {trainings_text(one.seeds)}){beside}"
    )
    return StudyFinding("clahe", statement, verdict, told, printed, SMALL_PICTURES, rows)


def about_ten_crops(arms: StudyArms) -> StudyFinding:
    """Refuted by a lower relative mCE; confirmed by a lower clean error without it."""
    statement = "Ten crops lower the clean error, and relative mCE does not fall with it"
    printed = "more accurate, no gain in relative mCE; no number is printed"
    rows = [*photo_rows(arms, "middle-crop", ["ten-crop"]), *cifar_rows(arms, BASE, ["ten-crop"])]
    one = first_row(rows, "ten-crop")
    if one is None or "relative mCE" not in one.differences:
        return not_run("ten-crop", statement, printed, rows)
    clean, relative = one.differences["clean error"], one.differences["relative mCE"]
    verdict = "refuted" if relative.high < 0 else "confirmed" if clean.high < 0 else "undecided"
    where = one.group
    if one.group == CIFAR:
        verdict, where = decided(verdict, one.seeds), f"{CIFAR}, {trainings_text(one.seeds)}"
    told = f"Δ clean error {signed(clean)}, Δ relative mCE {signed(relative)} ({where})"
    told += _elsewhere(rows, one, "relative mCE")
    return StudyFinding("ten-crop", statement, verdict, told, printed, small_pictures(rows), rows)


def _elsewhere(rows: Sequence[ArmRow], one: ArmRow, number: str) -> str:
    """What the arm that decides does to a number with other networks and data, which decide nothing."""
    found = [
        f"{row.group} {signed(row.differences[number])}"
        for row in rows
        if row.arm == one.arm and row.group != one.group and number in row.differences
    ]
    return f", Δ{'' if number == 'mCE' else ' '}{number} of {', '.join(found)}" if found else ""


def about_stability(arms: StudyArms) -> StudyFinding:
    """Refuted by one of the nine settings that surely lowers mCE, or noise CE, below the control's."""
    statement = "No setting of stability training lowers mCE or noise CE against fine-tuning alone"
    printed = "all nine settings above 76.7; no number is printed"
    names = sorted(n for n in arms.cifar if n.startswith(("stability-", "noise-")))
    rows = cifar_rows(arms, CONTROL, names)
    cells = [row for row in rows if _in_the_grid(row.arm)]
    if not cells:
        return not_run("stability", statement, printed, rows)
    best, seeds = chosen_on_extra(cells), [row.seeds for row in cells]
    planned = sum(_in_the_grid(arm.name) for arm in training_arms(arms.settings)["stability"])
    helped, unsure = (
        [row for row in cells if any(test(row.differences[name]) for name in ("mCE", "noise CE"))]
        for test in (lambda change: change.high < 0, lambda change: change.low <= -_MATTERS)
    )
    verdict = decided("undecided" if unsure or len(cells) < planned else "confirmed", min(seeds))
    if any(row.seeds > 1 for row in helped):
        verdict = "refuted"
    settings = counted(len(cells), "setting") + f" out of {planned}" * (len(cells) < planned)
    told = (
        f"intervals of mCE or noise CE are below 0 for {len(helped)} of {settings}, and leave room for a "
        f"gain of a point or more for {len(unsure)} ({CIFAR}, {trainings_text(*seeds)}; "
        f"{2 * len(cells)} intervals, not corrected for each other); the best on the extra corruptions is "
        f"{best.arm}, ΔmCE {signed(best.differences['mCE'])}, of noise "
        f"{signed(best.differences['noise CE'])}"
    )
    return StudyFinding("stability", statement, verdict, told, printed, SMALL_PICTURES, rows)


def _in_the_grid(arm: str) -> bool:
    """Whether an arm is a setting of the paper: weights 1 and 10 are ours."""
    return arm.startswith("stability-") and not arm.endswith(("-w1", "-w10"))


def about_multiscale(arms: StudyArms) -> StudyFinding:
    """By noise CE against both others, and mCE against the ResNet."""
    statement = "A multigrid network has a lower noise CE than a ResNet and than MSDNet, and a lower mCE"
    printed = "Multigrid mCE 73.3, MSDNet 73.6, ResNet-50 76.7"
    rows = [
        *cifar_rows(arms, BASE, ["multigrid", "msdnet"]),
        *cifar_rows(arms, "msdnet", ["multigrid"]),
    ]
    against = {row.control: row for row in rows if row.arm == "multigrid"}
    if set(against) != {BASE, "msdnet"}:
        return not_run("multiscale", statement, printed, rows)
    parts = [*((row, "noise CE") for row in against.values()), (against[BASE], "mCE")]
    verdict = both(*(decided(verdict_of(row.differences[n], above=False), row.seeds) for row, n in parts))
    mce, seeds = against[BASE].differences["mCE"], [row.seeds for row in against.values()]
    noise = ", ".join(f"to {name} {signed(row.differences['noise CE'])}" for name, row in against.items())
    told = f"Δ noise CE {noise}; ΔmCE to {BASE} {signed(mce)} ({CIFAR}, {trainings_text(*seeds)})"
    return StudyFinding("multiscale", statement, verdict, told, printed, SMALL_PICTURES, rows)


def about_transfer(arms: StudyArms) -> StudyFinding:
    """By a quarter of the mean gain under the corruption itself less the mean gain under others.

    Each arm is trained once, and the interval is over images and these trainings. Where tuning does not even
    help with the corruption itself, there is nothing to compare with.
    """
    statement = "Fine-tuning on one corruption helps with others less than a quarter as much as with itself"
    printed = "only cited (Vasiljevic et al., Geirhos et al.)"
    names = [f"on-{name}" for name in arms.settings.corruptions if f"on-{name}" in arms.cifar]
    rows = cifar_rows(
        arms, CONTROL, [*names, "on-all", "on-extra", *sorted(n for n in arms.cifar if n[:4] == "but-")]
    )
    if len(names) < 2 or CONTROL not in arms.cifar:
        return not_run("transfer", statement, printed, rows)
    gains = transfer_gains(arms)
    own, others, gap = [], [], []
    for one in dict.fromkeys(tuned for tuned, _ in gains):
        rest = [gain for (tuned, tested), gain in gains.items() if tuned == one != tested]
        own.append(gains[one, one])
        others.append(combined(*((1 / len(rest), gain) for gain in rest)))
        gap.append(combined((0.25, own[-1]), (-1, others[-1])))
    found = intervals({"itself": _stacked(own), "others": _stacked(others), "gap": _stacked(gap)})
    verdict = verdict_of(found["gap"], above=True) if found["itself"].low > 0 else "undecided"
    told = (
        f"mean gain in CE {signed(found['itself'])} under the corruption itself, {signed(found['others'])} "
        f"under others; a quarter of the first less the second {signed(found['gap'])} ({CIFAR}, of one "
        f"training on each of {counted(len(gap), 'corruption')})"
    )
    caveat = f"training on the test's corruptions breaks the benchmark's rule: a diagnosis; {SMALL_PICTURES}"
    return StudyFinding("transfer", statement, verdict, told, printed, caveat, rows)


def _stacked(each: Sequence[Contributions]) -> Contributions:
    """One number of several trainings, which are as good as seeds of one."""
    low, high = min(one.ends[0] for one in each), max(one.ends[1] for one in each)
    return Contributions(np.concatenate([one.values for one in each]), (low, high))


def transfer_gains(arms: StudyArms) -> dict[tuple[str, str], Contributions]:
    """By what a network was tuned on and what it is tested on: what each image adds to the gain in CE."""
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


def about_shake(arms: StudyArms) -> StudyFinding:
    """By the same network with and without shaking."""
    statement = "Shaking lowers mCE of one network at equal training"
    printed = "Icons-50 style 76.0 against 51.8, with ten times the epochs and another network"
    rows = cifar_rows(arms, "shake26-no-shake", ["shake26-shake"])
    one = first_row(rows, "shake26-shake")
    if one is None:
        return not_run("shake", statement, printed, rows)
    mce, clean = one.differences["mCE"], one.differences["clean error"]
    verdict = decided(verdict_of(mce, above=False), one.seeds)
    told = f"ΔmCE {signed(mce)}, Δ clean error {signed(clean)} ({CIFAR}, {trainings_text(one.seeds)})"
    return StudyFinding("shake", statement, verdict, told, printed, SMALL_PICTURES, rows)


def about_augmentation(arms: StudyArms) -> StudyFinding:
    """By AugMix; the others stand beside it. No claim of the paper."""
    statement = "AugMix lowers mCE against fine-tuning alone"
    rows = cifar_rows(arms, CONTROL, ["augmix", "prime", "gaussian-0.1"])
    one = first_row(rows, "augmix")
    if one is None:
        return not_run("augmentation", statement, "", rows)
    changed = [row for row in rows if row.differences]
    changes = ", ".join(f"{row.arm} {signed(row.differences['mCE'])}" for row in changed)
    told = f"ΔmCE of {changes} ({CIFAR}, {trainings_text(*(row.seeds for row in changed))})"
    verdict = decided(verdict_of(one.differences["mCE"], above=False), one.seeds)
    return StudyFinding("augmentation", statement, verdict, told, "", SMALL_PICTURES, rows)
