"""Reports of suites of several datasets: a table of all with their clean counterparts, then details."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from beaufort._core.pages import render
from beaufort._core.text import counted
from beaufort._core.validation import validate_choice
from beaufort.metrics.stats import Estimate
from beaufort.report.formats import FORMATS, to_text
from beaufort.report.html_page import SCRIPTS, STYLES, to_html
from beaufort.report.latex import escape_latex, latex_table
from beaufort.report.markdown import (
    captioned_tables,
    card_section,
    escape_markdown,
    front_matter,
    markdown_table,
)
from beaufort.report.summary_tables import (
    Table,
    TableCell,
    baseline_words,
    corruption_table,
    headline_table,
    optional_tables,
)
from beaufort.report.wording import value_and_bounds, words
from beaufort.results import Scores, ShiftScore, shift_scores


@dataclass(frozen=True)
class Expectation:
    """What reference models of the same clean accuracy predict for a model under a natural shift."""

    expected: float | None
    """Their accuracy under the shift."""
    rho: Estimate | None
    """Effective robustness: the accuracy above the expected one."""
    verdict: str
    """`above`, `below` or `within` the scatter of the reference models, or `unknown`."""
    percentile: float | None = None
    """Percentage of models like the reference models with a lower ρ."""


Expectations = Mapping[tuple[str, str], Expectation]
"""By dataset and model."""


def to_text_of_several(
    scores: Sequence[Scores],
    format: str = "html",  # noqa: A002  the option's name
    *,
    title: str | None = None,
    clusters: Mapping[str, str] | None = None,
    expectations: Expectations | None = None,
    home: str | None = None,
) -> str:
    """Return a report on all datasets of a suite.

    Args:
        scores: the scores of each dataset.
        format: one of `FORMATS`.
        title: title of the page; the suite's if None.
        clusters: as for `score`.
        expectations: accuracies under natural shifts to compare with, as from
            `beaufort.testbed.shift_expectations`.
        home: address of the page that this one belongs to.
    """
    validate_choice("report format", format, FORMATS)
    rows = shift_scores(scores, clusters)
    several = counted(len(scores), "dataset")
    named = title or scores[0].results.part_of or (several if len(scores) > 1 else scores[0].suite.title)
    expectations = expectations or {}
    if format == "html":
        return _page(scores, rows, named, expectations, home)
    if format == "json":
        parts = {one.suite.name: json.loads(to_text(one, "json")) for one in scores}
        whole = {"title": named, "shifts": [asdict(row) for row in rows], "parts": parts}
        return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    own_text = card_section if format == "card" else lambda one: to_text(one, format)
    texts = [own_text(one) for one in scores if one.suite.families or format == "csv"]
    if format == "csv":
        return "".join(text if i == 0 else text.partition("\n")[2] for i, text in enumerate(texts))
    table = shift_table(rows, scores, expectations)
    heads = [one.suite for one in scores if one.suite.families]
    alone = [one for one in scores if not one.suite.families]  # the texts of others contain theirs
    notes, plain = _notes(alone), _more_tables(alone)
    if format == "latex":  # labels are of the whole document, so each has the name of its dataset
        own = [
            text.replace("\\label{tab:beaufort-", f"\\label{{tab:beaufort-{suite.name}-")
            for suite, text in zip(heads, texts, strict=True)
        ]
        comments = [f"% {escape_latex(note)}\n" for note in notes]
        more = [latex_table(one, one.caption, name) for name, one in plain.items()]
        return "\n\n".join(["".join(comments) + latex_table(table, table.caption, "shifts"), *more, *own])
    card = format == "card"  # a section of a page; the results of all datasets precede it
    head = "## Robustness" if card else f"# {escape_markdown(named)}"
    sentences = shift_sentences(rows, expectations)
    first = [head, *map(escape_markdown, [*sentences, table.caption, *notes])]
    top = "\n\n".join([*first, markdown_table(table), *captioned_tables(plain.values())]) + "\n"
    sections = [
        f"{'###' if card else '##'} {escape_markdown(suite.title)}\n\n{text}"
        for suite, text in zip(heads, texts, strict=True)
    ]
    return "\n".join([*([front_matter(scores)] if card else []), top, *sections])


def shift_sentences(rows: Sequence[ShiftScore], expectations: Expectations) -> list[str]:
    """Return in words how much accuracy each model loses, and whether similar models lose as much."""
    found = []
    for row in rows:
        if row.clean is None or row.drop is None:
            continue
        verb = "loses" if row.drop.value >= 0 else "gains"
        lost = row.drop if row.drop.value >= 0 else -row.drop
        value, bounds = value_and_bounds(lost)
        sentence = (
            f"{row.model} {verb} {value} points of accuracy {bounds} on {_called(row)}: "
            f"{row.accuracy.value:.1%} compared with {row.clean.value:.1%} on {row.counterpart}."
        )
        if expected := expectations.get((row.part, row.model)):
            sentence += _compared(expected, row.clean.value)
        found.append(sentence)
    return found


def _compared(one: Expectation, clean: float) -> str:
    """Return whether similar models lose as much."""
    if one.expected is None or one.rho is None or one.verdict not in _VERDICTS:
        return ""
    value, bounds = value_and_bounds(one.rho)
    sign = "+" if one.rho.value > 0 else ""
    known = one.percentile is not None
    place = f", percentile {min(max(one.percentile or 0, 0.1), 99.9):.1f}" if known else ""
    return (
        f" {_VERDICTS[one.verdict]}: reference models with its clean accuracy lose "
        f"{100 * (clean - one.expected):.1f} points on average (effective robustness ρ = {sign}{value} "
        f"points {bounds}, {one.verdict} the scatter of the reference models{place})."
    )


_VERDICTS = {
    "above": "It loses less than similar models",
    "below": "It loses more than similar models",
    "within": "It loses about as much as similar models",
}


def shift_table(
    rows: Sequence[ShiftScore], scores: Sequence[Scores], expectations: Expectations | None = None
) -> Table:
    """Return a row for each model and dataset: clean accuracy, accuracy under the shift, and the drop."""
    level = 100 * scores[0].level
    beside = "; each shift is compared with its clean counterpart"
    caption = (
        f"Accuracy in percent on {counted(len(scores), 'dataset')}, with {level:g} % intervals"
        f"{beside if any(row.counterpart for row in rows) else ''}."
    )
    header: tuple[str, ...] = (
        "Dataset",
        "Model",
        "Compared with",
        "Clean accuracy",
        "Accuracy",
        "Drop",
        "Labels",
    )
    cells: list[tuple[TableCell, ...]] = [
        (_called(row), row.model, row.counterpart or "–", row.clean, row.accuracy, row.drop, row.labels)
        for row in rows
    ]
    marks = ("", "", "", "higher", "higher", "lower", "")
    if not expectations:
        return Table(caption, header, tuple(cells), marks)
    rho = [expectations.get((row.part, row.model)) for row in rows]
    cells = [(*cell[:-1], one.rho if one else None, cell[-1]) for cell, one in zip(cells, rho, strict=True)]
    caption += " ρ is the effective robustness: points of accuracy above the trend of the reference models."
    header = (*header[:-1], "ρ", header[-1])
    return Table(caption, header, tuple(cells), (*marks[:-1], "higher", ""))


def _called(row: ShiftScore) -> str:
    if not row.shifts:
        return row.part
    return f"{row.part}, {words(row.shifts[0]) if len(row.shifts) == 1 else f'{len(row.shifts)} shifts'}"


def _page(
    scores: Sequence[Scores],
    rows: Sequence[ShiftScore],
    named: str,
    expectations: Expectations,
    home: str | None,
) -> str:
    """Return the page: the table, errors under single shifts, and the pages of suites of corruptions."""
    table = shift_table(rows, scores, expectations)
    marked = [one for one in scores if one.suite.corruptions and not one.suite.shifts]
    pages = {one.suite.title: to_html(one, title=one.suite.title) for one in marked}
    each = [(one.suite.title, corruption_table(one)) for one in scores if one.suite.shifts]
    unmarked = [one for one in scores if one not in marked and not one.suite.sequences]
    each += list(_more_tables(unmarked).items())
    sequences = [one for one in scores if one.suite.sequences]
    tables = [some for one in sequences for some in (headline_table(one), *optional_tables(one).values())]
    sections = {
        "shifts": ("Datasets", True),
        "each": ("Details", each),
        "sequences": ("Sequences", tables),
        "pages": ("Pages", pages),
    }
    return render(
        "report/several.html",
        styles=STYLES,
        framed=SCRIPTS,
        title=named,
        eyebrow=counted(len(scores), "dataset"),
        home=home,
        navigation={name: title for name, (title, there) in sections.items() if there},
        sentences=shift_sentences(rows, expectations),
        table=table,
        rows=_cells(table),
        each=[(title, one, _cells(one)) for title, one in each],
        tables=[(one, _cells(one)) for one in tables],
        notes=_notes(scores),
        pages=pages,
    )


def _more_tables(scores: Sequence[Scores]) -> dict[str, Table]:
    """Return the optional tables of all datasets, by dataset and subject."""
    return {
        f"{one.suite.name}-{name}": replace(table, caption=f"{one.suite.name}: {table.caption}")
        for one in scores
        for name, table in optional_tables(one).items()
    }


def _cells(table: Table) -> list[list[tuple[str, str]]]:
    return [[_cell(cell) for cell in row] for row in table.rows]


def _cell(cell: TableCell) -> tuple[str, str]:
    """Return the text of a cell, and its interval."""
    if isinstance(cell, Estimate):
        return value_and_bounds(cell)
    return "–" if cell is None else cell, ""


def _notes(scores: Sequence[Scores]) -> list[str]:
    found = [f"{one.suite.name}: {note}" for one in scores for note in one.notes]
    divided = [one for one in scores if one.suite.sequences and one.baseline is not None]
    return list(dict.fromkeys([*found, *(f"{one.suite.name}: {baseline_words(one)}" for one in divided)]))
