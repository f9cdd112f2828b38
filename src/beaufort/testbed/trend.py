"""The trend: the accuracy under a shift that a standard model's clean accuracy predicts, and its bands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_count
from beaufort.metrics.scales import get_scale
from beaufort.metrics.stats import validate_level
from beaufort.testbed.grid import Grid

Floats = NDArray[np.float64]

RESAMPLES = 1000
SEED = 720257663
"""The seed of the paper's code: with its generator the same models are drawn, and the ends agree."""
FEWEST = 3
"""Models that a line needs."""
FEW = 20
"""Models below which bootstrap intervals are too narrow; docs/how-to/testbed.md has a simulation."""


@lru_cache(maxsize=8)
def draw_counts(n: int, resamples: int, seed: int) -> Floats:
    """How often each of `n` models is drawn in each resample.

    The legacy generator of NumPy, whose numbers never change, and one draw of `n` places each resample, as in
    the paper's code.
    """
    resamples = validate_count("resamples", resamples)
    generator = np.random.RandomState(seed)
    return np.stack([np.bincount(generator.choice(n, n), minlength=n) for _ in range(resamples)]).astype(
        float
    )


@dataclass(frozen=True)
class Interval:
    """Two ends."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Line:
    """A straight line on stretched axes, fitted by least squares."""

    slope: float
    intercept: float
    r2: float
    """Squared correlation on the stretched axes."""
    scale: str
    x: Floats = field(repr=False)
    """Standard accuracies of the models that it was fitted on, on the stretched axis."""
    y: Floats = field(repr=False)
    excluded: tuple[str, ...] = ()
    """Models left out because an accuracy of 0 or 100 is infinite on this scale."""

    @property
    def n(self) -> int:
        """Models that it was fitted on."""
        return len(self.x)

    @property
    def range(self) -> Interval:
        """The standard accuracies, in percent, between which nothing is extrapolated."""
        low, high = get_scale(self.scale).inverse([self.x.min(), self.x.max()])
        return Interval(float(low), float(high))

    @property
    def sides(self) -> list[tuple[str, Line]]:
        """The line itself; of a knee both lines, with where they hold."""
        return [("", self)]

    def predict(self, percent: ArrayLike) -> Floats:
        """The accuracy under the shift, in percent; NaN where the standard one is infinite on the scale."""
        scale = get_scale(self.scale)
        z = scale.forward(percent)
        return scale.inverse(np.where(np.isfinite(z), self.slope * z + self.intercept, np.nan))

    def draws(self, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
        """Slope and intercept of lines through models drawn with replacement, `(resamples, 2)`.

        A resample whose models all have one standard accuracy has no line; it is given the fitted one.
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
        """Predictions of the lines of `draws`, on the stretched axis, `(resamples, len(percent))`."""
        drawn = self.draws(resamples, seed)
        z = get_scale(self.scale).forward(percent)
        z = np.where(np.isfinite(z), z, np.nan)
        return drawn[:, :1] * z + drawn[:, 1:]


