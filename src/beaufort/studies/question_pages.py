"""The files of a study with questions: CSV tables and a figure for each question, and pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from beaufort._core.text import csv_text
from beaufort.metrics.stats import Estimate
from beaufort.report.axes import Axes, point_range
from beaufort.report.drawing import Drawing
from beaufort.studies.arm_metrics import GROUPS
from beaufort.studies.engine import run_facts
from beaufort.studies.questions import (
    OFF_THE_LINE,
    ArmRow,
    StudyArms,
    StudyFinding,
    find,
    load_trained,
    signed,
)
from beaufort.studies.study_file import StudySettings
from beaufort.studies.study_page import PageLink, PageSection, StudyPage
from beaufort.studies.study_tasks import Log, StudyTask

_METRICS = ("clean error", "mean error", "mCE", "relative mCE", *(f"{name} CE" for name in GROUPS))


def plan(settings: StudySettings, only: Sequence[str], log: Log) -> list[list[StudyTask]]:
    """Return the training runs of a study."""
    from beaufort.studies.trained_arms import training_tasks, wanted_arms

    return [training_tasks(settings, wanted_arms(settings, only))]


def study_files(folder: Path, settings: StudySettings) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file that the existing predictions allow."""
    arms = load_trained(folder, settings)
    findings = [find(arms, question) for question in settings.file["questions"]]
    yield from question_files(folder, arms, findings)


