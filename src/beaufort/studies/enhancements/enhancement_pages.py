"""The files of the study: CSV tables and figures for each question, and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from beaufort._core.text import csv_text
from beaufort.metrics.stats import Estimate
from beaufort.report.axes import Axes, point_range
from beaufort.report.drawing import Drawing, diverging
from beaufort.studies.engine import definition, run_facts
from beaufort.studies.enhancements.arm_metrics import (
    CIFAR,
    GROUPS,
    Contributions,
    StudyArms,
    intervals,
    load_arms,
)
from beaufort.studies.enhancements.enhancement_arms import STUDY_NAME, EnhancementSettings
from beaufort.studies.enhancements.findings import OFF_THE_LINE, ArmRow, StudyFinding, signed, transfer_gains
from beaufort.studies.enhancements.testbed_findings import (
    RULES,
    StyleRow,
    architectures,
    find,
    photo_ces,
    photo_errors,
    styles_in_testbed,
)
from beaufort.studies.study_page import PageLink, PageSection, StudyPage
from beaufort.testbed.architectures import architectures_csv, draw_architectures

_METRICS = ("clean error", "mCE", "relative mCE", *(f"{name} CE" for name in GROUPS))
_CAPTIONS = {
    "architectures.svg": "mCE against clean error of 35 networks of the testbed",
    "style.svg": "CE of Stylized-ImageNet against the largest CE of a corruption, by network",
    "transfer-matrix.svg": "Gain in CE by the corruption of training and the corruption of the test",
}


def study_files(folder: Path, settings: EnhancementSettings) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file that the existing predictions allow."""
    arms = load_arms(folder, settings)
    findings = [find(arms, question) for question in RULES]
    drawn: dict[str, bytes] = {}
    for name, text in _tables_and_figures(arms, findings):
        if name.endswith(".svg"):
            drawn[name] = text.encode()
        yield name, text.encode()
    facts = {
        "images": ", ".join(f"{count:,} of {name}" for name, count in arms.images.items()) or "none yet",
        "networks on photos": ", ".join(arms.photos) or "none yet",
        "trained arms": str(len(arms.cifar)),
        **(
            {"not used, because earlier seeds are missing": "; ".join(arms.left_out)} if arms.left_out else {}
        ),
        "no sign of learning": arms.runs.text,
        **{key: value or "none yet" for key, value in run_facts(folder).items()},
        "this page": f"beaufort reproduce {STUDY_NAME} --only page" + " --rehearse" * settings.rehearse,
    }
    claims = [(PageLink(one.claim, one.name), one.verdict, one.scope) for one in findings]
    texts = definition(STUDY_NAME)
    page = StudyPage(
        title=texts["title"],
        facts=facts,
        rule=texts["rule"],
        sections=[
            PageSection(id="claims", title="Claims", head=("claim", "verdict", "scope"), rows=claims),
            *(_section(one, drawn) for one in findings),
        ],
        runs=arms.runs,
        rehearse=settings.rehearse,
    )
    yield from page.files(drawn)


def _tables_and_figures(arms: StudyArms, findings: Sequence[StudyFinding]) -> Iterator[tuple[str, str]]:
    yield "findings.csv", findings_csv(findings)
    for one in findings:
        if one.rows:
            yield f"{one.name}.csv", metrics_csv(one.rows)
        if any(row.flips for row in one.rows):
            yield f"{one.name}-conditions.csv", conditions_csv(one.rows)
        if any(row.differences for row in one.rows):
            yield f"{one.name}.svg", draw_finding(one).svg()
    yield "architectures.csv", architectures_csv(architectures())
    yield "architectures.svg", draw_architectures(architectures()).svg()
    yield "style-testbed.csv", styles_csv(styles_in_testbed())
    yield "style.svg", draw_styles(styles_in_testbed()).svg()
    if ces := photo_ces(arms):
        yield "style.csv", ces_csv(ces, photo_errors(arms))
    if gains := transfer_gains(arms):
        yield "transfer-matrix.csv", gains_csv(gains)
        yield "transfer-matrix.svg", draw_gains(gains).svg()


