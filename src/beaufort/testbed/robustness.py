"""Effective robustness ρ, points above the trend, and relative robustness τ, what an intervention changed."""

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
    "the images of both test sets, as if they were drawn independently, and which models the trend was "
    "fitted on; not a new training of the model, nor how the models fitted on scatter around the trend"
)
"""What an interval of ρ covers."""


@dataclass(frozen=True)
class Effective:
    """One model above or below the trend; all in percent or percentage points."""

    model: str
    type: str
    clean: float
    """Its standard accuracy."""
    shifted: float
    """Its accuracy under the shift."""
    expected: float | None
    """What the trend says for its standard accuracy."""
    rho: float | None
    """Points above the trend; None if there is no trend at this accuracy."""
    interval: Interval | None
    """Of ρ; None if the numbers of images are not known."""
    extrapolated: bool
    """Whether its standard accuracy lies outside of those that the trend was fitted on."""
    images: tuple[float | None, float | None] = (None, None)
    """How many images the two accuracies rest on; None if it is not known."""


@dataclass(frozen=True)
class EffectiveRobustness:
    """ρ of some models on one shift."""

    x: str
    y: str
    trend: Trend
    models: tuple[Effective, ...]
    missing: tuple[str, ...]
    """Chosen models that lack one of the two accuracies."""
    level: float

    @property
    def defined(self) -> tuple[Effective, ...]:
        """The models that have a ρ."""
        return tuple(one for one in self.models if one.rho is not None)

    @property
    def mean(self) -> float:
        """The mean ρ."""
        if not self.defined:
            raise OptionError(f"no chosen model has an effective robustness on {self.y}")
        return float(np.mean([one.rho for one in self.defined if one.rho is not None]))

    @property
    def mean_interval(self) -> Interval | None:
        """The mean of the ends: models share test images and the trend, so that they err together."""
        return _mean_interval([one.interval for one in self.defined])


def _mean_interval(ends: Sequence[Interval | None]) -> Interval | None:
    """The mean of the ends; None if there is none, or one is not known."""
    known = [one for one in ends if one is not None]
    if not known or len(known) < len(ends):
        return None
    return Interval(float(np.mean([one.low for one in known])), float(np.mean([one.high for one in known])))


def accuracy_intervals(percent: ArrayLike, images: ArrayLike, level: float = 0.995) -> tuple[Floats, Floats]:
    """Clopper and Pearson's intervals of accuracies, in percent; NaN where the number of images is unknown.

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
    """How far some models of a grid lie above its trend on a shift.

    Args:
        grid: from `load_grid`.
        y: the shift.
        x: the setting of the standard accuracy; the shift's own if None.
        select: which models, as `Grid.select` takes them; all if empty.
        scale: of the trend's axes.
        knee: as `fit_shift` takes it.
        level: of the intervals; `COVERS` says what they cover.
        resamples: of the bootstrap of the trend.
        seed: of its draws.
    """
    trend = fit_shift(grid, y, x=x, scale=scale, knee=knee)
    first, second = grid.clean_and_shift(y, x)
    clean, shifted = grid.column(first.name), grid.column(second.name)
    given = ~(np.isnan(clean) | np.isnan(shifted))
    chosen = grid.select(select)
    rows = np.flatnonzero(chosen & given)
    models = measure(
        trend,
        [(grid.models[row], grid.types[row]) for row in rows],
        clean[rows],
        shifted[rows],
        grid.images(first.name)[rows],
        grid.images(second.name)[rows],
        level=level,
        resamples=resamples,
        seed=seed,
    )
    missing = tuple(grid.models[row] for row in np.flatnonzero(chosen & ~given))
    return EffectiveRobustness(first.name, second.name, trend, models, missing, level)


def measure(
    trend: Trend,
    names: Sequence[tuple[str, str]],
    clean: Floats,
    shifted: Floats,
    clean_images: Floats,
    shifted_images: Floats,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Effective, ...]:
    """ρ of models, given as (name, type), against a trend, whatever grid that is from.

    The interval joins three of the same level, of both accuracies and of the trend, by adding the squares
    of their distances from the middle (Zou & Donner, 2008). It ends where ρ must: at -100 and 100 points.
    """
    if not len(clean):
        return ()
    expected = trend.predict(clean)
    rho = shifted - expected
    clean_low, clean_high = accuracy_intervals(clean, clean_images, level)
    low, high = accuracy_intervals(shifted, shifted_images, level)
    below, above = band(trend, clean, level=level, resamples=resamples, seed=seed)
    with np.errstate(invalid="ignore"):
        at_low, at_high = (_predict_bounded(trend, ends, clean) for ends in (clean_low, clean_high))
        fewer, more = np.minimum(at_low, at_high), np.maximum(at_low, at_high)
        down = np.sqrt((shifted - low) ** 2 + (more - expected) ** 2 + (above - expected) ** 2)
        up = np.sqrt((high - shifted) ** 2 + (expected - fewer) ** 2 + (expected - below) ** 2)
    ends = np.stack(
        [np.maximum(rho - down, np.minimum(-100, rho)), np.minimum(rho + up, np.maximum(100, rho))]
    )
    inside = trend.range
    return tuple(
        Effective(
            name,
            kind,
            float(clean[i]),
            float(shifted[i]),
            _known(expected[i]),
            _known(rho[i]),
            None if np.isnan(ends[:, i]).any() else Interval(*map(float, ends[:, i])),
            not inside.low - 1e-9 <= clean[i] <= inside.high + 1e-9,
            (_known(clean_images[i]), _known(shifted_images[i])),
        )
        for i, (name, kind) in enumerate(names)
    )


def _predict_bounded(trend: Trend, ends: Floats, clean: Floats) -> Floats:
    """The trend at the ends of intervals, which must not be 0 or 100 where the scale is infinite.

    The side of a knee is that of the accuracy itself.
    """
    inner = np.clip(ends, 1e-6, 100 - 1e-6)
    if isinstance(trend, Knee):
        left = clean <= trend.pivot
        return np.where(left, trend.left.predict(inner), trend.right.predict(inner))
    return trend.predict(inner)


def _known(value: np.floating) -> float | None:
    return None if np.isnan(value) else float(value)


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
        return _mean_interval([one.interval for one in self.models])


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
