"""Answers as plain values for JSON; nothing here is NaN."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from beaufort._core.errors import OptionError
from beaufort.metrics.scales import get_scale
from beaufort.testbed.correlation import Correlation, natural_shifts
from beaufort.testbed.grid import Grid
from beaufort.testbed.robustness import COVERS, EffectiveRobustness, RelativeRobustness, accuracy_intervals
from beaufort.testbed.trend import (
    RESAMPLES,
    SEED,
    Interval,
    Knee,
    Line,
    Trend,
    band,
    coefficient_intervals,
    fit_shift,
    trend_notes,
)

BAND_POINTS = 200
"""Points of a band, equally spaced on the stretched axis."""


def grid_dict(grid: Grid) -> dict[str, Any]:
    """What a grid holds."""
    kinds = sorted(set(grid.types))
    values = np.array(list(grid.values.values()))
    return {
        "grid": grid.name,
        "models": len(grid.models),
        "settings": len(grid.settings),
        "missing": int(np.isnan(values).sum()),
        "types": {kind: grid.types.count(kind) for kind in kinds},
        "groups": {name: int(mask.sum()) for name, mask in grid.groups.items()},
        "fitted": int(grid.fitted.sum()),
        "fit_on": grid.fit_rule,
        "base_model_pairs": len(grid.pairs),
        "facts": dict(grid.facts),
    }


def fits_dict(
    grid: Grid,
    y: str | None = None,
    *,
    x: str | None = None,
    scale: str = "logit",
    knee: float | str | None = "auto",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Any]:
    """The trend of one shift, which must have one; or of every natural shift, and which have none."""
    shifts = [y] if y else natural_shifts(grid)
    if not shifts:
        raise OptionError(f"the grid {grid.name} has no natural shifts; name a shift with y (--y)")
    fits, failed = [], {}
    for shift in shifts:
        try:
            trend = fit_shift(grid, shift, x=x, scale=scale, knee=knee)
        except OptionError as error:
            if len(shifts) == 1:
                raise
            failed[shift] = str(error)
            continue
        first, second = grid.clean_and_shift(shift, x)
        fits.append(fit_dict(grid, first.name, second.name, trend, resamples=resamples, seed=seed))
    return {"grid": grid.name, "fits": fits, "not_fitted": failed}


def fit_dict(
    grid: Grid, x: str, y: str, trend: Trend, *, resamples: int = RESAMPLES, seed: int = SEED
) -> dict[str, Any]:
    """A trend; of one with a knee the two lines, and no slope of its own."""
    told: dict[str, Any] = {"grid": grid.name, "x": x, "y": y, "scale": trend.scale}
    if isinstance(trend, Knee):
        told |= {"slope": None, "intercept": None, "r2": None, "n": trend.n, "knee": trend.pivot}
        lines = {"left": trend.left, "right": trend.right}
        told |= {side: _line_dict(line, resamples, seed) for side, line in lines.items()}
    else:
        told |= {**_line_dict(trend, resamples, seed), "knee": None}
    points = band_points(trend)
    low, high = band(trend, points, resamples=resamples, seed=seed)
    return told | {
        "excluded": list(trend.excluded),
        "fit_on": grid.fit_rule,
        "notes": list(trend_notes(trend)),
        "range": _low_high(trend.range),
        "band": {
            "level": 0.95,
            "resamples": resamples,
            "seed": seed,
            "x": points.tolist(),
            "fit": trend.predict(points).tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        },
    }


def band_points(trend: Trend, count: int = BAND_POINTS) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Standard accuracies in percent, equally spaced on the stretched axis over what was fitted on."""
    scale = get_scale(trend.scale)
    low, high = scale.forward([trend.range.low, trend.range.high])
    return scale.inverse(np.linspace(low, high, count))


def _line_dict(line: Line, resamples: int, seed: int) -> dict[str, Any]:
    slope, intercept = coefficient_intervals(line, resamples=resamples, seed=seed)
    return {
        "slope": line.slope,
        "intercept": line.intercept,
        "r2": line.r2,
        "n": line.n,
        "slope_interval": _low_high(slope),
        "intercept_interval": _low_high(intercept),
    }


def rho_dict(grid: Grid, found: EffectiveRobustness) -> dict[str, Any]:
    """Effective robustness: the mean first, then each model."""
    return {
        "grid": grid.name,
        "x": found.x,
        "y": found.y,
        "scale": found.trend.scale,
        "rho": found.mean,
        **_low_high(found.mean_interval),
        "n": len(found.defined),
        "level": found.level,
        "interval_covers": COVERS,
        "fit_on": grid.fit_rule,
        "fitted": found.trend.n,
        "knee": found.trend.pivot if isinstance(found.trend, Knee) else None,
        "notes": list(trend_notes(found.trend)),
        "models": _rho_rows(found),
        "missing": list(found.missing),
    }


def _rho_rows(found: EffectiveRobustness) -> list[dict[str, Any]]:
    """Each model, with the exact 99.5 % intervals of its two accuracies."""
    columns: list[Any] = []
    for place, values in enumerate(
        ([one.clean for one in found.models], [one.shifted for one in found.models])
    ):
        sizes = np.array([one.images[place] for one in found.models], np.float64)
        columns.append(np.stack(accuracy_intervals(values, sizes), axis=1) if values else [])
    return [
        {
            "model": one.model,
            "type": one.type,
            "x": one.clean,
            "y": one.shifted,
            "x_interval": _ends(x_ends),
            "y_interval": _ends(y_ends),
            "x_n": one.images[0],
            "y_n": one.images[1],
            "expected": one.expected,
            "rho": one.rho,
            **_low_high(one.interval),
            "extrapolated": one.extrapolated,
            **({} if one.rho is not None else {"why": "a standard accuracy of 0 or 100 has no trend"}),
        }
        for one, x_ends, y_ends in zip(found.models, *columns, strict=True)
    ]


def _ends(ends: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float] | None:
    return None if np.isnan(ends).any() else {"low": float(ends[0]), "high": float(ends[1])}


def tau_dict(grid: Grid, found: RelativeRobustness) -> dict[str, Any]:
    """Relative robustness: the mean first, then each model."""
    return {
        "grid": grid.name,
        "y": found.y,
        "tau": found.mean,
        **_low_high(found.mean_interval),
        "n": len(found.models),
        "level": found.level,
        "models": [
            {
                "model": one.pair.model,
                "base": one.pair.base,
                "intervention": one.pair.intervention,
                "provenance": one.pair.provenance,
                "y": one.shifted,
                "base_y": one.base_shifted,
                "tau": one.tau,
                **_low_high(one.interval),
            }
            for one in found.models
        ],
        "missing": list(found.missing),
    }


def correlation_dict(grid: Grid, one: Correlation, *, points: bool = False) -> dict[str, Any]:
    """A correlation, with its points if asked for."""
    told: dict[str, Any] = {
        "grid": grid.name,
        "synthetic": one.synthetic,
        "natural": one.natural,
        "pearson": one.pearson,
        **_low_high(one.interval),
        "n": one.n,
    }
    if points:
        told["models"] = [
            {"model": model, "rho_synthetic": x, "rho_natural": y}
            for model, x, y in zip(one.models, one.x, one.y, strict=True)
        ]
    return told


def _low_high(interval: Interval | None) -> dict[str, float | None]:
    return {"low": None, "high": None} if interval is None else asdict(interval)
