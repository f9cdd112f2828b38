"""LaTeX tables for papers, which require the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from beaufort.metrics.stats import Estimate
from beaufort.report.summary_tables import (
    Table,
    baseline_words,
    corruption_table,
    headline_table,
    optional_tables,
)
from beaufort.report.wording import value_and_bounds
from beaufort.results import Scores

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "×": r"$\times$",
    "±": r"$\pm$",
    "−": r"$-$",
    "→": r"$\to$",
    "ρ": r"$\rho$",
    "≤": r"$\leq$",
    "“": "``",
    "”": "''",
    "’": "'",
    "…": r"\dots{}",
}
_SPECIAL = re.compile("|".join(map(re.escape, _ESCAPES)))
_ARROWS = {"lower": r" $\downarrow$", "higher": r" $\uparrow$", "": ""}


PACKAGES = (
    "% \\usepackage{booktabs}, \\usepackage{graphicx} and, for \\textquotedbl, \\usepackage[T1]{fontenc}"
)


def to_latex(scores: Scores) -> str:
    r"""Return the headline table and the errors under each corruption, for `\usepackage{booktabs}`."""
    ranking, errors = headline_table(scores), corruption_table(scores)
    about = f"{ranking.caption} {baseline_words(scores).replace('`', '')}"
    tables = [
        latex_table(ranking, about, "headline"),
        latex_table(errors, errors.caption, "corruptions"),
        *(
            latex_table(table, table.caption, name.casefold())
            for name, table in optional_tables(scores).items()
        ),
    ]
    notes = (f"% {escape_latex(note)}" for note in scores.notes)
    return "\n".join([PACKAGES, *notes, "\n\n".join(tables), ""])


def escape_latex(text: str) -> str:
    r"""Escape text for LaTeX; characters that pdflatex may not print become question marks.

    >>> print(escape_latex("a_b & 50%"))
    a\_b \& 50\%
    """
    line = " ".join(text.split())
    plain = "".join(c if c.isprintable() and (c < "\u0250" or c in _ESCAPES) else "?" for c in line)
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], plain)


def latex_table(table: Table, caption: str, label: str) -> str:
    """Return a table with rules of booktabs."""
    marks = table.marks or ("",) * len(table.header)
    header = [f"{escape_latex(t)}{_ARROWS[m]}" for t, m in zip(table.header, marks, strict=True)]
    columns = "".join("l" if isinstance(cell, str) else "r" for cell in table.rows[0])
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    return booktabs(caption, f"beaufort-{label}", columns, header, rows)


def booktabs(
    caption: str,
    label: str,
    columns: str,
    header: Sequence[str],
    *blocks: Sequence[Sequence[str]],
    above: Sequence[str] = (),
    fit: bool = False,
) -> str:
    """Return a table of cells in LaTeX, with a rule before each block of rows.

    Args:
        caption: text, which is escaped.
        label: name of the label after `tab:`.
        columns: alignment of the columns.
        header: cells of the header.
        blocks: rows of cells.
        above: lines before the header.
        fit: whether to scale the table to the width of the text; requires the package graphicx.
    """
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{escape_latex(caption)}}}",
        f"\\label{{tab:{label}}}",
    ]
    if fit:
        lines += [r"\setlength{\tabcolsep}{3pt}", r"\resizebox{\linewidth}{!}{%"]
    lines += [f"\\begin{{tabular}}{{{columns}}}", r"\toprule", *above, f"{' & '.join(header)} \\\\"]
    for rows in blocks:
        lines += [r"\midrule", *(f"{' & '.join(row)} \\\\" for row in rows)]
    end = r"\end{tabular}}" if fit else r"\end{tabular}"
    return "\n".join([*lines, r"\bottomrule", end, r"\end{table}"])


def _cell(cell: str | Estimate | None) -> str:
    if isinstance(cell, Estimate):
        value, bounds = value_and_bounds(cell)
        return f"{value} {{\\scriptsize {bounds}}}" if bounds else value
    return "--" if cell is None else escape_latex(cell)
