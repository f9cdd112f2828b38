"""A table for a paper: one row a model, a column a group of corruptions or a corruption, the best in bold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from beaufort._core.errors import OptionError
from beaufort._core.text import counted
from beaufort.corruptions import corruptions
from beaufort.metrics.stats import Estimate
from beaufort.report._text import units, words
from beaufort.report.published import published_errors, published_source
from beaufort.report.tables import error_of
from beaufort.results import Linear, ModelScores, Scores

COLUMNS = ("group", "corruption")
"""What a column is: a group of corruptions (noise, blur, …), or a single one."""

MEASURES = ("error", "accuracy", "ce")
"""What a cell is; `ce` is the error as a share of the baseline's."""


@dataclass(frozen=True)
class PaperCell:
    """A number; None if it is not known."""

    value: Estimate | float | None
    """With an interval, or as printed in a paper."""
    best: bool = False
    """Whether it is the best of its column among one's own models, as shown."""


@dataclass(frozen=True)
class PaperTable:
    """What the formats write."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PaperCell, ...]], ...]
    """A model's name and its cells."""
    published: tuple[tuple[str, tuple[PaperCell, ...]], ...]
    """The same of networks as papers print them."""
    intervals: bool


def paper_table(
    scores: Scores,
    *,
    columns: str = "group",
    measure: str = "error",
    intervals: bool = True,
    published: bool = False,
) -> PaperTable:
    """The table, in percent: clean images, the columns, and the mean over all corruptions.

    Args:
        scores: from `score`.
        columns: `group` or `corruption`.
        measure: `error`, `accuracy`, or `ce`, which needs a baseline.
        intervals: whether cells have them.
        published: whether results of the paper stand below one's own.
    """
    for name, value, known in (("columns", columns, COLUMNS), ("measure", measure, MEASURES)):
        if value not in known:
            raise OptionError(f"{name} must be {' or '.join(known)}, got {value!r}")
    if not scores.suite.corruptions:
        raise OptionError(f"a table for a paper needs corruptions, and {scores.suite} has none")
    if measure == "ce" and not scores.models[0].ce_forms:
        none = "these scores have none; name one with baseline (--baseline)"
        unable = f"{scores.baseline.name} cannot divide here" if scores.baseline else none
        why = "".join(f". {note}" for note in scores.notes if note.startswith("mCE is not shown"))
        raise OptionError(f"measure 'ce' needs a baseline to divide by, and {unable}{why}")
    parts = _columns(scores, columns)
    rows = {model.model: _row(scores, model, parts, measure) for model in scores.models}
    others = published_errors(scores, measure) if published else {}
    return PaperTable(
        _caption(scores, measure, intervals, published),
        ("Model", *_heads(scores, parts, measure)),
        tuple((name, _marked(row, list(rows.values()), measure)) for name, row in rows.items()),
        tuple((name, _printed(scores, row, parts, measure)) for name, row in others.items()),
        intervals,
    )


def _columns(scores: Scores, columns: str) -> dict[str, list[str]]:
    """By title, the corruptions of a column."""
    names = list(scores.suite.corruptions)
    if columns == "corruption":
        return {words(name): [name] for name in names}
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(corruptions[name].group.capitalize(), []).append(name)
    return groups


def _heads(scores: Scores, parts: Mapping[str, Sequence[str]], measure: str) -> list[str]:
    clean = ["Clean error" if measure == "ce" else "Clean"] if scores.suite.clean else []
    return [*clean, *parts, "mCE" if measure == "ce" else "Mean"]


def _row(
    scores: Scores, model: ModelScores, parts: Mapping[str, Sequence[str]], measure: str
) -> list[Estimate]:
    forms = model.ce_forms if measure == "ce" else model.error_forms
    columns = [*parts.values(), scores.suite.corruptions]
    means = [Linear.mean([forms[name] for name in part]).estimate(scores.level) for part in columns]
    clean = [] if model.clean is None else [error_of(model.clean)]
    return [error_of(cell) for cell in (*clean, *means)] if measure == "accuracy" else [*clean, *means]


def _marked(
    row: Sequence[Estimate], rows: Sequence[Sequence[Estimate]], measure: str
) -> tuple[PaperCell, ...]:
    """Cells with a mark on those that no other model's beats, as shown."""
    best = max if measure == "accuracy" else min
    tops = [best(_shown(other[i]) for other in rows) for i in range(len(row))]
    return tuple(
        PaperCell(cell, len(rows) > 1 and _shown(cell) == top) for cell, top in zip(row, tops, strict=True)
    )


def _shown(cell: Estimate) -> float:
    """A value as the table shows it, so that equal numbers are both best."""
    return round(100 * cell.value, 1)


def _printed(
    scores: Scores, row: Mapping[str, float], parts: Mapping[str, Sequence[str]], measure: str
) -> tuple[PaperCell, ...]:
    """A network's cells as far as the paper lets them be known."""
    columns = [*(["clean"] if scores.suite.clean else []), *parts.values(), scores.suite.corruptions]
    found = [_printed_mean(row, [part] if isinstance(part, str) else part) for part in columns]
    if measure == "ce":
        found[-1] = row.get("mce", found[-1])
    if measure == "accuracy":
        found = [None if value is None else 1 - value for value in found]
    return tuple(map(PaperCell, found))


def _printed_mean(row: Mapping[str, float], names: Sequence[str]) -> float | None:
    return fmean(row[name] for name in names) if all(name in row for name in names) else None


def _caption(scores: Scores, measure: str, intervals: bool, published: bool) -> str:
    what = {"error": "Error", "accuracy": "Accuracy", "ce": "CE"}[measure]
    over = f", relative to {scores.baseline.short_name}" if measure == "ce" and scores.baseline else ""
    severities = "" if scores.suite.severities == "published" else ", the mean over severities"
    parts = [
        f"{scores.suite.title} ({scores.suite}), {counted(scores.images, 'image')} of "
        f"{scores.results.dataset}. {what} in percent{over}{severities}"
        + (f", with {100 * scores.level:g} % intervals over {units(scores)}." if intervals else ".")
    ]
    if len(scores.models) > 1:
        whose = "these models" if published else "the column"
        parts.append(f"Bold: the best value of {whose}, which need not be told apart from the next.")
    if published:
        parts.append(f"Below, as published: {published_source(scores, measure)}")
    return " ".join(parts)
