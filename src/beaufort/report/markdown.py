"""Markdown tables, as GitHub renders them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from beaufort._core.text import counted
from beaufort.metrics.stats import Estimate
from beaufort.report.headline import headline
from beaufort.report.optional_tables import optional_tables
from beaufort.report.tables import Table, baseline_words, corruption_table, headline_table
from beaufort.results import Scores

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$!])")
_ARROWS = {"lower": " ↓", "higher": " ↑", "": ""}


def to_markdown(scores: Scores) -> str:
    """The headline in words, the headline table, and the error under each corruption."""
    first = headline(scores, scores.models[0])
    ranking, errors = headline_table(scores), corruption_table(scores)
    return (
        "\n\n".join(
            [
                f"**{escape_markdown(first.sentence)}** {escape_markdown(first.standing)}".rstrip(),
                f"{escape_markdown(ranking.caption)} {_baseline(scores)}",
                *(escape_markdown(note) for note in scores.notes),
                markdown_table(ranking),
                *_left_out(scores),
                escape_markdown(errors.caption),
                markdown_table(errors),
                *_parts(scores),
            ]
        )
        + "\n"
    )


def _left_out(scores: Scores) -> list[str]:
    lacking = sorted(scores.results.incomplete.items())
    told = ", ".join(f"{name} lacks {counted(n, 'condition')}" for name, n in lacking)
    return [escape_markdown(f"Left out, as their answers are not complete: {told}.")] if lacking else []


def _parts(scores: Scores) -> Iterator[str]:
    """Tables that only some reports have."""
    for table in optional_tables(scores).values():
        yield escape_markdown(table.caption)
        yield markdown_table(table)


def markdown_table(table: Table) -> str:
    """A table; numbers to the right, an arrow for which way is good."""
    marks = table.marks or ("",) * len(table.header)
    header = [f"{escape_markdown(t)}{_ARROWS[m]}" for t, m in zip(table.header, marks, strict=True)]
    numbers = [not isinstance(cell, str) for cell in table.rows[0]]
    rule = ["---:" if number else "---" for number in numbers]
    lines = [header, rule, *([_cell(cell) for cell in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape_markdown(text: str) -> str:
    r"""Text that stays text: no markup, no HTML, one line.

    >>> print(escape_markdown("a_b|<i>"))
    a\_b\|\<i\>
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _cell(cell: str | Estimate | None) -> str:
    if isinstance(cell, Estimate):
        bounds = "" if cell.exact else f" [{100 * cell.low:z.1f}, {100 * cell.high:z.1f}]"
        return f"{100 * cell.value:z.1f}{bounds}"
    return "–" if cell is None else escape_markdown(cell)


def _baseline(scores: Scores) -> str:
    said = baseline_words(scores)
    name, tick, rest = said.partition("`")
    return escape_markdown(name) + tick + rest if tick else escape_markdown(said)
