"""The files of the study: a CSV and a figure for each question, a Markdown page and an HTML page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from beaufort.reproduce.enhancements.figures import draw_finding
from beaufort.reproduce.enhancements.findings import ArmRow, StudyArms, StudyFinding, find_all, load_arms
from beaufort.reproduce.enhancements.settings import EnhancementSettings
from beaufort.reproduce.html import data_address, study_html
from beaufort.reproduce.record import run_facts

__all__ = ["study_files"]

TITLE = "What helps against corruptions"
REHEARSAL = "A rehearsal with few images and tiny trainings: its numbers mean nothing."
RULE = (
    "Differences are an arm's less its control's, on the same images and seeds, in points, with 95 % "
    "intervals over images and, of three or more trainings, over seeds. On photos mCE is divided by "
    "AlexNet's published errors, on CIFAR-10 by those of the first ResNet-20. No setting is chosen by these "
    "numbers; the extra CE, of four corruptions that do not count, is there for that."
)


def study_files(folder: Path, settings: EnhancementSettings) -> Iterator[tuple[str, bytes]]:
    """Every file that the answers suffice for: its name and its content."""
    arms = load_arms(folder, settings)
    findings = find_all(arms)
    figures: dict[str, bytes] = {}
    for one in findings:
        if one.rows:
            yield f"{one.design}.csv", findings_csv(one.rows).encode()
        if any(row.differences for row in one.rows):
            figures[f"{one.design}.svg"] = draw_finding(one).svg().encode()
            yield f"{one.design}.svg", figures[f"{one.design}.svg"]
    facts = _facts(folder, arms)
    yield "README.md", _markdown(findings, facts, settings).encode()
    yield "index.html", _html(findings, facts, figures, settings).encode()


def findings_csv(rows: Sequence[ArmRow]) -> str:
    """Every number of every arm, and every difference from its control."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        [
            *("data", "arm", "control", "seeds", "metric", "value", "low", "high"),
            *("difference", "difference_low", "difference_high", "lower_of_corruptions"),
        ]
    )
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
            writer.writerow([row.group, row.arm, row.control, row.seeds, metric, *numbers, *ends, lower])
    return file.getvalue()


def _facts(folder: Path, arms: StudyArms) -> dict[str, str]:
    return {
        "images": ", ".join(f"{count:,} of {name}" for name, count in arms.images.items()) or "none yet",
        "networks on photos": ", ".join(arms.photos) or "none yet",
        "trained arms": str(len(arms.cifar)),
        **run_facts(folder),
    }


def _markdown(findings: Sequence[StudyFinding], facts: dict[str, str], settings: EnhancementSettings) -> str:
    lines = [f"# {TITLE}", ""]
    lines += [f"**{REHEARSAL}**", ""] if settings.rehearse else []
    lines += [*(f"- {key}: {value}" for key, value in facts.items()), "", RULE, ""]
    lines += ["| question | answer |", "|---|---|"]
    lines += [f"| {one.question} | {one.verdict} |" for one in findings]
    for one in findings:
        lines += ["", f"## {one.question}", "", one.sentence]
        if any(row.differences for row in one.rows):
            lines += ["", f"![ΔmCE of each arm with its interval]({one.design}.svg)", "", *_table(one.rows)]
    return "\n".join(lines) + "\n"


_SHOWN = ("clean error", "mCE", "relative mCE")


def _table(rows: Sequence[ArmRow]) -> list[str]:
    head = ["data", "arm", "seeds", *_SHOWN, "ΔmCE"]
    return [
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
    ]


def _cells(row: ArmRow) -> list[str]:
    numbers = [f"{row.numbers[name].value:.1f}" if name in row.numbers else "" for name in _SHOWN]
    change = row.differences.get("mCE")
    told = "control" if change is None else f"{change.value:+.1f} [{change.low:+.1f}, {change.high:+.1f}]"
    return [row.group, row.arm, str(row.seeds), *numbers, told]


def _html(
    findings: Sequence[StudyFinding],
    facts: dict[str, str],
    figures: dict[str, bytes],
    settings: EnhancementSettings,
) -> str:
    return study_html(
        "enhancements",
        title=TITLE,
        navigation={one.design: one.design for one in findings},
        rehearsal=REHEARSAL if settings.rehearse else "",
        rule=RULE,
        findings=findings,
        head=["data", "arm", "seeds", *_SHOWN, "ΔmCE"],
        cells=_cells,
        figures={name: data_address(name, content) for name, content in figures.items()},
        facts=facts,
    )