@dataclass(frozen=True, eq=False)
class Knee:
    """Two lines, on either side of the model that the images were filtered against."""

    pivot: float
    """That model's standard accuracy in percent; the left line holds up to it, the right one above."""
    left: Line
    right: Line
    filtered: tuple[str, ...] = ()
    """Models that neither line was fitted on: the one that filtered the images, and any with accuracy 0."""

    @property
    def scale(self) -> str:
        return self.left.scale

    @property
    def n(self) -> int:
        """Models that the two lines were fitted on."""
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
        """The accuracy under the shift, in percent."""
        x = np.asarray(percent, np.float64)
        return np.where(x <= self.pivot, self.left.predict(x), self.right.predict(x))

    def predict_draws(self, percent: ArrayLike, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
        """Predictions of resampled lines on the stretched axis; each side is resampled by itself."""
        x = np.asarray(percent, np.float64)
        left, right = (line.predict_draws(x, resamples, seed) for line in (self.left, self.right))
        return np.where(x <= self.pivot, left, right)


Trend: TypeAlias = Line | Knee


def fit_line(
    x: ArrayLike, y: ArrayLike, *, scale: str = "logit", names: tuple[str, ...] = (), what: str = "a fit"
) -> Line:
    """Least squares of accuracies under a shift on standard ones, in percent.

    Models without one of the two are left out. So are those with an accuracy that is infinite on the scale.

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
    if len(a) < FEWEST:
        left_out = int((given & ~finite).sum())
        more = f" ({left_out} more have an accuracy of 0 or 100)" if left_out else ""
        raise OptionError(f"{what} needs at least {FEWEST} models with both accuracies, got {len(a)}{more}")
    da, db = a - a.mean(), b - b.mean()
    if np.ptp(a) <= 1e-9 * max(1.0, float(np.abs(a).max())):
        raise OptionError(f"{what} needs models that differ in standard accuracy, got {len(a)} with the same")
    slope = float(da @ db / (da @ da))
    total = float(db @ db)
    if np.ptp(b) <= 1e-9 * max(1.0, float(np.abs(b).max())):
        raise OptionError(f"{what} needs models that differ under the shift, got {len(a)} with the same")
    intercept, r2 = float(b.mean() - slope * a.mean()), float((da @ db) ** 2 / (da @ da * total))
    return Line(slope, intercept, r2, scale, a, b, excluded)


def fit_shift(
    grid: Grid, y: str, *, x: str | None = None, scale: str = "logit", knee: float | str | None = "auto"
) -> Trend:
    """The trend of a shift, on the models of the grid that are fitted on.

    Args:
        grid: from `load_grid`.
        y: the shift.
        x: the setting of the standard accuracy; the shift's own if None.
        scale: `logit`, `probit` or `linear`.
        knee: `auto` splits where the images were filtered against a model: at the model that the setting
            names, or at the only fitted model with accuracy 0; None never splits; a percentage splits there.
    """
    clean, shift = grid.clean_and_shift(y, x)
    if clean.name == shift.name:
        raise OptionError(f"x and y must be two settings of the grid {grid.name}, got {shift.name} for both")
    first, second = grid.column(clean.name), grid.column(shift.name)
    what = f"the fit of {shift.name} on {clean.name}"
    rows = np.flatnonzero(grid.fitted & ~np.isnan(first) & ~np.isnan(second))
    names = tuple(grid.models[row] for row in rows)
    first, second = first[rows], second[rows]
    pivot = _pivot(grid, shift.name, clean.name) if knee == "auto" else knee
    if pivot is None:
        return fit_line(first, second, scale=scale, names=names, what=what)
    if isinstance(pivot, str):
        raise OptionError(f"knee must be 'auto', None or a percentage, got {pivot!r}")
    kept = (second > 0) & np.array([name != shift.filter for name in names])
    sides = []
    for side, mask in (("left", first <= pivot), ("right", first > pivot)):
        mask = mask & kept
        chosen = tuple(name for name, inside in zip(names, mask, strict=True) if inside)
        about = f"{what}, {side} of {pivot:g} %,"
        sides.append(fit_line(first[mask], second[mask], scale=scale, names=chosen, what=about))
    left, right = sides
    filtered = tuple(name for name, inside in zip(names, kept, strict=True) if not inside)
    return Knee(float(pivot), left, right, filtered)


def _pivot(grid: Grid, y: str, x: str) -> float | None:
    """The standard accuracy of the model that the images were filtered against, if there is one."""
    if grid.settings.get(y) is None or x != grid.settings[y].clean:
        return None
    first, second = grid.column(x), grid.column(y)
    named = grid.place_of.get(grid.settings[y].filter)
    zero = np.flatnonzero(grid.fitted & (second == 0) & ~np.isnan(first))
    row = named if named is not None else (zero[0] if len(zero) == 1 else None)
    if row is None or np.isnan(first[row]):
        return None
    usable = grid.fitted & ~np.isnan(first) & (second > 0)
    sides = (usable & (first <= first[row])).sum(), (usable & (first > first[row])).sum()
    return float(first[row]) if min(sides) >= FEWEST else None


def band(
    trend: Trend,
    percent: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Floats, Floats]:
    """The bootstrap band of a trend at some standard accuracies, in percent.

    Percentiles are conservative: the lower end is rounded down to one of the draws, the upper one up.
    """
    low, high = _ends(trend.predict_draws(percent, resamples, seed), level)
    scale = get_scale(trend.scale)
    return scale.inverse(low), scale.inverse(high)


def coefficient_intervals(
    line: Line, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[Interval, Interval]:
    """Bootstrap intervals of slope and intercept."""
    low, high = _ends(line.draws(resamples, seed), level)
    return Interval(float(low[0]), float(high[0])), Interval(float(low[1]), float(high[1]))


def _ends(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    tail = (1 - validate_level(level)) / 2
    last = len(drawn) - 1
    low, high = math.floor(tail * last), math.ceil((1 - tail) * last)
    ordered = np.partition(drawn, (low, high), axis=0)
    return ordered[low], ordered[high]


def trend_notes(trend: Trend) -> tuple[str, ...]:
    """What a reader of a trend must know: models that were left out, and too few for the bootstrap."""
    notes = []
    if trend.excluded:
        why = "for an accuracy of 0 or 100"
        if isinstance(trend, Knee):
            why += ", or because the images were filtered against it"
        notes.append(f"left out {why}: {', '.join(trend.excluded)}")
    return (*notes, *few_models(trend))


def few_models(trend: Trend) -> tuple[str, ...]:
    """A note if a line has too few models for the bootstrap."""
    fewest = min(line.n for _, line in trend.sides)
    if fewest >= FEW:
        return ()
    return (f"a line through {fewest} models: bootstrap intervals of so few are too narrow",)
