"""Cells of a paper's table: measured again, with intervals and spread, beside what is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import csv_text
from beaufort.metrics.stats import clopper_pearson, mean_interval


@dataclass(frozen=True)
class Measured:
    """A cell: what we measured, and what the paper prints."""

    value: float
    low: float
    high: float
    """The interval (95 %) over images of the mean over trainings."""
    spread: float | None
    """Standard deviation over trainings; None of one."""
    lowest: float
    highest: float
    """From the lowest to the highest end of the trainings' own intervals."""
    printed: float | None

    @property
    def differs(self) -> bool:
        """Whether the paper's number lies outside the intervals of all our trainings."""
        return self.printed is not None and not self.lowest - 5e-5 <= self.printed <= self.highest + 5e-5


@dataclass(frozen=True)
class ReproducedTable:
    """A figure of the paper."""

    name: str
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Measured]]


def measured(rows: NDArray[np.float64], printed: float | None) -> Measured:
    """The mean over images and trainings of an array `(trainings, images)` of shares."""
    whole = mean_interval(rows.mean(axis=0))
    each = [_alone(row) for row in rows]
    spread = float(rows.mean(axis=1).std(ddof=1)) if len(rows) > 1 else None
    return Measured(
        whole.value,
        whole.low,
        whole.high,
        spread,
        min(low for low, _ in each),
        max(high for _, high in each),
        printed,
    )


def _alone(row: NDArray[np.float64]) -> tuple[float, float]:
    """The interval of one training."""
    if set(np.unique(row)) <= {0.0, 1.0}:
        exact = clopper_pearson(int(row.sum()), len(row))
        return exact.low, exact.high
    found = mean_interval(row)
    return found.low, found.high


def table_csv(table: ReproducedTable) -> str:
    """The paper's rows and columns in percent, then each column's interval and spread over trainings."""
    more = [f"{column} {what}" for column in table.columns for what in ("low", "high", "sd over seeds")]
    lines = []
    for name, row in table.rows.items():
        values = [percent_text(row[column].value) if column in row else "" for column in table.columns]
        ends: list[str] = []
        for column in table.columns:
            entry = row.get(column)
            ends += (
                ["", "", ""] if entry is None else map(percent_text, (entry.low, entry.high, entry.spread))
            )
        lines.append([name, *values, *ends])
    return csv_text([table.corner, *table.columns, *more], lines)


def percent_text(share: float | None) -> str:
    """A share in percent with two digits; nothing for None."""
    return "" if share is None else f"{100 * share:.2f}"


def cell_text(entry: Measured | None) -> str:
    """Our value, its interval and the paper's value, which has a star if it differs."""
    if entry is None:
        return ""
    printed = "" if entry.printed is None else f" · {100 * entry.printed:.2f}{'*' if entry.differs else ''}"
    return f"{100 * entry.value:.2f} [{100 * entry.low:.2f}, {100 * entry.high:.2f}]{printed}"


def table_markdown(table: ReproducedTable, title: str) -> list[str]:
    """The lines of a section with the table, cells as `cell_text` has them."""
    lines = ["", f"## {title}", "", f"| {table.corner} | {' | '.join(table.columns)} |"]
    lines.append("|---" * (len(table.columns) + 1) + "|")
    for row, cells in table.rows.items():
        lines.append(f"| {row} | {' | '.join(cell_text(cells.get(column)) for column in table.columns)} |")
    return lines
