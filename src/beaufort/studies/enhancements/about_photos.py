"""Questions that photos answer: non-local means, CLAHE and ten crops."""

from __future__ import annotations

from collections.abc import Sequence

from beaufort.studies.enhancements.arm_predictions import CIFAR, StudyArms
from beaufort.studies.enhancements.findings import (
    SMALL_PICTURES,
    ArmRow,
    StudyFinding,
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
from beaufort.studies.enhancements.training_arms import BASE, CONTROL


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
