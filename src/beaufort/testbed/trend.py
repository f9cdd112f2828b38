"""Trends: the accuracy under a shift predicted from clean accuracy, with bootstrap bands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_count
from beaufort.metrics.scales import get_scale
from beaufort.metrics.stats import validate_level
from beaufort.testbed.grid import Grid, Setting

if TYPE_CHECKING:
    from beaufort.testbed.plane import Plane

Floats = NDArray[np.float64]

RESAMPLES = 1000
SEED = 720257663
"""Seed of the paper's code; with the same generator, the intervals agree with the paper's."""
MIN_MODELS = 3
"""Smallest number of models for a fit or a correlation."""
FEW = 20
"""Bootstrap intervals are too narrow for a line through fewer models."""


@lru_cache(maxsize=8)
def draw_counts(n: int, resamples: int, seed: int) -> Floats:
    """Return how often each of `n` models is drawn in each resample, `(resamples, n)`.

    Uses NumPy's legacy generator, whose numbers never change, in the same way as the paper's code.
    """
    resamples = validate_count("resamples", resamples)
    generator = np.random.RandomState(seed)
    draws = [np.bincount(generator.choice(n, n), minlength=n) for _ in range(resamples)]
    return np.stack(draws).astype(float)


@dataclass(frozen=True)
class Interval:
    """An interval with its bounds."""

    low: float
    high: float


class Forecast(NamedTuple):
    """Distribution of the accuracies under the shift of further models like the fitted ones.

    On the transformed axis it is a Student's t-distribution, which contains the scatter of models around the
    line and the uncertainty of the line.
    """

    center: Floats
    error: Floats
    freedom: Floats
    """Degrees of freedom."""


@dataclass(frozen=True, eq=False)
class Line:
    """A straight line on transformed axes, fitted by least squares."""

    slope: float
    intercept: float
    r2: float
    """Squared correlation on the transformed axes."""
    scale: str
    x: Floats = field(repr=False)
    """Standard accuracies of the fitted models, on the transformed axis."""
    y: Floats = field(repr=False)
    excluded: tuple[str, ...] = ()
    """Models left out because an accuracy of 0 or 100 is infinite on this scale."""

    @property
    def n(self) -> int:
        """Number of fitted models."""
        return len(self.x)

    @property
    def range(self) -> Interval:
        """Standard accuracies of the fitted models, in percent; the line is extrapolated outside."""
        low, high = get_scale(self.scale).inverse([self.x.min(), self.x.max()])
        return Interval(float(low), float(high))

    @property
    def sides(self) -> list[tuple[str, Line]]:
        """The lines of the trend, each with a label of where it holds."""
        return [("", self)]

    def predict(self, percent: ArrayLike) -> Floats:
        """Return accuracies under the shift, in percent; NaN for 0 and 100 if these are infinite."""
        scale = get_scale(self.scale)
        z = scale.forward(percent)
        return scale.inverse(np.where(np.isfinite(z), self.slope * z + self.intercept, np.nan))

    def draws(self, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
        """Return slope and intercept of bootstrap lines, `(resamples, 2)`.

        If all models of a resample have the same standard accuracy, the fitted line is used instead.
        """
        x, y = self.x - self.x.mean(), self.y - self.y.mean()
        sums = draw_counts(self.n, resamples, seed) @ np.stack([x, y, x * x, x * y], axis=1) / self.n
        spread = sums[:, 2] - sums[:, 0] ** 2
        flat = spread <= 1e-12 * np.mean(x * x)
        slope = (sums[:, 3] - sums[:, 0] * sums[:, 1]) / np.where(flat, 1, spread)
        slope = np.where(flat, self.slope, slope)
        middle = np.where(flat, 0, sums[:, 1] - slope * sums[:, 0])
        return np.stack([slope, middle + self.y.mean() - slope * self.x.mean()], axis=1)

    def predict_draws(self, percent: ArrayLike, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
        """Return predictions of bootstrap lines, on the transformed axis, `(resamples, len(percent))`."""
        drawn = self.draws(resamples, seed)
        z = get_scale(self.scale).forward(percent)
        z = np.where(np.isfinite(z), z, np.nan)
        return drawn[:, :1] * z + drawn[:, 1:]

    def forecast(self, percent: ArrayLike) -> Forecast:
        """Return the distribution for a further model at each standard accuracy, in percent."""
        z = get_scale(self.scale).forward(percent)
        z = np.where(np.isfinite(z), z, np.nan)
        residuals, freedom = self.y - self.slope * self.x - self.intercept, self.n - 2
        variance = float(residuals @ residuals) / freedom
        leverage = 1 / self.n + (z - self.x.mean()) ** 2 / float(np.sum((self.x - self.x.mean()) ** 2))
        center = self.slope * z + self.intercept
        return Forecast(center, np.sqrt(variance * (1 + leverage)), np.full(z.shape, float(freedom)))


@dataclass(frozen=True, eq=False)
class Knee:
    """Two lines, for accuracies below and above that of the model used to filter the images."""

    pivot: float
    """Standard accuracy where the lines meet, in percent; the left line holds up to and including it."""
    left: Line
    right: Line
    filtered: tuple[str, ...] = ()
    """Models left out of both fits: the one that filtered the images, and those with accuracy 0."""

    @property
    def scale(self) -> str:
        return self.left.scale

    @property
    def n(self) -> int:
        return self.left.n + self.right.n

    @property
    def excluded(self) -> tuple[str, ...]:
        return self.filtered + self.left.excluded + self.right.excluded

    @property
    def range(self) -> Interval:
        return Interval(self.left.range.low, self.right.range.high)

    @property
    def sides(self) -> list[tuple[str, Line]]:
        return [(f"up to {self.pivot:.2f} %", self.left), (f"above {self.pivot:.2f} %", self.right)]

    def predict(self, percent: ArrayLike) -> Floats:
        x = np.asarray(percent, np.float64)
        return np.where(x <= self.pivot, self.left.predict(x), self.right.predict(x))

    def predict_draws(self, percent: ArrayLike, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
        x = np.asarray(percent, np.float64)
        left, right = (line.predict_draws(x, resamples, seed) for line in (self.left, self.right))
        return np.where(x <= self.pivot, left, right)

    def forecast(self, percent: ArrayLike) -> Forecast:
        x = np.asarray(percent, np.float64)
        sides = zip(self.left.forecast(x), self.right.forecast(x), strict=True)
        return Forecast(*(np.where(x <= self.pivot, left, right) for left, right in sides))


Trend: TypeAlias = Line | Knee


def fit_line(
    x: ArrayLike, y: ArrayLike, *, scale: str = "logit", names: tuple[str, ...] = (), what: str = "a fit"
) -> Line:
    """Fit accuracies under a shift on standard accuracies, both in percent, by least squares.

    Models are left out if one of the accuracies is NaN, or infinite on the scale.

    >>> line = fit_line([60.0, 70.0, 80.0], [50.0, 60.0, 70.0], scale="linear")
    >>> round(line.slope, 6), round(line.intercept, 6), round(line.r2, 6), line.n
    (1.0, -10.0, 1.0, 3)
    """
    known = get_scale(scale)
    first, second = known.forward(x), known.forward(y)
    given = ~(np.isnan(first) | np.isnan(second))
    finite = given & np.isfinite(first) & np.isfinite(second)
    excluded = tuple(names[row] for row in np.flatnonzero(given & ~finite)) if names else ()
    a, b = first[finite], second[finite]
    if len(a) < MIN_MODELS:
        infinite = int((given & ~finite).sum())
        more = f" ({infinite} more have an accuracy of 0 or 100)" if infinite else ""
        raise OptionError(
            f"{what} needs at least {MIN_MODELS} models with both accuracies, got {len(a)}{more}"
        )
    for values, where in ((a, "in standard accuracy"), (b, "under the shift")):
        if np.ptp(values) <= 1e-9 * max(1.0, float(np.abs(values).max())):
            raise OptionError(f"{what} needs models that differ {where}, but all {len(a)} models are equal")
    da, db = a - a.mean(), b - b.mean()
    slope = float(da @ db / (da @ da))
    r2 = float((da @ db) ** 2 / (da @ da * float(db @ db)))
    return Line(slope, float(b.mean() - slope * a.mean()), r2, scale, a, b, excluded)


def fit_shift(
    grid: Grid, y: str, *, x: str | None = None, scale: str = "logit", knee: float | str | None = "auto"
) -> Trend:
    """Fit the trend of a shift on the standard models of a grid.

    Args:
        grid: from `load_grid`.
        y: the shift.
        x: setting of the standard accuracy; the shift's own by default.
        scale: `logit`, `probit` or `linear`.
        knee: where to split the fit in two. `auto` splits at the accuracy of the model that the images were
            filtered against, if there is one; a percentage splits there; None never splits.
    """
    clean, shift = grid.clean_and_shift(y, x)
    if clean.name == shift.name:
        raise OptionError(f"x and y must be two settings of the grid {grid.name}, got {shift.name} for both")
    first, second = grid.column(clean.name), grid.column(shift.name)
    what = f"the fit of {shift.name} on {clean.name}"
    rows = np.flatnonzero(grid.fitted & ~np.isnan(first) & ~np.isnan(second))
    names = np.array(grid.models)[rows]
    pivot = _pivot(grid, shift, first, second, clean.name == shift.clean) if knee == "auto" else knee
    first, second = first[rows], second[rows]
    if pivot is None:
        return fit_line(first, second, scale=scale, names=tuple(names.tolist()), what=what)
    if isinstance(pivot, str):
        raise OptionError(f"knee must be 'auto', None or a percentage, got {pivot!r}")
    usable = (second > 0) & (names != shift.filter)
    left, right = (
        fit_line(
            first[side],
            second[side],
            scale=scale,
            names=tuple(names[side].tolist()),
            what=f"{what}, {where} of {pivot:g} %,",
        )
        for where, side in (("left", usable & (first <= pivot)), ("right", usable & (first > pivot)))
    )
    return Knee(float(pivot), left, right, tuple(names[~usable].tolist()))


def _pivot(grid: Grid, shift: Setting, first: Floats, second: Floats, own_clean: bool) -> float | None:
    """Return the standard accuracy of the model that the images were filtered against, if there is one."""
    if shift.members or not own_clean:
        return None
    row = grid.row_of.get(shift.filter)
    if row is None:
        zero = np.flatnonzero(grid.fitted & (second == 0) & ~np.isnan(first))
        row = int(zero[0]) if len(zero) == 1 else None
    if row is None or np.isnan(first[row]):
        return None
    usable = grid.fitted & ~np.isnan(first) & (second > 0)
    sides = (usable & (first <= first[row])).sum(), (usable & (first > first[row])).sum()
    return float(first[row]) if min(sides) >= MIN_MODELS else None


def band(
    trend: Trend | Plane,
    percent: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Floats, Floats]:
    """Return the bootstrap band of a trend at some standard accuracies, in percent.

    Percentiles are conservative: the lower bound is rounded down to one of the draws, the upper bound up.
    """
    low, high = _percentiles(trend.predict_draws(percent, resamples, seed), level)
    scale = get_scale(trend.scale)
    return scale.inverse(low), scale.inverse(high)


def prediction_interval(trend: Trend, percent: ArrayLike, *, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the accuracies under the shift, in percent, that contain a fraction `level` of further models.

    Args:
        trend: from `fit_shift`; each side of a knee has its own scatter.
        percent: standard accuracies of the models.
        level: fraction of models like the fitted ones, on test sets of the same size.

    >>> line = fit_line([60.0, 70.0, 80.0, 75.0], [50.0, 61.0, 70.0, 65.0], scale="linear")
    >>> low, high = prediction_interval(line, [70.0])
    >>> low.round(1).tolist(), high.round(1).tolist()
    ([57.3], [63.2])
    """
    center, error, freedom = trend.forecast(percent)
    width = special.stdtrit(freedom, (1 + validate_level(level)) / 2) * error
    scale = get_scale(trend.scale)
    return scale.inverse(center - width), scale.inverse(center + width)


def coefficient_intervals(
    line: Line, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[Interval, Interval]:
    """Return bootstrap intervals of slope and intercept."""
    low, high = _percentiles(line.draws(resamples, seed), level)
    return Interval(float(low[0]), float(high[0])), Interval(float(low[1]), float(high[1]))


def _percentiles(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    tail = (1 - validate_level(level)) / 2
    last = len(drawn) - 1
    low, high = math.floor(tail * last), math.ceil((1 - tail) * last)
    ordered = np.partition(drawn, (low, high), axis=0)
    return ordered[low], ordered[high]


def trend_notes(trend: Trend | Plane) -> tuple[str, ...]:
    """Return notes on models left out of a fit, and on lines through too few models."""
    notes = []
    if trend.excluded:
        reason = "an accuracy of 0 or 100"
        if isinstance(trend, Knee):
            reason += ", or used to filter the images"
        notes.append(f"left out ({reason}): {', '.join(trend.excluded)}")
    return (*notes, *few_models(trend))


def few_models(trend: Trend | Plane) -> tuple[str, ...]:
    """Return a note if a line has too few models for the bootstrap."""
    n = min(line.n for _, line in trend.sides)
    return () if n >= FEW else (f"bootstrap intervals are too narrow for a line through {n} models",)
