"""LaTeX tables for a paper; they need the package booktabs."""

from __future__ import annotations

import re

from beaufort.metrics.stats import Estimate
from beaufort.report.optional_tables import optional_tables
from beaufort.report.tables import Table, baseline_words, corruption_table, headline_table
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
    "…": r"\dots{}",
}
_SPECIAL = re.compile("|".join(map(re.escape, _ESCAPES)))
_ARROWS = {"lower": r" $\downarrow$", "higher": r" $\uparrow$", "": ""}


def to_latex(scores: Scores) -> str:
    r"""The headline table and the errors under each corruption, for `\usepackage{booktabs}`."""
    ranking, errors = headline_table(scores), corruption_table(scores)
    about = f"{ranking.caption} {baseline_words(scores).replace('`', '')}"
    return "\n".join(
        [
            "% \\usepackage{booktabs} and, for \\textquotedbl, \\usepackage[T1]{fontenc}",
            *(f"% {escape_latex(note)}" for note in scores.notes),
            latex_table(ranking, about, "headline"),
            "",
            latex_table(errors, errors.caption, "corruptions"),
            "",
            *(text for name, table in optional_tables(scores).items() for text in (_part(table, name), "")),
        ]
    )


def _part(table: Table, name: str) -> str:
    """A table that only some reports have."""
    return latex_table(table, table.caption, name.casefold())


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is; what it cannot be sure to print becomes a question mark.

    >>> print(escape_latex("a_b & 50%"))
    a\_b \& 50\%
    """
    line = " ".join(text.split())
    plain = "".join(c if c.isprintable() else "?" for c in line)
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], plain)


def latex_table(table: Table, caption: str, label: str) -> str:
    """A table with booktabs' rules."""
    marks = table.marks or ("",) * len(table.header)
    header = [f"{escape_latex(t)}{_ARROWS[m]}" for t, m in zip(table.header, marks, strict=True)]
    columns = "".join("l" if isinstance(cell, str) else "r" for cell in table.rows[0])
    body = "\n".join(f"{' & '.join(_cell(cell) for cell in row)} \\\\" for row in table.rows)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            f"\\caption{{{escape_latex(caption)}}}",
            f"\\label{{tab:beaufort-{label}}}",
            f"\\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            f"{' & '.join(header)} \\\\",
            r"\midrule",
            body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _cell(cell: str | Estimate | None) -> str:
    if isinstance(cell, Estimate):
        bounds = f" {{\\scriptsize [{100 * cell.low:z.1f}, {100 * cell.high:z.1f}]}}"
        return f"{100 * cell.value:z.1f}{'' if cell.exact else bounds}"
    return "--" if cell is None else escape_latex(cell)
