"""A table for a paper: one row per model, a column per corruption or group of them, the best in bold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from beaufort._core.errors import OptionError
from beaufort._core.text import counted, csv_text, spreadsheet_cell
from beaufort._core.validation import validate_choice
from beaufort.corruptions import corruptions
from beaufort.metrics import get_baseline, published_table
from beaufort.metrics.stats import Estimate
from beaufort.report.latex import PACKAGES, booktabs, escape_latex
from beaufort.report.markdown import escape_markdown
from beaufort.report.summary_tables import error_of
from beaufort.report.wording import units, value_and_bounds, words
from beaufort.results import Linear, ModelScores, Scores, published_baseline
from beaufort.suites import get_suite

COLUMNS = ("group", "corruption")
"""What a column is: a group of corruptions (noise, blur, …), or a single one."""

MEASURES = ("error", "accuracy", "ce")
"""What a cell is; `ce` is the error as a fraction of the baseline's."""


@dataclass(frozen=True)
class _Cell:
    value: Estimate | float | None
    """With an interval, or as printed in a paper; None if it is not known."""
    best: bool = False
    """Whether it is the best of its column among the evaluated models, as shown."""


_Cells = tuple[_Cell, ...]


@dataclass(frozen=True)
class _Table:
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, _Cells], ...]
    """A model's name and its cells."""
    published: tuple[tuple[str, _Cells], ...]
    """The same of networks as papers print them."""
    intervals: bool


def to_table(
    scores: Scores,
    format: str = "md",  # noqa: A002  the option's name
    *,
    columns: str = "group",
    measure: str = "error",
    intervals: bool = True,
    published: bool = False,
) -> str:
    """A table in percent: clean images, the columns, and the mean over all corruptions; one row per model.

    Args:
        scores: from `score`.
        format: `md`, `latex` (for `booktabs`) or `csv`.
        columns: `group` (noise, blur, …) or `corruption`.
        measure: `error`, `accuracy`, or `ce`, which needs a baseline.
        intervals: whether cells have them.
        published: whether results of the suite's paper stand below.
    """
    validate_choice("table format", format, TABLE_FORMATS)
    validate_choice("columns", columns, COLUMNS)
    validate_choice("measure", measure, MEASURES)
    if not scores.suite.corruptions:
        raise OptionError(f"a table for a paper needs corruptions, and {scores.suite} has none")
    if measure == "ce" and not scores.models[0].ce_forms:
        none = "these scores have none; name one with baseline (--baseline)"
        unable = f"{scores.baseline.name} cannot divide here" if scores.baseline else none
        why = "".join(f". {note}" for note in scores.notes if note.startswith("mCE is not shown"))
        raise OptionError(f"measure 'ce' needs a baseline to divide by, and {unable}{why}")
    parts = _columns(scores, columns)
    rows = {model.model: _row(scores, model, parts, measure) for model in scores.models}
    others = _published_errors(scores, measure) if published else {}
    clean = ["Clean error" if measure == "ce" else "Clean"] if scores.suite.clean else []
    table = _Table(
        _caption(scores, measure, intervals, published),
        ("Model", *clean, *parts, "mCE" if measure == "ce" else "Mean"),
        tuple((name, _marked(row, list(rows.values()), measure)) for name, row in rows.items()),
        tuple((name, _printed(scores, row, parts, measure)) for name, row in others.items()),
        intervals,
    )
    return TABLE_FORMATS[format](table)


def _columns(scores: Scores, columns: str) -> dict[str, list[str]]:
    """By title, the corruptions of a column."""
    names = list(scores.suite.corruptions)
    if columns == "corruption":
        return {words(name): [name] for name in names}
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(corruptions[name].group.capitalize(), []).append(name)
    return groups


def _row(
    scores: Scores, model: ModelScores, parts: Mapping[str, Sequence[str]], measure: str
) -> list[Estimate]:
    forms = model.ce_forms if measure == "ce" else model.error_forms
    columns = [*parts.values(), scores.suite.corruptions]
    means = [Linear.mean([forms[name] for name in part]).estimate(scores.level) for part in columns]
    clean = [] if model.clean is None else [error_of(model.clean)]
    return [error_of(cell) for cell in (*clean, *means)] if measure == "accuracy" else [*clean, *means]


def _marked(row: Sequence[Estimate], rows: Sequence[Sequence[Estimate]], measure: str) -> _Cells:
    """Cells with a mark on those that no other model's beats, as shown."""
    best = max if measure == "accuracy" else min
    tops = [best(_shown(other[i]) for other in rows) for i in range(len(row))]
    return tuple(
        _Cell(cell, len(rows) > 1 and _shown(cell) == top) for cell, top in zip(row, tops, strict=True)
    )


def _shown(cell: Estimate) -> float:
    """A value as the table shows it, so that equal numbers are both best."""
    return round(100 * cell.value, 1)


def _printed(
    scores: Scores, row: Mapping[str, float], parts: Mapping[str, Sequence[str]], measure: str
) -> _Cells:
    """A network's cells as far as the paper lets them be known."""
    columns = [*(["clean"] if scores.suite.clean else []), *parts.values(), scores.suite.corruptions]
    found = [_printed_mean(row, [part] if isinstance(part, str) else part) for part in columns]
    if measure == "ce":
        found[-1] = row.get("mce", found[-1])
    if measure == "accuracy":
        found = [None if value is None else 1 - value for value in found]
    return tuple(map(_Cell, found))


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
        parts.append(f"Below, as published: {_published_source(scores, measure)}")
    return " ".join(parts)


_ACCURACIES = {"mnist-c": "mnist-c-figure3"}
"""By suite, the printed table of accuracies under each corruption."""

