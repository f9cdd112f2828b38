"""Does robustness to made-up shifts say anything about robustness to natural ones?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.metrics.stats import validate_level
from beaufort.testbed.grid import Grid
from beaufort.testbed.trend import FEWEST, Interval, fit_shift

Floats = NDArray[np.float64]
NOT_STANDARD = "not-standard"


@dataclass(frozen=True)
class Correlation:
    """Pearson's correlation between two effective robustnesses, over the models that are not standard."""

    synthetic: str
    natural: str
    pearson: float
    interval: Interval | None
    """By Fisher's transform, as if models were independent; None for fewer than 4 models."""
    models: tuple[str, ...]
    x: tuple[float, ...]
    """ρ under the synthetic shift."""
    y: tuple[float, ...]
    """ρ under the natural one."""

    @property
    def n(self) -> int:
        """Models that have both."""
        return len(self.models)


def correlate(
    grid: Grid,
    synthetic: str,
    natural: str,
    *,
    x: str | None = None,
    select: Sequence[str] = (),
    scale: str = "logit",
    level: float = 0.95,
) -> Correlation:
    """How effective robustness to a synthetic shift goes along with that to a natural one.

    Each trend is fitted on all standard models that have that shift's own two accuracies. The correlation
    is over the chosen models that are not of type STANDARD and have both robustnesses. `x` is the setting of
    the standard accuracy, each shift's own if None.
    """
    first, second = (rho_column(grid, name, x=x, scale=scale) for name in (synthetic, natural))
    return _correlation(grid, (synthetic, first), (natural, second), grid.select(select), level)


def rho_column(grid: Grid, y: str, *, x: str | None = None, scale: str = "logit") -> Floats:
    """ρ of every model of a grid on a shift; NaN where it is not defined."""
    trend = fit_shift(grid, y, x=x, scale=scale)
    return grid.column(y) - trend.predict(grid.column(x or grid.clean_of(y).name))


def _correlation(
    grid: Grid, first: tuple[str, Floats], second: tuple[str, Floats], chosen: NDArray[np.bool_], level: float
) -> Correlation:
    usable = chosen & grid.groups[NOT_STANDARD] & ~np.isnan(first[1]) & ~np.isnan(second[1])
    rows = np.flatnonzero(usable)
    x, y = first[1][rows], second[1][rows]
    names = grid.setting(first[0]).name, grid.setting(second[0]).name
    if len(rows) < FEWEST:
        raise OptionError(
            f"{names[0]} and {names[1]}: a correlation needs at least {FEWEST} models that are not standard "
            f"and have both, got {len(rows)}"
        )
    dx, dy = x - x.mean(), y - y.mean()
    spread = math.sqrt(float(dx @ dx) * float(dy @ dy))
    if spread <= 1e-18 * len(rows):
        raise OptionError(f"a correlation of {names[0]} with {names[1]} needs models that differ in both")
    r = float(np.clip(dx @ dy / spread, -1, 1))
    models = tuple(grid.models[row] for row in rows)
    return Correlation(*names, r, _fisher(r, len(rows), level), models, tuple(x.tolist()), tuple(y.tolist()))


def _fisher(r: float, n: int, level: float) -> Interval | None:
    quantile = NormalDist().inv_cdf((1 + validate_level(level)) / 2)
    if n < 4 or abs(r) >= 1:
        return None
    reach = quantile / math.sqrt(n - 3)
    return Interval(math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach))


def synthetic_shifts(grid: Grid) -> list[str]:
    """Synthetic shifts to compare: corruptions over their severities, what stands alone, the averages."""
    made = grid.aggregates
    within = {member for one in made.values() for member in one.members if one.group == "corruption"}
    single = [name for name, one in grid.settings.items() if one.kind == "synthetic" and one.severity is None]
    families = sorted([*(name for name in made if name in within), *(n for n in single if n in within)])
    return [
        *[name for name in ("avg_corruptions",) if name in made],
        *families,
        *[name for name in ("avg_pgd",) if name in made],
        *[name for name in single if name not in within],
    ]


_STUDIED = (
    "imagenetv2",
    "objectnet",
    "vid-robust",
    "ytbb-robust",
    "vid-robust-pm10",
    "ytbb-robust-pm10",
    "imagenet-a",
    *("imagenet-r", "sketch", "real"),
)


def natural_shifts(grid: Grid) -> list[str]:
    """The natural shifts of a study, one version of each dataset: the paper's seven, then the appendix's."""
    found = []
    for name in _STUDIED:
        try:
            one = grid.setting(name)
        except BeaufortError:
            continue
        if one.clean in grid.settings:
            found.append(one.name)
    return found or [
        name for name, one in grid.settings.items() if one.kind == "natural" and one.clean in grid.settings
    ]


def correlation_table(
    grid: Grid,
    *,
    synthetic: Sequence[str] | None = None,
    natural: Sequence[str] | None = None,
    x: str | None = None,
    select: Sequence[str] = (),
    scale: str = "logit",
    level: float = 0.95,
) -> list[Correlation]:
    """The correlation of every synthetic with every natural shift of a grid.

    Of shifts that are not named, those that cannot be fitted are left out, and so are pairs that too few
    models have; what is named must be there.
    """
    rows = list(synthetic_shifts(grid) if synthetic is None else synthetic)
    columns = list(natural_shifts(grid) if natural is None else natural)
    if not rows or not columns:
        raise OptionError(
            f"a correlation needs synthetic and natural shifts, got {len(rows)} and {len(columns)} in the "
            f"grid {grid.name}"
        )
    named = [*(synthetic or ()), *(natural or ())]
    rho = {}
    for name in [*rows, *columns]:
        with suppress(OptionError) if name not in named else nullcontext():
            rho[name] = rho_column(grid, name, x=x, scale=scale)
    chosen = grid.select(select)
    made = []
    for a, b in ((a, b) for a in rows for b in columns if a in rho and b in rho):
        with suppress(OptionError) if synthetic is None or natural is None else nullcontext():
            made.append(_correlation(grid, (a, rho[a]), (b, rho[b]), chosen, level))
    if not made:
        raise OptionError(
            f"a correlation needs at least {FEWEST} chosen models that are not standard and differ in both "
            f"robustnesses, got no such pair of shifts in the grid {grid.name}"
        )
    return made
