"""Every number as a row of one table, for whatever reads CSV."""

from __future__ import annotations

from beaufort.results import Scores
from beaufort.results.tidy import COLUMNS, tidy_rows
from beaufort.sanitize import spreadsheet_cell
from beaufort.words import csv_text

__all__ = ["to_csv"]


def to_csv(scores: Scores) -> str:
    """All numbers of all models; shares and ratios, not percent, with all their digits."""
    return csv_text(COLUMNS, ((spreadsheet_cell(row[0]), *row[1:]) for row in tidy_rows(scores)))
