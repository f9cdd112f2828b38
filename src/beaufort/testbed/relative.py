"""Relative robustness τ: what an intervention changed under a shift, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beaufort._core.errors import OptionError
from beaufort.testbed.effective import accuracy_intervals
from beaufort.testbed.fit import Interval
from beaufort.testbed.grid import Grid, Pair


@dataclass(frozen=True)
class Relative:
    """What an intervention changed under a shift, in percentage points."""

    pair: Pair
    shifted: float
    base_shifted: float
    tau: float
    interval: Interval | None


@dataclass(frozen=True)
class RelativeRobustness:
    """τ of some models on one shift."""

    y: str
    models: tuple[Relative, ...]
    missing: tuple[str, ...]
    """Chosen models that have no base model, or lack an accuracy."""
    level: float

    @property
    def mean(self) -> float:
        """The mean τ."""
        if not self.models:
            raise OptionError(f"no chosen model has a base model with an accuracy on {self.y}")
        return float(np.mean([one.tau for one in self.models]))

    @property
    def mean_interval(self) -> Interval | None:
        """The mean of the ends: models share their test images, so that they err together."""
        ends = [one.interval for one in self.models if one.interval is not None]
        if not ends or len(ends) < len(self.models):
            return None
        return Interval(float(np.mean([one.low for one in ends])), float(np.mean([one.high for one in ends])))


def relative_robustness(
    grid: Grid,
    y: str,
    *,
    select: Sequence[str] = (),
    pairs: Sequence[Pair] | None = None,
    level: float = 0.95,
) -> RelativeRobustness:
    """How much more accurate models are under a shift than the models that they were made from.

    The interval takes the two accuracies as independent; they share their images, which makes the difference
    surer than that.
    """
    second = grid.setting(y)
    shifted, images = grid.column(second.name), grid.images(second.name)
    low, high = accuracy_intervals(shifted, images, level)
    chosen = grid.select(select)
    if pairs is None and not grid.pairs:
        raise OptionError(
            f"no chosen model has a base model: the grid {grid.name} names none; give pairs of a model and "
            "its base"
        )
    made, found = [], set()
    for pair in grid.pairs if pairs is None else pairs:
        row, base = (grid.place_of.get(name) for name in (pair.model, pair.base))
        if row is None or base is None:
            raise OptionError(f"{pair.model} and {pair.base} must both be models of the grid {grid.name}")
        if not chosen[row] or np.isnan(shifted[row]) or np.isnan(shifted[base]):
            continue
        tau = shifted[row] - shifted[base]
        down = np.hypot(shifted[row] - low[row], high[base] - shifted[base])
        up = np.hypot(high[row] - shifted[row], shifted[base] - low[base])
        ends = None if np.isnan(down + up) else Interval(float(tau - down), float(tau + up))
        made.append(Relative(pair, float(shifted[row]), float(shifted[base]), float(tau), ends))
        found.add(pair.model)
    missing = tuple(grid.models[row] for row in np.flatnonzero(chosen) if grid.models[row] not in found)
    return RelativeRobustness(second.name, tuple(made), missing, level)
