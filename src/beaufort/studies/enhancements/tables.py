"""The numbers of the study as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from beaufort._core.text import csv_text
from beaufort.studies.enhancements.about_style import StyleRow
from beaufort.studies.enhancements.findings import ArmRow, StudyFinding
from beaufort.studies.enhancements.statistics import ShareRows, intervals


def verdicts_csv(findings: Sequence[StudyFinding]) -> str:
    """Every question: the claim, the verdict, what says so, what the paper prints, and what limits it."""
    head = ("question", "claim", "verdict", "measured", "paper", "caveat")
    lines = (
        (one.design, one.statement, one.verdict, one.measured, one.printed, one.caveat) for one in findings
    )
    return csv_text(head, lines)


def findings_csv(rows: Sequence[ArmRow]) -> str:
    """Every number of every arm, and every difference from its control."""
    head = (
        *("data", "arm", "control", "seeds", "metric", "value", "low", "high"),
        *("difference", "difference_low", "difference_high", "lower_of_corruptions"),
    )
    lines = []
    for row in rows:
        for metric, number in row.numbers.items():
            change = row.differences.get(metric)
            ends = (
                ["", "", ""]
                if change is None
                else [f"{x:.3f}" for x in (change.value, change.low, change.high)]
            )
            numbers = [f"{x:.3f}" for x in (number.value, number.low, number.high)]
            lower = row.lower if change is not None else ""
            about = [row.group, row.arm, row.control, row.seeds_of(metric), metric]
            lines.append([*about, *numbers, *ends, lower])
    return csv_text(head, lines)


def conditions_csv(rows: Sequence[ArmRow]) -> str:
    """The images that an arm gains and loses against its control under each condition, and McNemar's test."""
    head = ("data", "arm", "control", "condition", "gained", "lost", "p_holm", "verdict")
    lines = (
        (row.group, row.arm, row.control, one.condition, one.gained, one.lost, f"{one.p:.3g}", one.verdict)
        for row in rows
        for one in row.flips
    )
    return csv_text(head, lines)


def styles_csv(rows: Sequence[StyleRow]) -> str:
    """Stylized-ImageNet beside the hardest corruption, network by network, in percent."""
    head = ("network", "style_ce", "hardest", "hardest_ce", "mce", "gap", "gap_low", "gap_high")
    lines = (
        (
            *(one.network, f"{one.style:.2f}", one.worst, f"{one.worst_ce:.2f}", f"{one.mce:.2f}"),
            *(f"{x:.2f}" for x in (one.gap.value, one.gap.low, one.gap.high)),
        )
        for one in rows
    )
    return csv_text(head, lines)


def ces_csv(ces: Mapping[str, Mapping[str, ShareRows]], errors: Mapping[str, Mapping[str, float]]) -> str:
    """The mean error and the CE of every corruption and of style on photos, by network, in percent."""
    lines = []
    for network, rows in ces.items():
        for name, ce in intervals(rows).items():
            values = errors[network][name], ce.value, ce.low, ce.high
            lines.append((network, name, *(f"{value:.2f}" for value in values)))
    return csv_text(("network", "corruption", "error", "ce", "low", "high"), lines)


def gains_csv(gains: Mapping[tuple[str, str], ShareRows]) -> str:
    """What tuning on one corruption gains under each, in points of CE; a row for what it was tuned on."""
    names = list(dict.fromkeys(other for _, other in gains))
    tuned = dict.fromkeys(one for one, _ in gains)
    lines = ((one, *(f"{gains[one, other].values.mean():.2f}" for other in names)) for one in tuned)
    return csv_text(("tuned on", *names), lines)