_RATIOS = {"imagenet-c": "imagenet-c-table1"}
"""By suite, the printed table of CE, of which mCE is the mean."""

_CLASSES = {"imagenet-c": "alexnet", "mnist-c": "conv1"}
"""By suite, the published baseline, which knows how many classes the networks chose from."""


def _published_errors(scores: Scores, measure: str) -> dict[str, Mapping[str, float]]:
    """By network: its clean error under `clean`, and its error, or its CE, under each corruption.

    ImageNet-C's paper prints CE for all networks, and errors only for AlexNet.
    """
    suite = scores.suite
    _check_published(scores)
    if measure == "ce":
        if suite.name not in _RATIOS:
            raise OptionError(
                f"published results of {suite.name} are accuracies, got measure 'ce'; use error or accuracy"
            )
        if scores.baseline is None or not scores.baseline.name.startswith(_CLASSES[suite.name]):
            raise OptionError(
                f"published results of {suite.name} are relative to {_CLASSES[suite.name]}, got another "
                f"baseline; use --baseline {_CLASSES[suite.name]}, or the measure error"
            )
        table = published_table(_RATIOS[suite.name])
        return {network: _renamed(table[network]) for network in table}
    if suite.name in _ACCURACIES:
        table = published_table(_ACCURACIES[suite.name])
        return {network: {key: 1 - value for key, value in table[network].items()} for network in table}
    baseline = published_baseline(suite, _CLASSES[suite.name])
    clean = {} if baseline.clean is None else {"clean": baseline.clean}
    return {baseline.short_name: {**clean, **(baseline.errors or {})}}


def _published_source(scores: Scores, measure: str) -> str:
    """Where the published results are from."""
    name = scores.suite.name
    if measure == "ce":
        return published_table(_RATIOS[name]).source
    if name in _ACCURACIES:
        return published_table(_ACCURACIES[name]).source
    return get_baseline(_CLASSES[name]).source


def _check_published(scores: Scores) -> None:
    """Published results stand beside results of the same suite on as many classes."""
    suite = scores.suite
    if suite.name not in _CLASSES:
        raise OptionError(
            f"published results are there for {' and '.join(_CLASSES)}, got the suite {suite.name!r}"
        )
    own = get_suite(suite.name)
    if (suite.corruptions, suite.severities) != (own.corruptions, own.severities):
        raise OptionError(
            f"published results of {suite.name} are about other conditions than this suite of that name"
        )
    classes, given = get_baseline(_CLASSES[suite.name]).classes, scores.results.class_count
    if classes is not None and given not in {None, classes}:
        raise OptionError(
            f"published results of {suite.name} are results among {classes:,} classes, and "
            f"{scores.results.dataset} has {given:,}"
        )


def _renamed(row: Mapping[str, float]) -> dict[str, float]:
    return {"clean" if key == "clean_error" else key: value for key, value in row.items()}


def _markdown(table: _Table) -> str:
    def cell(one: _Cell) -> str:
        value, bounds = _texts(one, table.intervals)
        return (f"**{value}**" if one.best else value or "–") + (bounds and f" {bounds}")

    rows = [
        *((escape_markdown(name), *map(cell, cells)) for name, cells in table.rows),
        *((f"{escape_markdown(name)} (published)", *map(cell, cells)) for name, cells in table.published),
    ]
    rule = ("---", *["---:"] * (len(table.header) - 1))
    lines = (f"| {' | '.join(line)} |" for line in (tuple(map(escape_markdown, table.header)), rule, *rows))
    return f"{escape_markdown(table.caption)}\n\n" + "\n".join(lines) + "\n"


def _latex(table: _Table) -> str:
    def cell(one: _Cell) -> str:
        value, bounds = _texts(one, table.intervals)
        small = f" {{\\scriptsize {bounds}}}" if bounds else ""
        return (f"\\textbf{{{value}}}" if one.best else value or "--") + small

    def lines(rows: Sequence[tuple[str, _Cells]]) -> list[list[str]]:
        return [[escape_latex(name), *map(cell, cells)] for name, cells in rows]

    columns = f"l{'r' * (len(table.header) - 1)}"
    blocks = [lines(rows) for rows in (table.rows, table.published) if rows]
    header = list(map(escape_latex, table.header))
    return f"{PACKAGES}\n{booktabs(table.caption, 'beaufort', columns, header, *blocks)}\n"


def _csv(table: _Table) -> str:
    """In percent, as the other formats; ends of intervals in columns of their own."""
    ends = ("", " low", " high") if table.intervals else ("",)
    head = [table.header[0], "Source", *(f"{head}{end}" for head in table.header[1:] for end in ends)]
    lines = [
        [spreadsheet_cell(name), source, *(text for one in cells for text in _csv_cells(one, len(ends)))]
        for source, rows in (("measured", table.rows), ("published", table.published))
        for name, cells in rows
    ]
    return csv_text(head, lines)


def _csv_cells(cell: _Cell, count: int) -> list[str]:
    one = cell.value
    values = [one.value, one.low, one.high] if isinstance(one, Estimate) else [one, None, None]
    return ["" if value is None else f"{100 * value:z.2f}" for value in values[:count]]


def _texts(cell: _Cell, intervals: bool) -> tuple[str, str]:
    """A cell's value and its interval; empty where there is none."""
    if isinstance(cell.value, Estimate):
        value, bounds = value_and_bounds(cell.value)
        return value, bounds if intervals else ""
    return ("" if cell.value is None else f"{100 * cell.value:z.1f}"), ""


TABLE_FORMATS: Mapping[str, Callable[[_Table], str]] = {"md": _markdown, "latex": _latex, "csv": _csv}
"""What a table for a paper can be written as."""
