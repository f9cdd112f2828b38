"""Every number as a row of one table, for whatever reads CSV."""

from __future__ import annotations

from beaufort._core.text import csv_text, spreadsheet_cell
from beaufort.results import Scores
from beaufort.results.score_tables import COLUMNS, tidy_rows


def to_csv(scores: Scores) -> str:
    """All numbers of all models; shares and ratios, not percent, with all their digits."""
    return csv_text(COLUMNS, ((spreadsheet_cell(row[0]), *row[1:]) for row in tidy_rows(scores)))
