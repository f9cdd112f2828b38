"""What changed since 2020: timm's models against the trend of the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort.testbed.grid import Grid
from beaufort.testbed.load import load_grid
from beaufort.testbed.robustness import Effective, measure
from beaufort.testbed.timm_tables import KINDS, training_data
from beaufort.testbed.trend import Trend, fit_shift

SHIFTS = ("imagenetv2-matched-frequency", "imagenet-sketch", "imagenet-r", "imagenet-a")
"""The shifts that both grids have."""


class KindRow(NamedTuple):
    """The entries of one kind of training data on one shift."""

    kind: str
    n: int
    above: int
    """How many have an interval of ρ above 0."""
    below: int
    extrapolated: int
    """How many are more or less accurate than all models that the trend was fitted on."""
    median: float
    """Of ρ, in points."""
    median_today: float
    """Of ρ against the trend of today's standard models."""
    best: Effective


@dataclass(frozen=True)
class Since:
    """timm's entries on one shift."""

    shift: str
    trend: Trend
    today: Trend
    """The trend of timm's own standard models."""
    entries: tuple[Effective, ...]

    def by_kind(self) -> list[KindRow]:
        """A row each kind of training data."""
        rows = []
        for kind in reversed(list(KINDS)):
            found = [one for one in self.entries if one.type == kind and one.rho is not None]
            if not found:
                continue
            ends = [one.interval for one in found if one.interval is not None]
            rows.append(
                KindRow(
                    kind,
                    len(found),
                    sum(one.low > 0 for one in ends),
                    sum(one.high < 0 for one in ends),
                    sum(one.extrapolated for one in found),
                    float(np.median([one.rho for one in found if one.rho is not None])),
                    float(np.median(self._today(found))),
                    max(found, key=lambda one: one.rho if one.rho is not None else -np.inf),
                )
            )
        return rows

    def _today(self, found: list[Effective]) -> NDArray[np.float64]:
        clean, shifted = np.array([(one.clean, one.shifted) for one in found]).T
        return np.asarray(shifted - self.today.predict(clean))


def since_2020(*, paper: Grid | None = None, timm: Grid | None = None, level: float = 0.95) -> list[Since]:
    """timm's entries on each shift against the trend of the paper's 78 standard models.

    The type of an entry is its kind of training data.
    """
    old = load_grid("paper") if paper is None else paper
    new = load_grid("timm") if timm is None else timm
    made = []
    for shift in SHIFTS:
        trend = fit_shift(old, shift)
        clean = new.clean_of(shift).name
        x, y = new.column(clean), new.column(shift)
        rows = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
        entries = measure(
            trend,
            [(new.models[row], training_data(new.models[row])) for row in rows],
            x[rows],
            y[rows],
            new.images(clean)[rows],
            new.images(shift)[rows],
            level=level,
        )
        made.append(Since(shift, trend, fit_shift(new, shift), entries))
    return made
