"""Effective robustness ρ, the distance from the trend, and relative robustness τ, the effect of a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import OptionError
from beaufort.metrics.stats import proportion_intervals
from beaufort.testbed.grid import Grid, Pair
from beaufort.testbed.trend import RESAMPLES, SEED, Interval, Knee, Trend, band, fit_shift

Floats = NDArray[np.float64]

COVERS = (
    "the sampling of both test sets, as if independent, and of the models that the trend is fitted on; not a "
    "new training run of the model, nor the scatter of the fitted models around the trend"
)
"""What an interval of ρ covers."""


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
    """Interval of ρ; None if a number of images is unknown."""
    extrapolated: bool
    """Whether the standard accuracy lies outside those that the trend was fitted on."""
    images: tuple[float | None, float | None] = (None, None)
    """Numbers of images behind the two accuracies; None if unknown."""


@dataclass(frozen=True)
class EffectiveRobustness:
    """Effective robustness of several models on one shift."""

    x: str
    y: str
    trend: Trend
    models: tuple[Effective, ...]
    missing: tuple[str, ...]
    """Selected models that lack one of the two accuracies."""
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
    x: str | None = None,
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
        x: setting of the standard accuracy; the shift's own by default.
        select: models, as for `Grid.select`; all by default.
        scale: as for `fit_shift`.
        knee: as for `fit_shift`.
        level: confidence level of the intervals; see `COVERS`.
        resamples: bootstrap resamples of the trend.
        seed: seed of the bootstrap.
    """
    trend = fit_shift(grid, y, x=x, scale=scale, knee=knee)
    first, second = grid.clean_and_shift(y, x)
    clean, shifted = grid.column(first.name), grid.column(second.name)
    given = ~(np.isnan(clean) | np.isnan(shifted))
    selected = grid.select(select)
    rows = np.flatnonzero(selected & given)
    models = measure(
        trend,
        [(grid.models[row], grid.types[row]) for row in rows],
        (clean[rows], grid.images(first.name)[rows]),
        (shifted[rows], grid.images(second.name)[rows]),
        level=level,
        resamples=resamples,
        seed=seed,
    )
    missing = tuple(grid.models[row] for row in np.flatnonzero(selected & ~given))
    return EffectiveRobustness(first.name, second.name, trend, models, missing, level)


def measure(
    trend: Trend,
    names: Sequence[tuple[str, str]],
    standard: tuple[Floats, Floats],
    shift: tuple[Floats, Floats],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Effective, ...]:
    """Return ρ of models against a trend, which may be that of another grid.

    The interval combines those of both accuracies and of the trend by adding squared distances from the
    estimates (Zou & Donner, 2008), and ends where ρ must: at -100 and 100 points.

    Args:
        trend: the trend.
        names: name and type of each model.
        standard: standard accuracies, and their numbers of images.
        shift: accuracies under the shift, and their numbers of images.
        level: as for `effective_robustness`.
        resamples: as for `effective_robustness`.
        seed: as for `effective_robustness`.
    """
    (clean, clean_images), (shifted, shifted_images) = standard, shift
    if not len(clean):
        return ()
    expected = trend.predict(clean)
    rho = shifted - expected
    clean_low, clean_high = accuracy_intervals(clean, clean_images, level)
    low, high = accuracy_intervals(shifted, shifted_images, level)
    below, above = band(trend, clean, level=level, resamples=resamples, seed=seed)
    with np.errstate(invalid="ignore"):
        at_low, at_high = (_predict_bounded(trend, bounds, clean) for bounds in (clean_low, clean_high))
        fewer, more = np.minimum(at_low, at_high), np.maximum(at_low, at_high)
        down = np.sqrt((shifted - low) ** 2 + (more - expected) ** 2 + (above - expected) ** 2)
        up = np.sqrt((high - shifted) ** 2 + (expected - fewer) ** 2 + (expected - below) ** 2)
    lows, highs = np.maximum(rho - down, np.minimum(-100, rho)), np.minimum(rho + up, np.maximum(100, rho))
    inside = trend.range
    return tuple(
        Effective(
            name,
            kind,
            float(clean[i]),
            float(shifted[i]),
            _known(expected[i]),
            _known(rho[i]),
            None if np.isnan(lows[i] + highs[i]) else Interval(float(lows[i]), float(highs[i])),
            not inside.low - 1e-9 <= clean[i] <= inside.high + 1e-9,
            (_known(clean_images[i]), _known(shifted_images[i])),
        )
        for i, (name, kind) in enumerate(names)
    )


def _predict_bounded(trend: Trend, bounds: Floats, clean: Floats) -> Floats:
    """Predict at bounds of intervals, kept off 0 and 100; the accuracy itself decides the side of a knee."""
    inner = np.clip(bounds, 1e-6, 100 - 1e-6)
    if isinstance(trend, Knee):
        return np.where(clean <= trend.pivot, trend.left.predict(inner), trend.right.predict(inner))
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
