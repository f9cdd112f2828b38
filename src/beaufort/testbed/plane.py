"""Trends over several standard accuracies, for models that were not all trained on the same data.

A model trained on other data than ImageNet may look robust only because its accuracy on ImageNet is low. With
a test set of each distribution, the accuracy under a shift is predicted from all of them (Shi et al., 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_unique
from beaufort.metrics.scales import get_scale
from beaufort.testbed.grid import Grid
from beaufort.testbed.trend import RESAMPLES, SEED, Forecast, Interval, draw_counts

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Plane:
    """A linear function of several standard accuracies on transformed axes, fitted by least squares.

    Its methods are those of a `Line`, for accuracies in percent of shape `(models, standard accuracies)`.
    """

    slopes: tuple[float, ...]
    """One for each standard accuracy."""
    intercept: float
    r2: float
    """Squared multiple correlation on the transformed axes."""
    scale: str
    x: Floats = field(repr=False)
    """Standard accuracies of the fitted models on the transformed axis, `(models, standard accuracies)`."""
    y: Floats = field(repr=False)
    excluded: tuple[str, ...] = ()
    """Models left out because an accuracy of 0 or 100 is infinite on this scale."""

    @property
    def n(self) -> int:
        """Number of fitted models."""
        return len(self.x)

    @property
    def ranges(self) -> list[Interval]:
        """Range of each standard accuracy of the fitted models, in percent."""
        inverse = get_scale(self.scale).inverse
        ends = zip(inverse(self.x.min(axis=0)), inverse(self.x.max(axis=0)), strict=True)
        return [Interval(float(low), float(high)) for low, high in ends]

    @property
    def sides(self) -> list[tuple[str, Plane]]:
        return [("", self)]

    def _forward(self, percent: ArrayLike) -> Floats:
        z = get_scale(self.scale).forward(percent)
        return np.where(np.isfinite(z), z, np.nan)

    def predict(self, percent: ArrayLike) -> Floats:
        """Return accuracies under the shift, in percent."""
        z = self._forward(percent) @ np.array(self.slopes) + self.intercept
        return get_scale(self.scale).inverse(z)

    def predict_draws(self, percent: ArrayLike, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
        """Return predictions of bootstrap planes, on the transformed axis, `(resamples, len(percent))`."""
        counts = draw_counts(self.n, resamples, seed)
        middle = self.x.mean(axis=0)
        design = np.column_stack([np.ones(self.n), self.x - middle])
        squares = np.einsum("bn,ni,nj->bij", counts, design, design, optimize=True)
        sums = counts @ (design * self.y[:, None])
        drawn = np.einsum("bij,bj->bi", np.linalg.pinv(squares), sums)
        points = self._forward(percent) - middle
        predicted: Floats = drawn[:, :1] + drawn[:, 1:] @ points.T
        return predicted

    def forecast(self, percent: ArrayLike) -> Forecast:
        """Return the distribution for a further model at each point."""
        middle, freedom = self.x.mean(axis=0), self.n - 1 - len(self.slopes)
        points = self._forward(percent)
        center = points @ np.array(self.slopes) + self.intercept
        residuals = self.y - self.x @ np.array(self.slopes) - self.intercept
        inverse = np.linalg.inv((self.x - middle).T @ (self.x - middle))
        off = points - middle
        leverage = 1 / self.n + np.einsum("mi,ij,mj->m", off, inverse, off)
        variance = float(residuals @ residuals) / freedom
        return Forecast(center, np.sqrt(variance * (1 + leverage)), np.full(len(center), float(freedom)))


def fit_plane(grid: Grid, y: str, x: Sequence[str], *, scale: str = "logit") -> Plane:
    """Fit the accuracies of a grid's standard models under a shift on several standard accuracies.

    Args:
        grid: from `load_grid`.
        y: the shift.
        x: settings of the standard accuracies.
        scale: `logit`, `probit` or `linear`.
    """
    shift, cleans = grid.setting(y), [grid.setting(name) for name in x]
    validate_unique("settings of standard accuracies", [*(one.name for one in cleans), shift.name])
    known = get_scale(scale)
    columns = np.stack([known.forward(grid.column(one.name)) for one in (*cleans, shift)], axis=1)
    given = grid.fitted & ~np.isnan(columns).any(axis=1)
    finite = given & np.isfinite(columns).all(axis=1)
    points, values = columns[finite, :-1], columns[finite, -1]
    what = f"the fit of {shift.name} on {', '.join(one.name for one in cleans)}"
    if len(points) < len(cleans) + 2:
        raise OptionError(
            f"{what} needs at least {len(cleans) + 2} models with all accuracies, got {len(points)}"
        )
    centered, target = points - points.mean(axis=0), values - values.mean()
    if np.linalg.matrix_rank(centered, tol=1e-9 * len(points)) < len(cleans) or not np.ptp(values):
        raise OptionError(f"{what} needs accuracies that differ and do not determine each other")
    slopes, *_ = np.linalg.lstsq(centered, target, rcond=None)
    residuals = target - centered @ slopes
    return Plane(
        tuple(map(float, slopes)),
        float(values.mean() - points.mean(axis=0) @ slopes),
        1 - float(residuals @ residuals) / float(target @ target),
        scale,
        points,
        values,
        tuple(grid.models[row] for row in np.flatnonzero(given & ~finite)),
    )
