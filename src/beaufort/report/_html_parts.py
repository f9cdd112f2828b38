"""The section of the page about groups of images and about trainings of one recipe, if there are any."""

from __future__ import annotations

from html import escape

from beaufort.report.optional_tables import group_table, seeds_table
from beaufort.report.tables import Table, TableCell
from beaufort.results import Scores
from beaufort.stats import Estimate

__all__ = ["parts", "parts_title"]


def parts(scores: Scores) -> str:
    """The section with its tables; nothing if nobody asked for it."""
    tables = [table for table in (group_table(scores), seeds_table(scores)) if table is not None]
    if not tables:
        return ""
    shown = "".join(map(_table, tables))
    return f'<section id="parts"><h2>{escape(parts_title(scores))}</h2>\n{shown}</section>'


def parts_title(scores: Scores) -> str:
    """What the section is called."""
    grouped = any(model.groups is not None for model in scores.models)
    if grouped and scores.seeds:
        return "Groups and trainings"
    return "Groups" if grouped else "Trainings"


def _table(table: Table) -> str:
    heads = "".join(f'<th scope="col">{escape(title)}</th>' for title in table.header)
    rows = "".join(
        f'<tr><th scope="row">{escape(str(row[0]))}</th>{"".join(map(_cell, row[1:]))}</tr>'
        for row in table.rows
    )
    return f"""<p class="lead">{escape(table.caption)}</p>
<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.header[0])}, scrolls sideways">
<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>
"""


def _cell(cell: TableCell) -> str:
    if not isinstance(cell, Estimate):
        return f"<td>{'–' if cell is None else escape(cell)}</td>"
    bounds = "" if cell.exact else f" <small>[{100 * cell.low:.1f}, {100 * cell.high:.1f}]</small>"
    return f'<td class="num">{100 * cell.value:.1f}{bounds}</td>'
