"""Numbers measured again beside a paper's, the tables of them, and claims with their verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from beaufort._core.text import csv_text
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval
from beaufort.studies.verdicts import Requirement, decide


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, the numbers that test it, and the verdict."""

    statement: str
    measured: str
    verdict: str


def claim(
    declared: Mapping[str, Any],
    measured: str,
    found: Estimate,
    *,
    runs: int = 2,
    also: Sequence[Requirement] = (),
    **names: str,
) -> Claim:
    """Return a claim of a study's file: a number has to be `above` a bound, `below` one, or between both.

    Args:
        declared: the statement and its bounds.
        measured: the numbers, for the page.
        found: the number that the bounds are about, with its interval.
        runs: training runs behind it.
        also: what has to hold, too, for the claim to be confirmed.
        names: values of the variables of the statement.
    """
    bounds = [(sign, declared[key]) for key, sign in (("above", ">"), ("below", "<")) if key in declared]
    confirmed = [Requirement(found, sign, bound, runs) for sign, bound in bounds]
    refuted = [Requirement(found, "<" if sign == ">" else ">", bound, runs) for sign, bound in bounds]
    statement = Template(declared["statement"]).substitute(names)
    return Claim(statement, measured, decide([*also, *confirmed], refuted))


@dataclass(frozen=True)
class Measured:
    """A measured fraction beside the printed one."""

    value: float
    low: float
    high: float
    """95 % interval over images of the mean over training runs."""
    spread: float | None
    """Standard deviation over training runs; None for a single run."""
    lowest: float
    highest: float
    """Lowest and highest end of the runs' own intervals."""
    printed: float | None
    runs: int = 1
    """Number of training runs."""

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.value, self.low, self.high, 0)

    @property
    def differs(self) -> bool:
        """Whether the printed number lies outside the intervals of all training runs."""
        return self.printed is not None and not self.lowest - 5e-5 <= self.printed <= self.highest + 5e-5

    @property
    def interval(self) -> str:
        return f"{100 * self.value:.2f} [{100 * self.low:.2f}, {100 * self.high:.2f}]"

    def __str__(self) -> str:
        """The value, its interval, the deviation over runs, and the printed value, starred if it differs."""
        text = self.interval + (f" ± {100 * self.spread:.2f}" if self.spread else "")
        if self.printed is None:
            return text
        return f"{text} · {100 * self.printed:.2f}{'*' if self.differs else ''}"


@dataclass(frozen=True)
class ReproducedTable:
    """A table of a paper; cells without a measurement are missing."""

    name: str
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Measured]]


def measured(rows: NDArray[np.float64], printed: float | None = None) -> Measured:
    """Return the mean over images and training runs of an array `(runs, images)` of fractions."""
    whole = mean_interval(rows.mean(axis=0))
    each = [
        clopper_pearson(int(row.sum()), len(row)) if set(np.unique(row)) <= {0.0, 1.0} else mean_interval(row)
        for row in rows
    ]
    spread = float(rows.mean(axis=1).std(ddof=1)) if len(rows) > 1 else None
    lowest, highest = min(one.low for one in each), max(one.high for one in each)
    return Measured(whole.value, whole.low, whole.high, spread, lowest, highest, printed, len(rows))


def measured_difference(first: Measured, second: Measured) -> tuple[float, float, float]:
    """Return the difference of two fractions with its 95 % interval over images and training runs.

    Images count as independent, which is conservative for two models on the same images; runs by Welch's t.

    >>> one, other = (measured(np.array([[0.0, 1.0] * 50, [p, 1.0] * 50])) for p in (0.0, 1.0))
    >>> [round(value, 2) for value in measured_difference(one, other)]
    [-0.25, -3.43, 2.93]
    """
    squares = sum(((one.high - one.low) / 2) ** 2 for one in (first, second))
    parts = [(one.spread**2 / one.runs, one.runs - 1) for one in (first, second) if one.spread]
    if variance := sum(part for part, _ in parts):
        freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
        squares += float(special.stdtrit(freedom, 0.975)) ** 2 * variance
    value, width = first.value - second.value, math.sqrt(squares)
    return value, value - width, value + width


def table_csv(table: ReproducedTable) -> str:
    """Return the paper's rows and columns in percent, then the interval and spread of each column."""
    ends = [f"{column} {end}" for column in table.columns for end in ("low", "high", "sd over seeds")]
    lines = []
    for name, row in table.rows.items():
        cells = [row.get(column) for column in table.columns]
        line = [name, *(percent(cell.value if cell else None) for cell in cells)]
        for cell in cells:
            line += [percent(value) for value in (cell.low, cell.high, cell.spread)] if cell else [""] * 3
        lines.append(line)
    return csv_text([table.corner, *table.columns, *ends], lines)


def percent(fraction: float | None) -> str:
    """Return a fraction in percent with two digits; empty for None."""
    return "" if fraction is None else f"{100 * fraction:.2f}"
