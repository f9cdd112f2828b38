"""The place of a model among the models of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.text import printable
from beaufort.metrics.scales import get_scale
from beaufort.metrics.stats import holm
from beaufort.testbed.grid import Grid, Score, Setting
from beaufort.testbed.load import load_grid
from beaufort.testbed.own_scores import difference_warnings, read_scores
from beaufort.testbed.robustness import COVERS, SCATTER_COVERS, Accuracies, Effective, measure
from beaufort.testbed.trend import RESAMPLES, SEED, Interval, Trend, few_models, fit_shift

Floats = NDArray[np.float64]

NEAR_POINTS = 1.0
"""Models whose clean accuracies differ by at most so many points are similar."""
MIN_NEAR = 20
"""If fewer models are similar, the nearest ones are used instead."""
NEIGHBORS = 5
ALPHA = 0.05


@dataclass(frozen=True)
class Neighbor:
    """A model of the grid with similar accuracies."""

    model: str
    type: str
    clean: float
    shifted: float
    rho: float


@dataclass(frozen=True)
class Standing:
    """The place of a model on one shift."""

    x: str
    y: str
    robustness: Effective
    p_holm: float | None
    """p-value of the robustness, corrected for the number of shifts."""
    percentile: float | None
    """Percentage of similar models with lower ρ, counting half of the ties; None if ρ is undefined."""
    similar: int
    """Number of models with similar clean accuracy."""
    similar_range: tuple[float, float]
    """Lowest and highest of their clean accuracies."""
    neighbors: tuple[Neighbor, ...]
    """Nearest models on the transformed axes."""

    @property
    def verdict(self) -> str:
        """`above`, `below` or `within` the scatter of the fitted models, at 5 % over all shifts together.

        `unknown` if a number of images is unknown, or ρ undefined.
        """
        rho = self.robustness.rho
        if rho is None or self.p_holm is None:
            return "unknown"
        if self.p_holm >= ALPHA:
            return "within"
        return "above" if rho > 0 else "below"

    def __str__(self) -> str:
        own, (low, high) = self.robustness, self.similar_range
        x_n, y_n = (f"n = {n:,.0f}" if n else "n unknown" for n in own.images)
        beyond = "; extrapolated beyond the accuracies of the fitted models" if own.extrapolated else ""
        lines = [f"{self.y}: {own.shifted:.2f} % ({y_n}) at {own.clean:.2f} % ({x_n}) on {self.x}{beyond}"]
        if own.rho is None:
            lines.append("  rho is undefined at this standard accuracy")
        elif own.interval is None or own.scatter is None or own.percentile is None or self.p_holm is None:
            lines.append(f"  rho {own.rho:+z.2f} points; no interval and no verdict, because n is unknown")
        else:
            p = f"p = {self.p_holm:.2g}" if self.p_holm > 1e-16 else "p < 1e-16"
            lines.append(f"  rho {own.rho:+z.2f} points, measurement interval {_ends(own.interval)}")
            lines.append(
                f"  {self.verdict} the scatter of the fitted models, {_ends(own.scatter)}: "
                f"percentile {min(max(own.percentile, 0.1), 99.9):.1f} ({p}, Holm)"
            )
        if self.percentile is not None:
            lines.append(
                f"  above {_percent(self.percentile)} % of the {self.similar} models of any type with a "
                f"standard accuracy of {low:.2f} to {high:.2f} %"
            )
        names = (f"{n.model} ({n.clean:.2f}, {n.shifted:.2f}, rho {n.rho:+z.2f})" for n in self.neighbors)
        lines.append(f"  nearest: {'; '.join(names)}")
        return "\n".join(map(printable, lines))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        own, (low, high) = self.robustness, self.similar_range
        return {
            "x": self.x,
            "y": self.y,
            "accuracy_x": own.clean,
            "accuracy_y": own.shifted,
            "n_x": own.images[0],
            "n_y": own.images[1],
            "expected": own.expected,
            "rho": own.rho,
            "low": own.interval.low if own.interval else None,
            "high": own.interval.high if own.interval else None,
            "scatter_low": own.scatter.low if own.scatter else None,
            "scatter_high": own.scatter.high if own.scatter else None,
            "percentile": own.percentile,
            "p": own.p,
            "p_holm": self.p_holm,
            "verdict": self.verdict,
            "extrapolated": own.extrapolated,
            "similar": {"n": self.similar, "low": low, "high": high, "percentile": self.percentile},
            "neighbors": [vars(near) for near in self.neighbors],
        }


@dataclass(frozen=True)
class Placement:
    """The place of a model on every shift that its scores cover; `print` shows it as text."""

    grid: str
    fit_rule: str
    """Models of the grid that the trends are fitted on."""
    standings: tuple[Standing, ...]
    skipped: tuple[tuple[str, str], ...]
    """Scores that could not be placed, with the reason."""
    warnings: tuple[str, ...]
    level: float

    def __str__(self) -> str:
        lines = [f"{one}\n" for one in self.standings]
        lines += [f"not placed: {printable(name)}: {printable(why)}" for name, why in self.skipped]
        if self.standings:
            lines.append(f"trend of the grid {printable(self.grid)}, fitted on {self.fit_rule}")
        if any(one.robustness.interval for one in self.standings):
            lines.append(f"{100 * self.level:g} % measurement intervals cover {COVERS}")
            lines.append(f"{100 * self.level:g} % prediction intervals (scatter) cover {SCATTER_COVERS}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "grid": self.grid,
            "level": self.level,
            "interval_covers": COVERS,
            "scatter_covers": SCATTER_COVERS,
            "shifts": [one.as_dict() for one in self.standings],
            "skipped": [{"setting": name, "why": why} for name, why in self.skipped],
            "warnings": list(self.warnings),
            "fit_on": self.fit_rule,
        }


def place(
    scores: Sequence[Score] | Mapping[str, float] | str | Path,
    grid: Grid | str | Path = "paper",
    *,
    model: str | None = None,
    suite: str | None = None,
    x: str | None = None,
    scale: str = "logit",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Placement:
    """Place a model among those of a grid, on each shift for which it has both accuracies.

    Args:
        scores: accuracies in percent by setting, as scores, a mapping or a CSV file; or a result store.
            Without numbers of images, as in a mapping, there are neither intervals nor verdicts.
        grid: the reference models, as for `load_grid`.
        model: model of the store; or of the grid whose scores these are, which is not compared with itself.
        suite: suite of the store; all by default.
        x: setting of the standard accuracy for all shifts; each one's own by default.
        scale: as for `fit_shift`.
        level: confidence level of the intervals.
        resamples: bootstrap resamples of the trend.
        seed: seed of the bootstrap.

    >>> placement = place([Score("val", 80.1, 50_000), Score("imagenetv2", 72.0, 10_000)])
    >>> placement.standings[0].verdict
    'above'
    """
    grid = grid if isinstance(grid, Grid) else load_grid(grid)
    given_scores, incomplete = _scores(scores, model, suite, grid)
    own, skipped, warnings = _matched(grid, given_scores)
    skipped += incomplete
    given = None if x is None else grid.setting(x).name
    standings = []
    for name, (setting, score) in own.items():
        clean = setting.clean if given is None or setting.kind == "standard" else given
        if clean is None or name == clean:
            continue
        if clean not in own:
            skipped.append((name, f"its standard accuracy {clean} is not among the scores"))
            continue
        try:
            trend = fit_shift(grid, name, x=given, scale=scale)
        except OptionError as error:
            skipped.append((name, str(error)))
            continue
        warnings.extend(f"{name}: {note}" for note in few_models(trend))
        standings.append(_standing(grid, model, own[clean], (setting, score), trend, level, resamples, seed))
    if not standings and not skipped:
        more = "; pass the setting of the standard accuracy as x" if given is None and len(own) > 1 else ""
        raise OptionError(
            f"scores must have a shift of the grid {grid.name} and its standard accuracy, got "
            f"{', '.join(own) or 'none of its settings'}{more}"
        )
    tested = [one.robustness.p for one in standings if one.robustness.p is not None]
    corrected = iter(holm(tested))
    standings = [
        one if one.robustness.p is None else replace(one, p_holm=float(next(corrected))) for one in standings
    ]
    return Placement(grid.name, grid.fit_rule, tuple(standings), tuple(skipped), tuple(warnings), level)


def _scores(
    scores: Sequence[Score] | Mapping[str, float] | str | Path,
    model: str | None,
    suite: str | None,
    grid: Grid,
) -> tuple[Sequence[Score], Sequence[tuple[str, str]]]:
    """Return scores, and suites of a store that could not be read, with the reason."""
    if isinstance(scores, Mapping):
        return [Score(name, accuracy) for name, accuracy in scores.items()], ()
    if not isinstance(scores, str | Path):
        return scores, ()
    if Path(scores).suffix.lower() == ".csv" or Path(scores).is_file():
        return read_scores(scores), ()
    from beaufort.testbed.stored_accuracies import scores_of_store

    return scores_of_store(scores, model, grid, suite)


Scored = tuple[Setting, Score]


def _matched(
    grid: Grid, scores: Sequence[Score]
) -> tuple[dict[str, Scored], list[tuple[str, str]], list[str]]:
    """Return scores by setting of the grid, with means over them; scores not in the grid; and warnings."""
    own: dict[str, Scored] = {}
    skipped = []
    for score in scores:
        try:
            setting = grid.setting(score.setting)
        except BeaufortError as error:
            skipped.append((score.setting, str(error)))
            continue
        if setting.name in own:
            raise OptionError(f"settings must be distinct, got {setting.name!r} twice")
        own[setting.name] = (setting, score)
    warnings = difference_warnings(own.values())
    for name, setting in grid.aggregates.items():
        if name not in own and all(member in own for member in setting.members):
            members = [own[member][1] for member in setting.members]
            sizes = [one.images for one in members if one.images is not None]
            mean = float(np.mean([one.accuracy for one in members]))
            own[name] = (setting, Score(name, mean, min(sizes, default=None)))
    stated = [score.accuracy for _, score in own.values() if not score.measured]
    if stated and 0 < max(stated) <= 1:
        warnings.append("every accuracy is at most 1; accuracies are read as percentages, not as fractions")
    if caveat := grid.facts.get("caveat"):
        warnings.append(f"the grid {grid.name}: {caveat}")
    return own, skipped, warnings


def _standing(
    grid: Grid,
    model: str | None,
    x_scored: Scored,
    y_scored: Scored,
    trend: Trend,
    level: float,
    resamples: int,
    seed: int,
) -> Standing:
    (reference, clean), (setting, shifted) = x_scored, y_scored
    standard, shift = (
        Accuracies(
            np.array([score.accuracy]),
            np.array([score.images or np.nan], np.float64),
            np.inf if one.images is None else one.images,
        )
        for one, score in (x_scored, y_scored)
    )
    (robustness,) = measure(trend, [("", "")], standard, shift, level=level, resamples=resamples, seed=seed)
    x, y = grid.column(reference.name), grid.column(setting.name)
    rho = y - trend.predict(x)
    rows = np.flatnonzero(~np.isnan(rho))
    rows = rows[rows != grid.row_of.get(model or "", -1)]
    x, y, rho = x[rows], y[rows], rho[rows]
    distance = np.abs(x - clean.accuracy)
    near = np.flatnonzero(distance <= NEAR_POINTS)
    if len(near) < MIN_NEAR:
        near = np.argsort(distance, kind="stable")[:MIN_NEAR]
    own = robustness.rho
    percentile = None
    if own is not None:
        percentile = 100 * float(np.mean((rho[near] < own) + 0.5 * (rho[near] == own)))
    return Standing(
        reference.name,
        setting.name,
        robustness,
        None,
        percentile,
        len(near),
        (float(x[near].min()), float(x[near].max())),
        tuple(
            Neighbor(grid.models[rows[i]], grid.types[rows[i]], float(x[i]), float(y[i]), float(rho[i]))
            for i in _nearest(trend.scale, (x, clean.accuracy), (y, shifted.accuracy))
        ),
    )


def _nearest(scale: str, *axes: tuple[Floats, float]) -> NDArray[np.intp]:
    """Return the nearest models on the transformed axes, where 0 and 100 are moved to finite values."""
    transform = get_scale(scale).forward
    dx, dy = (
        transform(np.clip(column, 0.01, 99.99)) - transform(np.clip([own], 0.01, 99.99))
        for column, own in axes
    )
    return np.argsort(np.hypot(dx, dy), kind="stable")[:NEIGHBORS]


def _percent(value: float) -> str:
    """Format a percentage as an integer; 0 and 100 appear only if exact."""
    if value in (0, 100) or 0.5 < value < 99.5:
        return f"{value:.0f}"
    return f"{min(max(value, 0.1), 99.9):.1f}"


def _ends(interval: Interval) -> str:
    return f"[{interval.low:+z.2f}, {interval.high:+z.2f}]"