def question_files(
    folder: Path,
    arms: StudyArms,
    findings: Sequence[StudyFinding],
    *,
    more: Iterable[tuple[str, str]] = (),
    captions: Mapping[str, str] | None = None,
    beside: Mapping[str, str] | None = None,
    facts: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Yield tables, figures and pages.

    Args:
        folder: directory of the study.
        arms: all arms.
        findings: the results of the questions.
        more: names and contents of other tables and figures.
        captions: alternative texts of other figures.
        beside: another figure of a question.
        facts: more facts for the page, after the numbers of images.
    """
    settings, drawn = arms.settings, dict[str, bytes]()
    for name, text in (*_tables_and_figures(findings, settings), *more):
        if name.endswith(".svg"):
            drawn[name] = text.encode()
        yield name, text.encode()
    sections = [
        _section(one, drawn, captions or {}, (beside or {}).get(one.name, ""), settings) for one in findings
    ]
    claims = [(PageLink(one.claim, one.name), one.verdict, one.scope) for one in findings]
    page = StudyPage(
        title=settings.file["title"],
        facts={
            "images": ", ".join(f"{count:,} of {name}" for name, count in arms.images.items()) or "none yet",
            **(facts or {}),
            "trained arms": str(len(arms.trained)),
            **(
                {"not used, because earlier seeds are missing": "; ".join(arms.left_out)}
                if arms.left_out
                else {}
            ),
            "no sign of learning": arms.runs.text,
            **{key: value or "none yet" for key, value in run_facts(folder).items()},
            "this page": f"beaufort reproduce {settings.study} --only page"
            + " --rehearse" * settings.rehearse,
        },
        rule=settings.file.get("rule", ""),
        sections=[
            PageSection(id="claims", title="Claims", head=("claim", "verdict", "scope"), rows=claims),
            *sections,
        ],
        runs=arms.runs,
        rehearse=settings.rehearse,
    )
    yield from page.files(drawn)


def _tables_and_figures(
    findings: Sequence[StudyFinding], settings: StudySettings
) -> Iterator[tuple[str, str]]:
    yield "findings.csv", findings_csv(findings)
    for one in findings:
        if one.rows:
            yield f"{one.name}.csv", metrics_csv(one.rows)
        if any(row.flips for row in one.rows):
            yield f"{one.name}-conditions.csv", conditions_csv(one.rows)
        if any(row.differences for row in one.rows):
            yield f"{one.name}.svg", draw_finding(one, figure_metrics(settings, one.name)).svg()


def _section(
    finding: StudyFinding,
    drawn: Mapping[str, bytes],
    captions: Mapping[str, str],
    beside: str,
    settings: StudySettings,
) -> PageSection:
    metrics = ", ".join(figure_metrics(settings, finding.name))
    changes = f"Change of each arm from its control, with intervals: {metrics}"
    names = [name for name in (f"{finding.name}.svg", beside) if name in drawn]
    shown = [
        name for name in _METRICS if name != "mean error" or any(name in row.numbers for row in finding.rows)
    ]
    head, rows = ("data", "arm", "seeds", "ΔmCE", "better, worse", *shown), []
    for row in finding.rows:
        change = row.differences.get("mCE")
        rows.append(
            (
                *(row.group, row.arm, str(row.seeds), "control" if change is None else signed(change)),
                f"{row.count('better')}, {row.count('worse')} of {len(row.flips)}" if row.flips else "",
                *(f"{row.numbers[name].value:.1f}" if name in row.numbers else "" for name in shown),
            )
        )
    return PageSection(
        id=finding.name,
        title=finding.question,
        menu=finding.name,
        text=finding.sentence,
        figures={name: captions.get(name, changes) for name in names},
        head=head,
        rows=rows,
    )


def findings_csv(findings: Sequence[StudyFinding]) -> str:
    """Return the claim, verdict, measured and printed numbers, and caveats of each question."""
    head = ("question", "claim", "verdict", "scope", "measured", "paper", "caveat")
    lines = (
        (one.name, one.claim, one.verdict, one.scope, one.measured, one.printed, one.caveat)
        for one in findings
    )
    return csv_text(head, lines)


def _interval_cells(one: Estimate, digits: int) -> tuple[str, ...]:
    return tuple(f"{x:.{digits}f}" for x in (one.value, one.low, one.high))


def metrics_csv(rows: Sequence[ArmRow]) -> str:
    """Return every metric of every arm, and its difference from the control."""
    head = (
        *("data", "arm", "control", "seeds", "metric", "value", "low", "high"),
        *("difference", "difference_low", "difference_high", "lower_of_corruptions"),
    )
    lines = []
    for row in rows:
        for metric, number in row.numbers.items():
            change = row.differences.get(metric)
            ends = ("", "", "", "") if change is None else (*_interval_cells(change, 3), row.lower)
            about = (row.group, row.arm, row.control, row.seeds_of(metric), metric)
            lines.append((*about, *_interval_cells(number, 3), *ends))
    return csv_text(head, lines)


def conditions_csv(rows: Sequence[ArmRow]) -> str:
    """Return the images that an arm gains and loses under each condition, and McNemar's test."""
    head = ("data", "arm", "control", "condition", "gained", "lost", "p_holm", "verdict")
    lines = (
        (row.group, row.arm, row.control, one.condition, one.gained, one.lost, f"{one.p:.3g}", one.verdict)
        for row in rows
        for one in row.flips
    )
    return csv_text(head, lines)


_COLORS = ("#1a5fa8", "#c2622d", "#666666")
_STEP = 26


def figure_metrics(settings: StudySettings, question: str) -> tuple[str, str, str]:
    """Return the three metrics in the figure of a question."""
    second: str = settings.file["questions"][question].get("second", "noise CE")
    return "mCE", second, "clean error"


def draw_finding(finding: StudyFinding, metrics: Sequence[str]) -> Drawing:
    """Draw the difference of each arm from its control in three metrics, in points."""
    rows = [row for row in finding.rows if row.differences]
    height = _STEP * len(rows)
    drawing = Drawing(760, height + 130)
    values = [0.0]
    for row in rows:
        values += [x for _, change in _changes(row, metrics) for x in (change.low, change.high)]
    axes = Axes(290, 40, 440, height, point_range(values), (0, len(rows)), "linear")
    drawing.text((16, 22), finding.question, size=13, bold=True)
    seen: set[tuple[str, str]] = set()
    for place, row in enumerate(rows):
        y = 40 + _STEP * (place + 0.5)
        again = f" against {row.control}" if (row.group, row.arm) in seen else ""
        seen.add((row.group, row.arm))
        # the interval of one run is over images alone
        once = " (1 seed)" if row.trained and row.seeds == 1 else ""
        drawing.text((280, y + 4), f"{row.group}: {row.arm}{again}{once}", size=10, anchor="end")
        for number, change in _changes(row, metrics):
            at, color = y + 6 * (number - 1), _COLORS[number]
            low, middle, high = (float(axes.x(value)) for value in (change.low, change.value, change.high))
            drawing.lines([[(low, at), (high, at)]], color, width=1.6)
            drawing.dots([(middle, at)], color, radius=2.6)
    zero = float(axes.x(0))
    drawing.lines([[(zero, 40), (zero, 40 + height)]], "#555", dash=(4, 3))
    corners = [(290.0, 40.0), (730.0, 40.0), (730.0, 40.0 + height), (290.0, 40.0 + height)]
    drawing.lines([[*corners, corners[0]]], "#222", width=0.8)
    for value, x in axes.ticks(axes.x_range, axes.x):
        drawing.text((x, height + 56), f"{value:g}".replace("-", "−"), size=10, anchor="middle", color="#666")
    what = "change from the control" + ", distance from the line" * (OFF_THE_LINE in metrics)
    drawing.text((510, height + 76), f"{what} (points); left is better", anchor="middle")
    for place, (name, color) in enumerate(zip(metrics, _COLORS, strict=True)):
        x = 300 + 130 * place
        drawing.dots([(x, height + 104)], color, radius=3.2)
        drawing.text((x + 8, height + 108), name)
    return drawing


def _changes(row: ArmRow, metrics: Sequence[str]) -> list[tuple[int, Estimate]]:
    """Return the differences in some metrics with their positions; the distance from a line is one itself."""
    every = {**row.differences}
    if OFF_THE_LINE in row.numbers:
        every[OFF_THE_LINE] = row.numbers[OFF_THE_LINE]
    return [(place, every[name]) for place, name in enumerate(metrics) if name in every]
