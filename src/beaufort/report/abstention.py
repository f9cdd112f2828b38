"""Tables of selective prediction and prediction sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from beaufort._core.text import counted, csv_text, spreadsheet_cell
from beaufort._core.validation import validate_choice
from beaufort.metrics.stats import Estimate
from beaufort.report.markdown import escape_markdown
from beaufort.report.summary_tables import Table, TableCell
from beaufort.results import Abstention, Scores, selective_by_severity, sets_by_severity

METHOD_TITLES = {"lac": "LAC", "aps": "APS", "raps": "RAPS"}


def abstention_table(found: Sequence[Abstention], format: str = "md") -> str:  # noqa: A002  the option's name
    """Return selective prediction and prediction sets of models as text.

    Args:
        found: from `score_abstention`.
        format: `md`; `csv` with a row for each number; or `json`.
    """
    validate_choice("format", format, ABSTENTION_FORMATS)
    return ABSTENTION_FORMATS[format](found)


def _markdown(found: Sequence[Abstention]) -> str:
    lines: list[str] = []
    for one in found:
        lines += [*([""] if lines else []), f"## {escape_markdown(one.model)}", ""]
        lines += [f"{counted(one.images, 'image')}; {100 * one.level:g} % intervals.", ""]
        for note in one.notes:
            lines += [escape_markdown(note), ""]
        lines += _condition_lines(one)
        if one.scaling is not None:
            lines += ["", *_scaling_lines(one)]
    return "\n".join(lines) + "\n"


def _condition_lines(one: Abstention) -> Iterator[str]:
    head = ["condition", "accuracy", "AURC", f"accuracy at {100 * one.coverage:g} % coverage"]
    methods = [METHOD_TITLES[score.method] for score in one.conditions[0].sets]
    for title in methods:
        head += [f"{title} coverage", f"{title} set size"]
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'---:|' * (len(head) - 1)}"
    for row in one.conditions:
        cells = [f"{row.accuracy:.1%}", f"{row.aurc:.3f}", f"{row.selective:.1%}"]
        for score in row.sets:
            cells += [f"{score.coverage:.1%}", f"{score.size:.1f}"]
        yield f"| {' | '.join([escape_markdown(str(row.condition)), *cells])} |"
    if methods:
        yield ""
        yield (
            f"Prediction sets are calibrated to {100 * one.set_coverage:g} % on {one.calibrated_on:,} clean "
            f"images and judged on the other {one.images - one.calibrated_on:,}."
        )


def _scaling_lines(one: Abstention) -> Iterator[str]:
    scaling = one.scaling
    assert scaling is not None
    yield f"Temperature {scaling.temperature:.3f}, fitted on the same clean images and judged on the others:"
    yield ""
    yield "| images | ECE before | ECE after | NLL before | NLL after |"
    yield "|---|---:|---:|---:|---:|"
    for group, before in scaling.before.items():
        after = scaling.after[group]
        cells = [before.ece, after.ece, before.nll, after.nll]
        name = group if group in ("clean", "corrupted") else f"severity {group}"
        yield f"| {name} | {' | '.join('–' if cell is None else f'{cell:.3f}' for cell in cells)} |"


def _numbers(one: Abstention) -> Iterator[tuple[str, str, Estimate]]:
    """Yield the condition or group, the name and the value of every number."""
    for row in one.conditions:
        yield str(row.condition), "accuracy", row.accuracy
        yield str(row.condition), "aurc", row.aurc
        yield str(row.condition), f"accuracy_at_{100 * one.coverage:g}", row.selective
        for score in row.sets:
            yield str(row.condition), f"{score.method}_coverage", score.coverage
            yield str(row.condition), f"{score.method}_size", score.size
    if one.scaling is not None:
        for when, groups in (("before", one.scaling.before), ("after", one.scaling.after)):
            for group, calibration in groups.items():
                yield group, f"ece_{when}", calibration.ece
                if calibration.nll is not None:
                    yield group, f"nll_{when}", calibration.nll


def _csv(found: Sequence[Abstention]) -> str:
    head = ("model", "condition", "number", "value", "low", "high", "n")
    rows = [
        (
            spreadsheet_cell(one.model),
            spreadsheet_cell(where),
            name,
            value.value,
            value.low,
            value.high,
            value.n,
        )
        for one in found
        for where, name, value in _numbers(one)
    ]
    return csv_text(head, rows)


def _json(found: Sequence[Abstention]) -> str:
    return json.dumps([_mapping(one) for one in found], indent=2) + "\n"


def _mapping(one: Abstention) -> dict[str, Any]:
    numbers: dict[str, dict[str, Any]] = {}
    for where, name, value in _numbers(one):
        numbers.setdefault(where, {})[name] = vars(value)
    return {
        "model": one.model,
        "images": one.images,
        "calibrated_on": one.calibrated_on,
        "coverage": one.coverage,
        "set_coverage": one.set_coverage,
        "temperature": None if one.scaling is None else one.scaling.temperature,
        "level": one.level,
        "notes": list(one.notes),
        "numbers": numbers,
    }


ABSTENTION_FORMATS: Mapping[str, Callable[[Sequence[Abstention]], str]] = {
    "md": _markdown,
    "csv": _csv,
    "json": _json,
}
"""Formats of `abstention_table`."""


def selective_table(scores: Scores, coverage: float = 0.8) -> Table | None:
    """Return a row per model: AURC and accuracy at a coverage, on clean images and at each severity.

    None if the scores have no calibration, or if images form clusters.
    """
    if not scores.models[0].calibration or scores.clusters != scores.images:
        return None
    found = {
        name: selective_by_severity(replace(one, model=name), coverage, scores.level)
        for name, one in scores.predictions([model.model for model in scores.models]).items()
    }
    groups = list(next(iter(found.values())))
    titles = [name if name in ("clean", "corrupted") else f"severity {name}" for name in groups]
    accuracy = f"accuracy at {100 * coverage:g} %"
    header = ("Model", *(f"AURC, {title}" for title in titles), *(f"{accuracy}, {title}" for title in titles))
    rows: list[tuple[TableCell, ...]] = [
        (
            name,
            *(one[group].aurc for group in groups),
            *(one[group].selective for group in groups),
        )
        for name, one in found.items()
    ]
    caption = (
        "Selective prediction, in percent: AURC, the mean error on the k most confident images over all k, "
        f"and the accuracy if only the {100 * coverage:g} % most confident images are predicted; means over "
        f"corruptions, with {100 * scores.level:g} % intervals over images."
    )
    marks = ("", *("lower" for _ in groups), *("higher" for _ in groups))
    return Table(caption, header, tuple(rows), marks)


def set_table(scores: Scores) -> Table | None:
    """Return a row per model: coverage and size of prediction sets on clean images and at each severity.

    None if no model has stored logits, or if images form clusters.
    """
    if not scores.models[0].calibration or scores.clusters != scores.images:
        return None
    names = [model.model for model in scores.models]
    found = [one for one in sets_by_severity(scores.results, names, level=scores.level) if one.scores]
    if not found:
        return None
    groups = list(found[0].scores)
    titles = [name if name in ("clean", "corrupted") else f"severity {name}" for name in groups]
    header = ("Model", "Sets", *(f"Coverage, {one}" for one in titles), *(f"Size, {one}" for one in titles))
    rows: list[tuple[TableCell, ...]] = []
    for one in found:
        for number, score in enumerate(one.scores[groups[0]]):
            sets = [one.scores[group][number] for group in groups]
            coverages = [each.coverage for each in sets]
            sizes = [f"{each.size:.1f}" for each in sets]
            rows.append((one.model, METHOD_TITLES[score.method], *coverages, *sizes))
    first = found[0]
    caption = (
        f"Prediction sets that are calibrated to contain the label of {100 * first.set_coverage:g} % of "
        f"clean images, on {first.calibrated_on:,} of them, judged on the other "
        f"{first.images - first.calibrated_on:,}: how many contain it, in percent, and the mean number of "
        f"classes; means over corruptions, with {100 * scores.level:g} % intervals over images."
    )
    marks = ("", "", *("higher" for _ in groups), *("lower" for _ in groups))
    return Table(caption, header, tuple(rows), marks)
