"""Every number as a row of one table, for whatever reads CSV."""

from __future__ import annotations

import csv
import io

from beaufort.results import Scores
from beaufort.results.tidy import COLUMNS, tidy_rows
from beaufort.sanitize import spreadsheet_cell

__all__ = ["to_csv"]


def to_csv(scores: Scores) -> str:
    """All numbers of all models; shares and ratios, not percent, with all their digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((spreadsheet_cell(row[0]), *row[1:]) for row in tidy_rows(scores))
    return buffer.getvalue()