def _section(finding: StudyFinding, drawn: Mapping[str, bytes]) -> PageSection:
    more = {
        "aggregation": "architectures.svg",
        "small": "architectures.svg",
        "transfer": "transfer-matrix.svg",
    }
    changes = (
        f"Change of each arm from its control, with intervals: {', '.join(figure_metrics(finding.name))}"
    )
    names = [name for name in (f"{finding.name}.svg", more.get(finding.name)) if name in drawn]
    head, rows = ("data", "arm", "seeds", "ΔmCE", "better, worse", *_METRICS), []
    for row in finding.rows:
        change = row.differences.get("mCE")
        rows.append(
            (
                *(row.group, row.arm, str(row.seeds), "control" if change is None else signed(change)),
                f"{row.count('better')}, {row.count('worse')} of {len(row.flips)}" if row.flips else "",
                *(f"{row.numbers[name].value:.1f}" if name in row.numbers else "" for name in _METRICS),
            )
        )
    return PageSection(
        id=finding.name,
        title=finding.question,
        menu=finding.name,
        text=finding.sentence,
        figures={name: _CAPTIONS.get(name, changes) for name in names if name},
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


def styles_csv(rows: Sequence[StyleRow]) -> str:
    """Return Stylized-ImageNet beside the hardest corruption for each network, in percent."""
    head = ("network", "style_ce", "hardest", "hardest_ce", "mce", "gap", "gap_low", "gap_high")
    lines = (
        (
            *(one.network, f"{one.style:.2f}", one.worst, f"{one.worst_ce:.2f}", f"{one.mce:.2f}"),
            *_interval_cells(one.gap, 2),
        )
        for one in rows
    )
    return csv_text(head, lines)


def ces_csv(ces: Mapping[str, Mapping[str, Contributions]], errors: Mapping[str, Mapping[str, float]]) -> str:
    """Return the mean error and the CE of style and every corruption on photos, by network, in percent."""
    lines = [
        (network, name, f"{errors[network][name]:.2f}", *_interval_cells(ce, 2))
        for network, rows in ces.items()
        for name, ce in intervals(rows).items()
    ]
    return csv_text(("network", "corruption", "error", "ce", "low", "high"), lines)


def gains_csv(gains: Mapping[tuple[str, str], Contributions]) -> str:
    """Return the gains in points of CE: a row per corruption of training, a column per one of the test."""
    tuned, tested = (list(dict.fromkeys(key[place] for key in gains)) for place in (0, 1))
    lines = ((one, *(f"{gains[one, other].values.mean():.2f}" for other in tested)) for one in tuned)
    return csv_text(("tuned on", *tested), lines)


_COLORS = ("#1a5fa8", "#c2622d", "#666666")
_STEP, _CELL = 26, 34


def figure_metrics(question: str) -> tuple[str, str, str]:
    """Return the three metrics in the figure of a question."""
    second = definition(STUDY_NAME)["questions"][question].get("second", "noise CE")
    return "mCE", second, "clean error"


def draw_finding(finding: StudyFinding) -> Drawing:
    """Draw the difference of each arm from its control in three metrics, in points."""
    metrics = figure_metrics(finding.name)
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
        once = " (1 seed)" if row.group == CIFAR and row.seeds == 1 else ""
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


def draw_gains(gains: Mapping[tuple[str, str], Contributions]) -> Drawing:
    """Draw what tuning on a corruption (rows) gains under each (columns), in points of CE; red is a gain."""
    rows, columns = (list(dict.fromkeys(key[place] for key in gains)) for place in (0, 1))
    means = {key: float(one.values.mean()) for key, one in gains.items()}
    most = max(map(abs, means.values())) or 1
    left, top = 150, 150
    drawing = Drawing(max(left + _CELL * len(columns) + 16, 480), top + _CELL * len(rows) + 16)
    title = "Gain in CE (points) by corruption of training (rows) and of the test (columns)"
    drawing.text((16, 22), title, bold=True)
    for place, name in enumerate(columns):
        drawing.text((left + _CELL * (place + 0.5) + 4, top - 8), name, size=10, upward=True)
    for down, tuned in enumerate(rows):
        drawing.text((left - 8, top + _CELL * (down + 0.5) + 4), tuned, size=10, anchor="end")
        for across, tested in enumerate(columns):
            mean = means[tuned, tested]
            x, y = left + _CELL * across, top + _CELL * down
            drawing.box((x, y), (_CELL - 1, _CELL - 1), diverging(mean / most))
            color, text = "#fff" if abs(mean) > 0.6 * most else "#222", f"{mean:z.0f}".replace("-", "−")
            drawing.text((x + _CELL / 2, y + _CELL / 2 + 4), text, size=10, anchor="middle", color=color)
    return drawing


def draw_styles(rows: Sequence[StyleRow]) -> Drawing:
    """Draw the CE of Stylized-ImageNet against the largest CE of a corruption."""
    drawing = Drawing(620, 500)
    x, y = [one.worst_ce for one in rows], [one.style for one in rows]
    ends = point_range([*x, *y])
    axes = Axes(62, 34, 520, 400, ends, ends, "linear")
    axes.frame(drawing, "largest CE of a corruption", "CE of Stylized-ImageNet", "Style against corruptions")
    drawing.lines([axes.points(ends, ends)], "#111", width=1.0, dash=(5, 3))
    drawing.dots(axes.points(x, y), "#1a5fa8", radius=2.6)
    for one in rows:
        if one.network in ("resnet50", "vgg19", "densenet161", "squeezenet1_1"):
            at = axes.points([one.worst_ce], [one.style])[0]
            drawing.dots([at], "#c2622d", radius=3.2)
            outside = at[0] + 6 + 6 * len(one.network) > axes.left + axes.width
            place, anchor = (at[0] - 6, "end") if outside else (at[0] + 6, "start")
            drawing.text((place, at[1] + 4), one.network, size=9, anchor=anchor)
    drawing.text((62, 488), f"{len(rows)} standard networks of the testbed; divided by its AlexNet", size=9)
    return drawing
