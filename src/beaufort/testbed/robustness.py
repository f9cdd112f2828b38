"""Effective robustness ρ, the distance from the trend, and relative robustness τ, the effect of a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from beaufort._core.errors import OptionError
from beaufort.metrics.scales import Scale, get_scale
from beaufort.metrics.stats import proportion_intervals, validate_level
from beaufort.testbed.grid import Grid, Pair
from beaufort.testbed.plane import Plane, fit_plane
from beaufort.testbed.trend import RESAMPLES, SEED, Interval, Knee, Trend, band, fit_shift

Floats = NDArray[np.float64]

COVERS = (
    "the sampling of both test sets, as if independent, and of the models that the trend is fitted on; not a "
    "new training run of the model, nor the scatter of the fitted models around the trend"
)
"""What a measurement interval of ρ covers."""

SCATTER_COVERS = (
    "the scatter of the fitted models around the trend, the uncertainty of the trend, and the sampling of a "
    "test set that is smaller than the reference's"
)
"""What a prediction interval of ρ covers."""


@dataclass(frozen=True)
class Effective:
    """Effective robustness of one model, in percent and percentage points."""

    model: str
    type: str
    clean: float
    """Standard accuracy."""
    shifted: float
    """Accuracy under the shift."""
    expected: float | None
    """Accuracy that the trend predicts from the standard accuracy."""
    rho: float | None
    """Points above the trend; None for a standard accuracy of 0 or 100."""
    interval: Interval | None
    """Measurement interval of ρ; None if a number of images is unknown."""
    scatter: Interval | None
    """Prediction interval: ρ of most models like the fitted ones, at this standard accuracy and on as many
    images; None if a number of images is unknown."""
    percentile: float | None
    """Percentage of such models with a lower ρ."""
    p: float | None
    """p-value of the hypothesis that the model is one of them, two-sided."""
    extrapolated: bool
    """Whether the standard accuracy lies outside those that the trend was fitted on."""
    images: tuple[float | None, float | None] = (None, None)
    """Numbers of images behind the two accuracies; None if unknown."""
    further: tuple[float, ...] = ()
    """Further standard accuracies, if the trend is over several."""

    @property
    def verdict(self) -> str:
        """`above`, `below` or `within` the scatter of the fitted models; `unknown` without an interval."""
        if self.rho is None or self.scatter is None:
            return "unknown"
        if self.scatter.low <= self.rho <= self.scatter.high:
            return "within"
        return "above" if self.rho > self.scatter.high else "below"


class Accuracies(NamedTuple):
    """Accuracies of several models under one setting."""

    percent: Floats
    images: Floats
    """Number of images behind each; NaN if unknown."""
    reference: float | None
    """Number of images behind those of the fitted models; None if unknown but the same."""

    def excess(self) -> Floats:
        """Return how much larger 1/n is than for the fitted models, NaN if unknown."""
        if self.reference is None:
            return np.where(np.isnan(self.images), 0, 1 / self.images)
        return np.maximum(0, 1 / self.images - 1 / self.reference)


@dataclass(frozen=True)
class EffectiveRobustness:
    """Effective robustness of several models on one shift."""

    x: str
    y: str
    trend: Trend | Plane
    models: tuple[Effective, ...]
    missing: tuple[str, ...]
    """Selected models that lack one of the accuracies."""
    level: float

    @property
    def defined(self) -> tuple[Effective, ...]:
        """The models that have a ρ."""
        return tuple(one for one in self.models if one.rho is not None)

    @property
    def mean(self) -> float:
        """Mean ρ."""
        if not self.defined:
            raise OptionError(f"no selected model has an effective robustness on {self.y}")
        return float(np.mean([one.rho for one in self.defined if one.rho is not None]))

    @property
    def mean_interval(self) -> Interval | None:
        """Mean of the bounds, because models share test images and the trend, so their errors correlate."""
        return _mean_interval([one.interval for one in self.defined])


def _mean_interval(intervals: Sequence[Interval | None]) -> Interval | None:
    """Return the mean of the bounds; None if one is unknown, or there are none."""
    known = [(one.low, one.high) for one in intervals if one is not None]
    if not known or len(known) < len(intervals):
        return None
    return Interval(*(float(np.mean(bounds)) for bounds in zip(*known, strict=True)))


def accuracy_intervals(percent: ArrayLike, images: ArrayLike, level: float = 0.995) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson intervals of accuracies, in percent; NaN where the number of images is NaN.

    >>> low, high = accuracy_intervals([76.13], [50_000])
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([75.59], [76.66])
    """
    values, sizes = np.asarray(percent, np.float64), np.asarray(images, np.float64)
    low, high = proportion_intervals(np.clip(values * sizes / 100, 0, sizes), sizes, level)
    return 100 * low, 100 * high


