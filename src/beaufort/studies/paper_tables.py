"""Tables and claims of a paper: measured again, with intervals and spread, beside what is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import csv_text
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval


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
class Claim:
    """A conclusion of a paper, what was measured, and whether it holds; None where it is not decided."""

    statement: str
    measured: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "does not hold", None: "undecided"}[self.holds]


@dataclass(frozen=True)
class ReproducedTable:
    """A figure of the paper."""

    name: str
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Measured]]


def measured(rows: NDArray[np.float64], printed: float | None) -> Measured:
    """Return the mean over images and training runs of an array `(runs, images)` of fractions."""
    whole = mean_interval(rows.mean(axis=0))
    each = [_interval_of_run(row) for row in rows]
    spread = float(rows.mean(axis=1).std(ddof=1)) if len(rows) > 1 else None
    lowest, highest = min(one.low for one in each), max(one.high for one in each)
    return Measured(whole.value, whole.low, whole.high, spread, lowest, highest, printed)


def _interval_of_run(row: NDArray[np.float64]) -> Estimate:
    if set(np.unique(row)) <= {0.0, 1.0}:
        return clopper_pearson(int(row.sum()), len(row))
    return mean_interval(row)


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


def claims_markdown(claims: Sequence[Claim]) -> list[str]:
    """The lines of a section with a row for each claim."""
    lines = ["", "## Conclusions", "", "| statement | measured | |", "|---|---|---|"]
    return [*lines, *(f"| {one.statement} | {one.measured} | {one.verdict} |" for one in claims)]
