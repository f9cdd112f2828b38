"""Questions that trainings on CIFAR-10 answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beaufort.reproduce.enhancements.arms import BASE, CONTROL
from beaufort.reproduce.enhancements.findings import (
    SMALL_PICTURES,
    StudyArms,
    StudyFinding,
    both,
    chosen_on_extra,
    cifar_rows,
    first_row,
    not_run,
    signed,
    verdict_of,
)
from beaufort.reproduce.enhancements.statistics import Shares, difference, level_of

__all__ = [
    "about_augmentation",
    "about_multiscale",
    "about_shake",
    "about_stability",
    "about_transfer",
    "transfer_gains",
]

Floats = NDArray[np.float64]

_MATTERS = 1.0
"""Points of mCE that a gain must be able to have for a question to stay open."""


def about_stability(arms: StudyArms) -> StudyFinding:
    """Refuted by one of the nine settings that surely lowers mCE, or noise CE, below the control's."""
    statement = "No setting of stability training lowers mCE or noise CE against fine-tuning alone"
    printed = "all nine settings above 76.7; no number is printed"
    names = sorted(n for n in arms.cifar if n.startswith(("stability-", "noise-")))
    rows = cifar_rows(arms, CONTROL, names)
    cells = [row for row in rows if row.arm.startswith("stability") and not row.arm.endswith(("w1", "w10"))]
    if not cells:
        return not_run("stability", statement, printed, rows)
    best = chosen_on_extra(cells)
    helped, unsure = (
        [row.arm for row in cells if any(test(row.differences[name]) for name in ("mCE", "noise CE"))]
        for test in (lambda change: change.high < 0, lambda change: change.low <= -_MATTERS)
    )
    verdict = "refuted" if helped else "undecided" if unsure else "confirmed"
    told = (
        f"{len(helped)} of {len(cells)} settings surely lower it or noise CE, {len(unsure)} may by a point "
        f"or more; the best on the extra corruptions is {best.arm}, "
        f"ΔmCE {signed(best.differences['mCE'])}, of noise {signed(best.differences['noise CE'])}"
    )
    return StudyFinding("stability", statement, verdict, told, printed, SMALL_PICTURES, rows)


def about_multiscale(arms: StudyArms) -> StudyFinding:
    """By noise CE against both others, and mCE against the ResNet."""
    statement = "A multigrid network has a lower noise CE than a ResNet and than MSDNet, and a lower mCE"
    printed = "Multigrid mCE 73.3, MSDNet 73.6, ResNet-50 76.7"
    rows = cifar_rows(arms, BASE, ["multigrid", "msdnet"])
    if "multigrid" not in arms.cifar or "msdnet" not in arms.cifar or not rows:
        return not_run("multiscale", statement, printed, rows)
    against = {
        name: difference(arms.cifar[name], arms.cifar["multigrid"], "noise CE") for name in (BASE, "msdnet")
    }
    mce = difference(arms.cifar[BASE], arms.cifar["multigrid"])
    verdict = both(*(verdict_of(one, above=False) for one in (*against.values(), mce)))
    noise = ", ".join(f"to {name} {signed(one)}" for name, one in against.items())
    told = f"Δ noise CE {noise}; ΔmCE {signed(mce)}"
    return StudyFinding("multiscale", statement, verdict, told, printed, SMALL_PICTURES, rows)


def about_transfer(arms: StudyArms) -> StudyFinding:
    """By a quarter of the mean gain under the corruption itself less the mean gain under others."""
    statement = "Fine-tuning on one corruption helps with others less than a quarter as much as with itself"
    printed = "only cited (Vasiljevic et al., Geirhos et al.)"
    names = [f"on-{name}" for name in arms.settings.corruptions if f"on-{name}" in arms.cifar]
    rows = cifar_rows(
        arms, CONTROL, [*names, "on-all", "on-extra", *sorted(n for n in arms.cifar if n[:4] == "but-")]
    )
    if len(names) < 2 or CONTROL not in arms.cifar:
        return not_run("transfer", statement, printed, rows)
    control, gains = arms.cifar[CONTROL], transfer_gains(arms)
    own = [gain for (one, other), gain in gains.items() if one == other]
    others = [gain for (one, other), gain in gains.items() if one != other]
    gap = Shares({"gap": np.mean(own, axis=0) / 4 - np.mean(others, axis=0)}, control.corruptions)
    interval = level_of(gap, "gap")
    told = (
        f"mean gain in CE {np.mean(own):.1f} under the corruption itself, {np.mean(others):.1f} under others;"
        f" a quarter of the first less the second {signed(interval)}"
    )
    caveat = f"training on the test's corruptions breaks the benchmark's rule: a diagnosis; {SMALL_PICTURES}"
    return StudyFinding("transfer", statement, verdict_of(interval, above=True), told, printed, caveat, rows)


def transfer_gains(arms: StudyArms) -> dict[tuple[str, str], Floats]:
    """By what a network was tuned on and what it is tested on: what each image adds to the gain in CE."""
    control = arms.cifar.get(CONTROL)
    found: dict[tuple[str, str], Floats] = {}
    for one in arms.settings.corruptions if control is not None else ():
        if (arm := arms.cifar.get(f"on-{one}")) is None:
            continue
        assert control is not None
        seeds = min(len(arm.rows["mCE"]), len(control.rows["mCE"]))
        for other in arms.settings.corruptions:
            found[one, other] = control.rows[f"ce: {other}"][:seeds] - arm.rows[f"ce: {other}"][:seeds]
    return found


def about_shake(arms: StudyArms) -> StudyFinding:
    """By the same network with and without shaking."""
    statement = "Shaking lowers mCE of one network at equal training"
    printed = "Icons-50 style 76.0 against 51.8, with ten times the epochs and another network"
    rows = cifar_rows(arms, "shake26-no-shake", ["shake26-shake"])
    one = first_row(rows, "shake26-shake")
    if one is None:
        return not_run("shake", statement, printed, rows)
    mce = one.differences["mCE"]
    told = f"ΔmCE {signed(mce)}, Δ clean error {signed(one.differences['clean error'])}"
    return StudyFinding("shake", statement, verdict_of(mce, above=False), told, printed, SMALL_PICTURES, rows)


def about_augmentation(arms: StudyArms) -> StudyFinding:
    """By AugMix; the others stand beside it. No claim of the paper."""
    statement = "AugMix lowers mCE against fine-tuning alone"
    rows = cifar_rows(arms, CONTROL, ["augmix", "prime", "gaussian-0.1"])
    one = first_row(rows, "augmix")
    if one is None:
        return not_run("augmentation", statement, "", rows)
    told = "; ".join(f"{row.arm} ΔmCE {signed(row.differences['mCE'])}" for row in rows if row.differences)
    verdict = verdict_of(one.differences["mCE"], above=False)
    return StudyFinding("augmentation", statement, verdict, told, "", SMALL_PICTURES, rows)