def effective_robustness(
    grid: Grid,
    y: str,
    *,
    x: str | Sequence[str] | None = None,
    select: Sequence[str] = (),
    scale: str = "logit",
    knee: float | str | None = "auto",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> EffectiveRobustness:
    """Compute how far models of a grid lie above its trend on a shift.

    Args:
        grid: from `load_grid`.
        y: the shift.
        x: setting of the standard accuracy; the shift's own by default. Several settings are standard
            accuracies of different distributions, for models that were trained on different data.
        select: models, as for `Grid.select`; all by default.
        scale: as for `fit_shift`.
        knee: as for `fit_shift`.
        level: confidence level of the intervals; see `COVERS`.
        resamples: bootstrap resamples of the trend.
        seed: seed of the bootstrap.
    """
    names_x = [x] if x is None or isinstance(x, str) else list(x)
    cleans, second = [grid.clean_and_shift(y, name)[0] for name in names_x], grid.setting(y)
    trend: Trend | Plane
    if len(cleans) > 1:
        trend = fit_plane(grid, y, [one.name for one in cleans], scale=scale)
    else:
        trend = fit_shift(grid, y, x=names_x[0], scale=scale, knee=knee)
    columns = [grid.column(one.name) for one in (*cleans, second)]
    given = ~np.isnan(columns).any(axis=0)
    selected = grid.select(select)
    rows = np.flatnonzero(selected & given)
    *standard, shift = (
        Accuracies(values[rows], grid.images(setting.name)[rows], setting.images)
        for setting, values in zip((*cleans, second), columns, strict=True)
    )
    names = [(grid.models[row], grid.types[row]) for row in rows]
    models = measure(trend, names, standard, shift, level=level, resamples=resamples, seed=seed)
    missing = tuple(grid.models[row] for row in np.flatnonzero(selected & ~given))
    clean_names = " and ".join(one.name for one in cleans)
    return EffectiveRobustness(clean_names, second.name, trend, models, missing, level)


def measure(
    trend: Trend | Plane,
    names: Sequence[tuple[str, str]],
    standard: Accuracies | Sequence[Accuracies],
    shift: Accuracies,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Effective, ...]:
    """Return ρ of models against a trend, which may be that of another grid.

    The measurement interval combines those of both accuracies and of the trend by adding squared distances
    from the estimates (Zou & Donner, 2008), and ends where ρ must: at -100 and 100 points. The prediction
    interval is Student's, on the transformed axis of the trend.

    Args:
        trend: the trend.
        names: name and type of each model.
        standard: standard accuracies; several for a trend over several.
        shift: accuracies under the shift.
        level: as for `effective_robustness`.
        resamples: as for `effective_robustness`.
        seed: as for `effective_robustness`.
    """
    standards = [standard] if isinstance(standard, Accuracies) else list(standard)
    shifted, shifted_images, _ = shift
    if not len(shifted):
        return ()
    points = np.stack([one.percent for one in standards], axis=1)
    expected = trend.predict(_places(trend, points))
    rho = shifted - expected
    low, high = accuracy_intervals(shifted, shifted_images, level)
    below, above = band(trend, _places(trend, points), level=level, resamples=resamples, seed=seed)
    with np.errstate(invalid="ignore"):
        squares_down, squares_up = (shifted - low) ** 2, (high - shifted) ** 2
        for axis, one in enumerate(standards):
            bounds = accuracy_intervals(one.percent, one.images, level)
            at_low, at_high = (_predict_bounded(trend, points, axis, bound) for bound in bounds)
            squares_down += (np.maximum(at_low, at_high) - expected) ** 2
            squares_up += (expected - np.minimum(at_low, at_high)) ** 2
        down = np.sqrt(squares_down + (above - expected) ** 2)
        up = np.sqrt(squares_up + (expected - below) ** 2)
    lows, highs = np.maximum(rho - down, np.minimum(-100, rho)), np.minimum(rho + up, np.maximum(100, rho))
    scatter_low, scatter_high, t, freedom = _scatter(trend, standards, shift, level)
    ranges = trend.ranges if isinstance(trend, Plane) else [trend.range]
    outside = np.any(
        [
            (points[:, axis] < inside.low - 1e-9) | (points[:, axis] > inside.high + 1e-9)
            for axis, inside in enumerate(ranges)
        ],
        axis=0,
    )
    return tuple(
        Effective(
            name,
            kind,
            float(points[i, 0]),
            float(shifted[i]),
            _known(expected[i]),
            _known(rho[i]),
            _interval(lows[i], highs[i]),
            _interval(scatter_low[i], scatter_high[i]),
            _known(100 * special.stdtr(freedom[i], t[i])),
            _known(2 * special.stdtr(freedom[i], -abs(t[i]))),
            bool(outside[i]),
            (_known(standards[0].images[i]), _known(shifted_images[i])),
            tuple(map(float, points[i, 1:])),
        )
        for i, (name, kind) in enumerate(names)
    )


def _scatter(
    trend: Trend | Plane, standards: Sequence[Accuracies], shift: Accuracies, level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return bounds of ρ for models like the fitted ones, and each model's t-value and degrees of freedom.

    The fitted models scatter with the sampling noise of their own test sets. The additional noise of a
    smaller test set is added to the variance, with a continuity correction of half an image.
    """
    points = np.stack([one.percent for one in standards], axis=1)
    scale, expected = get_scale(trend.scale), trend.predict(_places(trend, points))
    center, error, freedom = trend.forecast(_places(trend, points))
    y_noise = shift.excess()
    step = 1e-3  # the derivative of the trend by a standard accuracy, in percent
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = expected * (100 - expected) * y_noise
        for axis, one in enumerate(standards):
            inner = np.clip(one.percent, 0.01, 99.99)
            up, down = (_predict_bounded(trend, points, axis, inner + sign * step) for sign in (1, -1))
            variance = variance + ((up - down) / (2 * step)) ** 2 * inner * (100 - inner) * one.excess()
        error = np.sqrt(error**2 + variance * _derivative(scale, expected) ** 2)
        half = np.where(y_noise > 0, 50 / shift.images, 0.0)
        width = special.stdtrit(freedom, (1 + validate_level(level)) / 2) * error
        low, high = scale.inverse(center - width) - half, scale.inverse(center + width) + half
        rho = shift.percent - expected
        nearer = expected + np.sign(rho) * np.maximum(np.abs(rho) - half, 0)
        off = scale.forward(nearer) - center
        t = np.where(np.abs(rho) <= half, 0.0, off / error)
    t = np.where(np.isnan(error) | np.isnan(rho), np.nan, t)
    return np.maximum(low, 0) - expected, np.minimum(high, 100) - expected, t, freedom


def _derivative(scale: Scale, percent: Floats) -> Floats:
    """Return how fast the transformed axis grows at a percentage."""
    inner, step = np.clip(percent, 0.01, 99.99), 1e-3
    return (scale.forward(inner + step) - scale.forward(inner - step)) / (2 * step)


def _interval(low: np.floating, high: np.floating) -> Interval | None:
    return None if np.isnan(low + high) else Interval(float(low), float(high))


def _places(trend: Trend | Plane, points: Floats) -> Floats:
    """Return standard accuracies as a trend takes them: a column for each, or one-dimensional."""
    return points if isinstance(trend, Plane) else points[:, 0]


def _predict_bounded(trend: Trend | Plane, points: Floats, axis: int, bounds: Floats) -> Floats:
    """Predict at bounds of one accuracy, kept off 0 and 100; the accuracy decides the side of a knee."""
    inner = np.clip(bounds, 1e-6, 100 - 1e-6)
    if isinstance(trend, Plane):
        moved = points.copy()
        moved[:, axis] = inner
        return trend.predict(moved)
    if isinstance(trend, Knee):
        return np.where(points[:, 0] <= trend.pivot, trend.left.predict(inner), trend.right.predict(inner))
    return trend.predict(inner)


def _known(value: np.floating) -> float | None:
    return None if np.isnan(value) else float(value)


@dataclass(frozen=True)
class Relative:
    """Relative robustness of one model, in percent and percentage points."""

    pair: Pair
    shifted: float
    base_shifted: float
    tau: float
    interval: Interval | None


@dataclass(frozen=True)
class RelativeRobustness:
    """Relative robustness of several models on one shift."""

    y: str
    models: tuple[Relative, ...]
    missing: tuple[str, ...]
    """Selected models without a base model or without an accuracy."""
    level: float

    @property
    def mean(self) -> float:
        """Mean τ."""
        if not self.models:
            raise OptionError(f"no selected model has a base model with an accuracy on {self.y}")
        return float(np.mean([one.tau for one in self.models]))

    @property
    def mean_interval(self) -> Interval | None:
        """Mean of the bounds, because models share test images, so their errors correlate."""
        return _mean_interval([one.interval for one in self.models])


def relative_robustness(
    grid: Grid,
    y: str,
    *,
    select: Sequence[str] = (),
    pairs: Sequence[Pair] | None = None,
    level: float = 0.95,
) -> RelativeRobustness:
    """Compute how much more accurate models are under a shift than their base models.

    The interval treats the two accuracies as independent, which is conservative: they share their images.
    """
    setting = grid.setting(y)
    shifted = grid.column(setting.name)
    low, high = accuracy_intervals(shifted, grid.images(setting.name), level)
    selected = grid.select(select)
    if pairs is None and not grid.pairs:
        raise OptionError(
            f"no selected model has a base model: the grid {grid.name} has no pairs; pass pairs of a model "
            "and its base (--pairs)"
        )
    models = []
    for pair in grid.pairs if pairs is None else pairs:
        row, base = (grid.row_of.get(name) for name in (pair.model, pair.base))
        if row is None or base is None:
            raise OptionError(f"{pair.model} and {pair.base} must both be models of the grid {grid.name}")
        if not selected[row] or np.isnan(shifted[row]) or np.isnan(shifted[base]):
            continue
        tau = shifted[row] - shifted[base]
        down = np.hypot(shifted[row] - low[row], high[base] - shifted[base])
        up = np.hypot(high[row] - shifted[row], shifted[base] - low[base])
        interval = None if np.isnan(down + up) else Interval(float(tau - down), float(tau + up))
        models.append(Relative(pair, float(shifted[row]), float(shifted[base]), float(tau), interval))
    paired = {one.pair.model for one in models}
    names = [grid.models[row] for row in np.flatnonzero(selected)]
    missing = tuple(name for name in names if name not in paired)
    return RelativeRobustness(setting.name, tuple(models), missing, level)
