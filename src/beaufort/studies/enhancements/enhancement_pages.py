"""The files of the study: a CSV and a figure for each question, a Markdown page and an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from beaufort._core.text import csv_text
from beaufort.metrics.stats import Estimate
from beaufort.studies.engine import run_facts
from beaufort.studies.enhancements.architecture_claims import about_aggregation, about_small, architectures
from beaufort.studies.enhancements.arm_claims import (
    about_augmentation,
    about_clahe,
    about_multiscale,
    about_nlm,
    about_shake,
    about_stability,
    about_ten_crops,
    about_transfer,
    transfer_gains,
)
from beaufort.studies.enhancements.arm_predictions import StudyArms, load_arms
from beaufort.studies.enhancements.enhancement_figures import (
    draw_finding,
    draw_gains,
    draw_styles,
    shown_metrics,
)
from beaufort.studies.enhancements.enhancement_settings import DESIGNS, EnhancementSettings
from beaufort.studies.enhancements.findings import ArmRow, StudyFinding, signed
from beaufort.studies.enhancements.mce_statistics import GROUPS, Contributions, intervals
from beaufort.studies.enhancements.style_claims import (
    StyleRow,
    about_style,
    photo_ces,
    photo_errors,
    styles_in_testbed,
)
from beaufort.studies.study_page import StudyPage, data_url
from beaufort.testbed.architectures import architectures_csv, draw_architectures

TITLE = "What helps against corruptions"
REHEARSAL = "A rehearsal with few images and tiny trainings: its numbers mean nothing."
RULE = (
    "Differences are an arm's less its control's, on the same images and seeds, in points, with 95 % "
    "intervals over images and, of two or more trainings, over trainings (Student's t); one training of each "
    "decides nothing, but for transfer, where the interval is over arms that are trained once each. "
    "On photos mCE is divided by AlexNet's published errors, on CIFAR-10 by those of the "
    "first ResNet-20. Settings are chosen by the "
    "extra CE alone, of four corruptions that do not count. Better and worse are conditions, of the clean "
    "images and all corruptions and severities, under which an arm surely differs from its control: "
    "McNemar's test on the answers of the first seed, 5 % in all by Holm's rule."
)


_FINDERS: Mapping[str, Callable[[StudyArms], StudyFinding]] = {
    "nlm": about_nlm,
    "clahe": about_clahe,
    "stability": about_stability,
    "ten-crop": about_ten_crops,
    "small": about_small,
    "aggregation": about_aggregation,
    "multiscale": about_multiscale,
    "transfer": about_transfer,
    "shake": about_shake,
    "style": about_style,
    "augmentation": about_augmentation,
}


def find_all(arms: StudyArms) -> list[StudyFinding]:
    """A finding for each question, in order."""
    return [_FINDERS[design](arms) for design in DESIGNS]


def study_files(folder: Path, settings: EnhancementSettings) -> Iterator[tuple[str, bytes]]:
    """Every file that the answers suffice for: its name and its content."""
    arms = load_arms(folder, settings)
    findings = find_all(arms)
    figures: dict[str, list[str]] = {}
    drawn: dict[str, bytes] = {}
    for name, content in _files(arms, findings):
        if name.endswith(".svg"):
            figures.setdefault(_DESIGN_OF.get(name, name.removesuffix(".svg")), []).append(name)
            drawn[name] = content
        yield name, content
    figures["small"] = [*figures.get("small", []), _ARCHITECTURES]
    rehearsal = REHEARSAL if settings.rehearse else ""
    page = StudyPage("enhancements", TITLE, _facts(folder, arms), RULE, arms.runs, rehearsal)
    yield "README.md", _markdown(page, findings, figures).encode()
    shown = {
        design: [(_caption(name), data_url(name, drawn[name])) for name in names]
        for design, names in figures.items()
    }
    navigation = {one.design: one.design for one in findings}
    html = page.html(navigation, findings=findings, head=_HEAD, cells=_cells, figures=shown)
    yield "index.html", html.encode()


_ARCHITECTURES = "architectures.svg"
_MATRIX = "transfer-matrix.svg"
_DESIGN_OF = {_ARCHITECTURES: "aggregation", _MATRIX: "transfer"}
"""The question that a figure is for, where its name does not say so."""


def _files(arms: StudyArms, findings: Sequence[StudyFinding]) -> Iterator[tuple[str, bytes]]:
    """Every table and figure that the answers suffice for, with its name."""
    yield "findings.csv", verdicts_csv(findings).encode()
    for one in findings:
        if one.rows:
            yield f"{one.design}.csv", findings_csv(one.rows).encode()
        if any(row.flips for row in one.rows):
            yield f"{one.design}-conditions.csv", conditions_csv(one.rows).encode()
        if any(row.differences for row in one.rows):
            yield f"{one.design}.svg", draw_finding(one).svg().encode()
    yield "architectures.csv", architectures_csv(architectures()).encode()
    yield _ARCHITECTURES, draw_architectures(architectures()).svg().encode()
    yield "style-testbed.csv", styles_csv(styles_in_testbed()).encode()
    yield "style.svg", draw_styles(styles_in_testbed()).svg().encode()
    if ces := photo_ces(arms):
        yield "style.csv", ces_csv(ces, photo_errors(arms)).encode()
    if gains := transfer_gains(arms):
        yield "transfer-matrix.csv", gains_csv(gains).encode()
        yield _MATRIX, draw_gains(gains).svg().encode()


def _facts(folder: Path, arms: StudyArms) -> dict[str, str]:
    return {
        "images": ", ".join(f"{count:,} of {name}" for name, count in arms.images.items()) or "none yet",
        "networks on photos": ", ".join(arms.photos) or "none yet",
        "trained arms": str(len(arms.cifar)),
        **({"left out until earlier seeds are there": "; ".join(arms.left_out)} if arms.left_out else {}),
        "no sign of learning": arms.runs.text,
        **{key: value or "none yet" for key, value in run_facts(folder).items()},
        "this page": "beaufort reproduce imagenet-c-enhancements --only page"
        + " --rehearse" * arms.settings.rehearse,
    }


def _markdown(page: StudyPage, findings: Sequence[StudyFinding], figures: Mapping[str, Sequence[str]]) -> str:
    lines = [*page.markdown_head(), "", "| claim | verdict |", "|---|---|"]
    lines += [f"| {one.statement} | {one.verdict} |" for one in findings]
    for one in findings:
        lines += ["", f"## {one.question}", "", one.sentence]
        for name in figures.get(one.design, ()):
            lines += ["", f"![{_caption(name)}]({name})"]
        if any(row.differences for row in one.rows):
            lines += ["", *_table(one.rows)]
    return "\n".join(lines) + "\n"


def _caption(figure: str) -> str:
    told = {
        _ARCHITECTURES: "mCE against clean error of 35 networks of the testbed",
        "style.svg": "CE of Stylized-ImageNet against the largest CE of a corruption, by network",
        _MATRIX: "Gain in CE by the corruption that was tuned on and the one that was tested on",
    }
    metrics = ", ".join(shown_metrics(figure.removesuffix(".svg")))
    return told.get(figure, f"Change of each arm against its control, with intervals: {metrics}")


_SHOWN = ("clean error", "mCE", "relative mCE", *(f"{name} CE" for name in GROUPS))
_HEAD = ("data", "arm", "seeds", "ΔmCE", "better, worse", *_SHOWN)


def _table(rows: Sequence[ArmRow]) -> list[str]:
    return [
        f"| {' | '.join(_HEAD)} |",
        "|---" * len(_HEAD) + "|",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
    ]


def _cells(row: ArmRow) -> list[str]:
    numbers = [f"{row.numbers[name].value:.1f}" if name in row.numbers else "" for name in _SHOWN]
    change = row.differences.get("mCE")
    told = "control" if change is None else signed(change)
    sure = f"{row.better}, {row.worse} of {len(row.flips)}" if row.flips else ""
    return [row.group, row.arm, str(row.seeds), told, sure, *numbers]


def verdicts_csv(findings: Sequence[StudyFinding]) -> str:
    """Every question: the claim, the verdict, what says so, what the paper prints, and what limits it."""
    head = ("question", "claim", "verdict", "measured", "paper", "caveat")
    lines = (
        (one.design, one.statement, one.verdict, one.measured, one.printed, one.caveat) for one in findings
    )
    return csv_text(head, lines)


def _cells_of(one: Estimate, digits: int) -> tuple[str, ...]:
    return tuple(f"{x:.{digits}f}" for x in (one.value, one.low, one.high))


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
            ends = ("", "", "", "") if change is None else (*_cells_of(change, 3), row.lower)
            about = (row.group, row.arm, row.control, row.seeds_of(metric), metric)
            lines.append((*about, *_cells_of(number, 3), *ends))
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
            *_cells_of(one.gap, 2),
        )
        for one in rows
    )
    return csv_text(head, lines)


def ces_csv(ces: Mapping[str, Mapping[str, Contributions]], errors: Mapping[str, Mapping[str, float]]) -> str:
    """The mean error and the CE of every corruption and of style on photos, by network, in percent."""
    lines = []
    for network, rows in ces.items():
        for name, ce in intervals(rows).items():
            lines.append((network, name, f"{errors[network][name]:.2f}", *_cells_of(ce, 2)))
    return csv_text(("network", "corruption", "error", "ce", "low", "high"), lines)


def gains_csv(gains: Mapping[tuple[str, str], Contributions]) -> str:
    """What tuning on one corruption gains under each, in points of CE; a row for what it was tuned on."""
    names = list(dict.fromkeys(other for _, other in gains))
    tuned = dict.fromkeys(one for one, _ in gains)
    lines = ((one, *(f"{gains[one, other].values.mean():.2f}" for other in names)) for one in tuned)
    return csv_text(("tuned on", *names), lines)
