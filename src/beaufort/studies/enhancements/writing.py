"""The files of the study: a CSV and a figure for each question, a Markdown page and an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from beaufort.studies.enhancements.about_architectures import architectures
from beaufort.studies.enhancements.about_style import photo_ces, photo_errors, styles_in_testbed
from beaufort.studies.enhancements.about_trainings import transfer_gains
from beaufort.studies.enhancements.figures import draw_finding, draw_gains, draw_styles, shown_metrics
from beaufort.studies.enhancements.findings import ArmRow, StudyArms, StudyFinding, load_arms, signed
from beaufort.studies.enhancements.questions import find_all
from beaufort.studies.enhancements.settings import EnhancementSettings
from beaufort.studies.enhancements.statistics import GROUPS
from beaufort.studies.enhancements.tables import (
    ces_csv,
    conditions_csv,
    findings_csv,
    gains_csv,
    styles_csv,
    verdicts_csv,
)
from beaufort.studies.failed import failed_markdown
from beaufort.studies.html import data_address, study_html
from beaufort.studies.record import run_facts
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
    facts = _facts(folder, arms)
    yield "README.md", _markdown(arms, findings, facts, figures).encode()
    yield "index.html", _html(arms, findings, facts, figures, drawn).encode()


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
        "no sign of learning": arms.trainings.text,
        **{key: value or "none yet" for key, value in run_facts(folder).items()},
        "this page": "beaufort reproduce imagenet-c-enhancements --only page"
        + " --rehearse" * arms.settings.rehearse,
    }


def _markdown(
    arms: StudyArms,
    findings: Sequence[StudyFinding],
    facts: dict[str, str],
    figures: dict[str, list[str]],
) -> str:
    lines = [f"# {TITLE}", ""]
    lines += [f"**{REHEARSAL}**", ""] if arms.settings.rehearse else []
    lines += [*(f"- {key}: {value}" for key, value in facts.items()), "", RULE]
    lines += [*failed_markdown(arms.trainings), ""]
    lines += ["| claim | verdict |", "|---|---|"]
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


def _html(
    arms: StudyArms,
    findings: Sequence[StudyFinding],
    facts: dict[str, str],
    figures: dict[str, list[str]],
    drawn: dict[str, bytes],
) -> str:
    return study_html(
        "enhancements",
        title=TITLE,
        navigation={one.design: one.design for one in findings},
        rehearsal=REHEARSAL if arms.settings.rehearse else "",
        trainings=arms.trainings,
        rule=RULE,
        findings=findings,
        head=_HEAD,
        cells=_cells,
        figures={
            design: [(_caption(name), data_address(name, drawn[name])) for name in names]
            for design, names in figures.items()
        },
        facts=facts,
    )
