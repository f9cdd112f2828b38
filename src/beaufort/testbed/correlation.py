"""Correlation of effective robustness to synthetic shifts with that to natural shifts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.metrics.stats import validate_level
from beaufort.testbed.grid import Grid
from beaufort.testbed.trend import MIN_MODELS, Interval, fit_shift

Floats = NDArray[np.float64]
NOT_STANDARD = "not-standard"


@dataclass(frozen=True)
class Correlation:
    """Pearson correlation of two effective robustnesses, over the models that are not standard."""

    synthetic: str
    natural: str
    pearson: float
    interval: Interval | None
    """From Fisher's transformation, as if models were independent; None for fewer than 4 models."""
    models: tuple[str, ...]
    x: tuple[float, ...]
    """ρ of each model under the synthetic shift."""
    y: tuple[float, ...]
    """ρ of each model under the natural shift."""

    @property
    def n(self) -> int:
        """Number of models."""
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
    """Correlate effective robustness to a synthetic shift with that to a natural shift.

    Each trend is fitted on all standard models with both of its accuracies. The correlation is over the
    selected models that are not of type STANDARD and have both robustnesses.
    """
    columns = [rho_column(grid, name, x=x, scale=scale) for name in (synthetic, natural)]
    names = grid.setting(synthetic).name, grid.setting(natural).name
    return _correlation(grid, names, columns, grid.select(select), level)


def rho_column(grid: Grid, y: str, *, x: str | None = None, scale: str = "logit") -> Floats:
    """Return ρ of every model of a grid on a shift, NaN where it is undefined."""
    trend = fit_shift(grid, y, x=x, scale=scale)
    return grid.column(y) - trend.predict(grid.column(x or grid.clean_of(y).name))


def _correlation(
    grid: Grid,
    names: tuple[str, str],
    columns: Sequence[Floats],
    selected: NDArray[np.bool_],
    level: float,
) -> Correlation:
    rows = np.flatnonzero(selected & grid.groups[NOT_STANDARD] & ~np.isnan(columns).any(axis=0))
    x, y = (column[rows] for column in columns)
    if len(rows) < MIN_MODELS:
        raise OptionError(
            f"a correlation of {names[0]} with {names[1]} needs at least {MIN_MODELS} models that are not "
            f"standard and have both, got {len(rows)}"
        )
    dx, dy = x - x.mean(), y - y.mean()
    spread = math.sqrt(float(dx @ dx) * float(dy @ dy))
    if spread <= 1e-18 * len(rows):
        raise OptionError(
            f"cannot correlate {names[0]} with {names[1]}: all models have the same value of one"
        )
    r = float(np.clip(dx @ dy / spread, -1, 1))
    quantile = NormalDist().inv_cdf((1 + validate_level(level)) / 2)
    interval = None
    if len(rows) > 3 and abs(r) < 1:
        z, margin = math.atanh(r), quantile / math.sqrt(len(rows) - 3)
        interval = Interval(math.tanh(z - margin), math.tanh(z + margin))
    models = tuple(grid.models[row] for row in rows)
    return Correlation(*names, r, interval, models, tuple(x.tolist()), tuple(y.tolist()))


def synthetic_shifts(grid: Grid) -> list[str]:
    """Return the synthetic shifts to compare: corruptions as means over severities, others, and averages."""
    means = grid.aggregates
    members = {member for one in means.values() for member in one.members if one.group == "corruption"}
    single = [name for name, one in grid.settings.items() if one.kind == "synthetic" and one.severity is None]
    return [
        *(name for name in ("avg_corruptions",) if name in means),
        *sorted(name for name in (*means, *single) if name in members),
        *(name for name in ("avg_pgd",) if name in means),
        *(name for name in single if name not in members),
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
    """Return the natural shifts of the paper and its appendix that a grid has, or else all of the grid."""
    found = []
    for name in _STUDIED:
        with suppress(UnknownNameError):
            found.append(grid.setting(name))
    natural = [one for one in grid.settings.values() if one.kind == "natural"]
    studied, others = ([one.name for one in some if one.clean in grid.settings] for some in (found, natural))
    return studied or others


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
    """Correlate every synthetic with every natural shift of a grid.

    Shifts that are not named are left out if they cannot be fitted, and pairs if too few models have both.
    """
    rows = list(synthetic_shifts(grid) if synthetic is None else synthetic)
    columns = list(natural_shifts(grid) if natural is None else natural)
    if not rows or not columns:
        raise OptionError(
            f"a correlation needs synthetic and natural shifts, got {len(rows)} and {len(columns)} in the "
            f"grid {grid.name}"
        )
    named = {*(synthetic or ()), *(natural or ())}
    rho = {}
    for name in [*rows, *columns]:
        with suppress(*() if name in named else (OptionError,)):
            rho[name] = rho_column(grid, name, x=x, scale=scale)
    selected = grid.select(select)
    found = []
    for a, b in ((a, b) for a in rows for b in columns if a in rho and b in rho):
        with suppress(*(OptionError,) if synthetic is None or natural is None else ()):
            names = grid.setting(a).name, grid.setting(b).name
            found.append(_correlation(grid, names, (rho[a], rho[b]), selected, level))
    if not found:
        raise OptionError(
            f"a correlation needs at least {MIN_MODELS} selected models that are not standard and differ in "
            f"both robustnesses, but no pair of shifts in the grid {grid.name} has them"
        )
    return found
