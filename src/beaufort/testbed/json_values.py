"""Results of the testbed as plain values for JSON, without NaN."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.metrics.scales import get_scale
from beaufort.testbed.agreement import AgreementLine
from beaufort.testbed.correlation import Correlation, natural_shifts
from beaufort.testbed.grid import Grid
from beaufort.testbed.plane import Plane
from beaufort.testbed.robustness import (
    COVERS,
    SCATTER_COVERS,
    EffectiveRobustness,
    RelativeRobustness,
    accuracy_intervals,
)
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
    prediction_interval,
    trend_notes,
)


def grid_dict(grid: Grid) -> dict[str, Any]:
    """Return the contents of a grid."""
    return {
        "grid": grid.name,
        "models": len(grid.models),
        "settings": len(grid.settings),
        "missing": int(np.isnan(list(grid.values.values())).sum()),
        "types": {kind: grid.types.count(kind) for kind in sorted(set(grid.types))},
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
    """Return the trend of a shift, or of every natural shift with the reasons why some have none."""
    shifts = [y] if y else natural_shifts(grid)
    if not shifts:
        raise OptionError(f"the grid {grid.name} has no natural shifts; pass a shift")
    fits, failed = [], {}
    for shift in shifts:
        try:
            trend = fit_shift(grid, shift, x=x, scale=scale, knee=knee)
        except OptionError as error:
            if len(shifts) == 1:
                raise
            failed[shift] = str(error)
            continue
        names = [setting.name for setting in grid.clean_and_shift(shift, x)]
        fits.append(_fit_dict(grid, names, trend, resamples, seed))
    return {"grid": grid.name, "fits": fits, "not_fitted": failed}


def _fit_dict(grid: Grid, names: list[str], trend: Trend, resamples: int, seed: int) -> dict[str, Any]:
    """Return a trend; one with a knee has two lines, and no slope of its own."""
    if isinstance(trend, Knee):
        lines = {
            "slope": None,
            "intercept": None,
            "r2": None,
            "n": trend.n,
            "knee": trend.pivot,
            "left": _line_dict(trend.left, resamples, seed),
            "right": _line_dict(trend.right, resamples, seed),
        }
    else:
        lines = {**_line_dict(trend, resamples, seed), "knee": None}
    points = band_points(trend)
    low, high = band(trend, points, resamples=resamples, seed=seed)
    scatter_low, scatter_high = prediction_interval(trend, points)
    return {
        "grid": grid.name,
        "x": names[0],
        "y": names[1],
        "scale": trend.scale,
        **lines,
        "excluded": list(trend.excluded),
        "fit_on": grid.fit_rule,
        "notes": list(trend_notes(trend)),
        "range": asdict(trend.range),
        "band": {
            "level": 0.95,
            "resamples": resamples,
            "seed": seed,
            "x": points.tolist(),
            "fit": trend.predict(points).tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        },
        "scatter": {
            "level": 0.95,
            "x": points.tolist(),
            "low": scatter_low.tolist(),
            "high": scatter_high.tolist(),
        },
    }


def band_points(trend: Trend, count: int = 200) -> NDArray[np.float64]:
    """Return standard accuracies in percent over the fitted range, equally spaced on the transformed axis."""
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
        "slope_interval": asdict(slope),
        "intercept_interval": asdict(intercept),
    }


def rho_dict(grid: Grid, robustness: EffectiveRobustness) -> dict[str, Any]:
    """Return effective robustness: the mean, then each model with 99.5 % intervals of its accuracies."""
    trend, models = robustness.trend, robustness.models
    x_intervals, y_intervals = (
        accuracy_intervals(values, np.array([one.images[axis] for one in models], np.float64))
        for axis, values in enumerate(([one.clean for one in models], [one.shifted for one in models]))
    )
    return {
        "grid": grid.name,
        "x": robustness.x,
        "y": robustness.y,
        "scale": trend.scale,
        "rho": robustness.mean,
        **_low_high(robustness.mean_interval),
        "n": len(robustness.defined),
        "level": robustness.level,
        "interval_covers": COVERS,
        "scatter_covers": SCATTER_COVERS,
        "fit_on": grid.fit_rule,
        "fitted": trend.n,
        "knee": trend.pivot if isinstance(trend, Knee) else None,
        **({"slopes": trend.slopes, "r2": trend.r2} if isinstance(trend, Plane) else {}),
        "notes": list(trend_notes(trend)),
        "models": [
            {
                "model": one.model,
                "type": one.type,
                "x": one.clean,
                **({"x_further": one.further} if one.further else {}),
                "y": one.shifted,
                "x_interval": _bounds(*x_bounds),
                "y_interval": _bounds(*y_bounds),
                "x_n": one.images[0],
                "y_n": one.images[1],
                "expected": one.expected,
                "rho": one.rho,
                **_low_high(one.interval),
                "scatter_low": one.scatter.low if one.scatter else None,
                "scatter_high": one.scatter.high if one.scatter else None,
                "percentile": one.percentile,
                "verdict": one.verdict,
                "extrapolated": one.extrapolated,
                **({} if one.rho is not None else {"why": "no trend at a standard accuracy of 0 or 100"}),
            }
            for one, x_bounds, y_bounds in zip(
                models, zip(*x_intervals, strict=True), zip(*y_intervals, strict=True), strict=True
            )
        ],
        "missing": list(robustness.missing),
    }


def tau_dict(grid: Grid, robustness: RelativeRobustness) -> dict[str, Any]:
    """Return relative robustness: the mean, then each model."""
    return {
        "grid": grid.name,
        "y": robustness.y,
        "tau": robustness.mean,
        **_low_high(robustness.mean_interval),
        "n": len(robustness.models),
        "level": robustness.level,
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
            for one in robustness.models
        ],
        "missing": list(robustness.missing),
    }


def correlation_dict(grid: Grid, one: Correlation, *, points: bool = False) -> dict[str, Any]:
    """Return a correlation, optionally with its points."""
    values: dict[str, Any] = {
        "grid": grid.name,
        "synthetic": one.synthetic,
        "natural": one.natural,
        "pearson": one.pearson,
        **_low_high(one.interval),
        "n": one.n,
    }
    if points:
        values["models"] = [
            {"model": model, "rho_synthetic": x, "rho_natural": y}
            for model, x, y in zip(one.models, one.x, one.y, strict=True)
        ]
    return values


def agreement_dict(one: AgreementLine) -> dict[str, Any]:
    """Return a line of agreements with the estimated accuracies."""
    return {
        "clean": one.clean,
        "shifted": one.shifted,
        "scale": one.line.scale,
        "slope": one.line.slope,
        "intercept": one.line.intercept,
        "r2": one.line.r2,
        "pairs": one.pairs,
        "reliable": one.reliable,
        "images": list(one.images),
        "error": one.error,
        "models": [asdict(model) for model in one.models],
    }


def _low_high(interval: Interval | None) -> dict[str, float | None]:
    return {"low": None, "high": None} if interval is None else asdict(interval)


def _bounds(low: float, high: float) -> dict[str, float] | None:
    return None if np.isnan(low) else {"low": float(low), "high": float(high)}
