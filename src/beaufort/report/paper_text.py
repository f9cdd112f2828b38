"""A table for a paper as Markdown, LaTeX or CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from beaufort._core.errors import UnknownNameError
from beaufort._core.registry import unknown
from beaufort._core.text import csv_text, spreadsheet_cell
from beaufort.metrics.stats import Estimate
from beaufort.report.latex import escape_latex
from beaufort.report.markdown import escape_markdown
from beaufort.report.paper import PaperCell, PaperTable, paper_table
from beaufort.results import Scores


def to_table(
    scores: Scores,
    format: str = "md",  # noqa: A002  the option's name
    *,
    columns: str = "group",
    measure: str = "error",
    intervals: bool = True,
    published: bool = False,
) -> str:
    """One row a model, for a paper; see `paper_table` for the options.

    Args:
        scores: from `score`.
        format: `md`, `latex` (for `booktabs`) or `csv`.
        columns: `group` (noise, blur, …) or `corruption`.
        measure: `error`, `accuracy` or `ce`.
        intervals: whether cells have them.
        published: whether results of the suite's paper stand below one's own.
    """
    if format not in TABLE_FORMATS:
        raise UnknownNameError(unknown("format of a table", format, TABLE_FORMATS))
    table = paper_table(scores, columns=columns, measure=measure, intervals=intervals, published=published)
    return TABLE_FORMATS[format](table)


def _markdown(table: PaperTable) -> str:
    def cell(one: PaperCell) -> str:
        value, bounds = _numbers(one, table.intervals)
        return (f"**{value}**" if one.best else value or "–") + bounds

    rows = [
        *((escape_markdown(name), *map(cell, cells)) for name, cells in table.rows),
        *((f"{escape_markdown(name)} (published)", *map(cell, cells)) for name, cells in table.published),
    ]
    rule = ("---", *["---:"] * (len(table.header) - 1))
    lines = (f"| {' | '.join(line)} |" for line in (tuple(map(escape_markdown, table.header)), rule, *rows))
    return f"{escape_markdown(table.caption)}\n\n" + "\n".join(lines) + "\n"


def _latex(table: PaperTable) -> str:
    def cell(one: PaperCell) -> str:
        value, bounds = _numbers(one, table.intervals)
        small = f" {{\\scriptsize{bounds}}}" if bounds else ""
        return (f"\\textbf{{{value}}}" if one.best else value or "--") + small

    def line(name: str, cells: tuple[PaperCell, ...]) -> str:
        return " & ".join([escape_latex(name), *map(cell, cells)]) + r" \\"

    published = [r"\midrule", *(line(*row) for row in table.published)] if table.published else []
    return "\n".join(
        [
            "% \\usepackage{booktabs} and, for \\textquotedbl, \\usepackage[T1]{fontenc}",
            r"\begin{table}",
            r"\centering",
            f"\\caption{{{escape_latex(table.caption)}}}",
            r"\label{tab:beaufort}",
            f"\\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            " & ".join(map(escape_latex, table.header)) + r" \\",
            r"\midrule",
            *(line(*row) for row in table.rows),
            *published,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _csv(table: PaperTable) -> str:
    """In percent, as the other formats; ends of intervals in columns of their own."""
    ends = ("", " low", " high") if table.intervals else ("",)
    head = [table.header[0], "Source", *(f"{head}{end}" for head in table.header[1:] for end in ends)]
    lines = [
        [spreadsheet_cell(name), source, *(text for one in cells for text in _columns(one, table.intervals))]
        for source, rows in (("measured", table.rows), ("published", table.published))
        for name, cells in rows
    ]
    return csv_text(head, lines)


def _columns(cell: PaperCell, intervals: bool) -> list[str]:
    value = cell.value
    if isinstance(value, Estimate):
        shown = [value.value, *((value.low, value.high) if intervals else ())]
        return [f"{100 * one:z.2f}" for one in shown]
    return ["" if value is None else f"{100 * value:z.2f}", *(["", ""] if intervals else [])]


def _numbers(cell: PaperCell, intervals: bool) -> tuple[str, str]:
    """A cell's value and its interval as text; empty where there is none."""
    value = cell.value
    if not isinstance(value, Estimate):
        return ("" if value is None else f"{100 * value:z.1f}"), ""
    bounds = f" [{100 * value.low:z.1f}, {100 * value.high:z.1f}]" if intervals and not value.exact else ""
    return f"{100 * value.value:z.1f}", bounds


TABLE_FORMATS: Mapping[str, Callable[[PaperTable], str]] = {"md": _markdown, "latex": _latex, "csv": _csv}
"""What a table for a paper can be written as."""
