"""Where a model of your own stands among the models of a grid: `place`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import erfc, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.text import printable
from beaufort.metrics.scales import get_scale
from beaufort.metrics.stats import holm
from beaufort.testbed.grid import Grid, Setting
from beaufort.testbed.load import load_grid
from beaufort.testbed.own_scores import Score, read_scores, scores_of_store
from beaufort.testbed.robustness import COVERS, Effective, measure
from beaufort.testbed.trend import RESAMPLES, SEED, Trend, few_models, fit_shift

Floats = NDArray[np.float64]

NEAR_POINTS = 1.0
"""Models within so many points of clean accuracy are similar."""
NEAR_FEWEST = 20
"""If fewer than so many are, these nearest are taken instead."""
NEIGHBORS = 5
ALPHA = 0.05


@dataclass(frozen=True)
class Neighbor:
    """A model of the grid that is close by."""

    model: str
    type: str
    clean: float
    shifted: float
    rho: float


@dataclass(frozen=True)
class Standing:
    """Where a model stands on one shift."""

    x: str
    y: str
    robustness: Effective
    p: float | None
    """Of ρ = 0, from the interval as if it were a normal one."""
    p_holm: float | None
    """Corrected for the number of shifts."""
    percentile: float | None
    """Percent of the similar models whose ρ is lower; ties count half. None if there is no ρ."""
    similar: int
    """Models of similar clean accuracy."""
    similar_range: tuple[float, float]
    """Their clean accuracies."""
    neighbors: tuple[Neighbor, ...]
    """The nearest on the stretched axes."""
    scatter: float
    """Root mean square of ρ over the models that the trend was fitted on, in points."""

    @property
    def verdict(self) -> str:
        """`above`, `below` or `not told apart from` the trend, at 5 % over all shifts together."""
        rho = self.robustness.rho
        if rho is None or self.p_holm is None:
            return "unknown"
        if self.p_holm >= ALPHA:
            return "not told apart from"
        return "above" if rho > 0 else "below"

    def __str__(self) -> str:
        own = self.robustness
        low, high = self.similar_range
        rho = "rho is not defined at this standard accuracy"
        if own.rho is not None:
            ends = f" [{own.interval.low:+z.2f}, {own.interval.high:+z.2f}]" if own.interval else ""
            rho = f"rho {own.rho:+z.2f}{ends} points"
            if self.p_holm is None:
                rho += "; whether that is more than chance is not known without n"
            else:
                p = f"p = {self.p_holm:.2g}" if self.p_holm > 1e-16 else "p < 1e-16"
                rho += f": {self.verdict} the trend ({p}, Holm)"
        beyond = "; outside of the accuracies that were fitted on" if own.extrapolated else ""
        scatter = f"the models fitted on scatter by {self.scatter:.2f} points"
        if self.percentile is not None:
            similar = f"{self.similar} models with {low:.2f} to {high:.2f} % there"
            scatter = f"above {_percent(self.percentile)} % of the {similar}; {scatter}"
        names = (f"{n.model} ({n.clean:.2f}, {n.shifted:.2f}, rho {n.rho:+z.2f})" for n in self.neighbors)
        lines = (
            f"{self.y}: {own.shifted:.2f} % at {own.clean:.2f} % on {self.x}{beyond}",
            f"  {rho}",
            f"  {scatter}",
            f"  nearest: {'; '.join(names)}",
        )
        return "\n".join(map(printable, lines))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        own, (low, high) = self.robustness, self.similar_range
        return {
            "x": self.x,
            "y": self.y,
            "accuracy_x": own.clean,
            "accuracy_y": own.shifted,
            "expected": own.expected,
            "rho": own.rho,
            "low": own.interval.low if own.interval else None,
            "high": own.interval.high if own.interval else None,
            "p": self.p,
            "p_holm": self.p_holm,
            "verdict": self.verdict,
            "extrapolated": own.extrapolated,
            "percentile": self.percentile,
            "scatter": self.scatter,
            "similar": {"n": self.similar, "low": low, "high": high},
            "neighbors": [vars(near) for near in self.neighbors],
        }


@dataclass(frozen=True)
class Placement:
    """Where a model stands on every shift that its scores cover; `print` shows it as text."""

    grid: str
    fit_rule: str
    """Which models of the grid the trends are fitted on."""
    standings: tuple[Standing, ...]
    skipped: tuple[tuple[str, str], ...]
    """Scores that could not be placed, and why."""
    warnings: tuple[str, ...]
    level: float

    def __str__(self) -> str:
        lines = [f"{one}\n" for one in self.standings]
        lines += [f"not placed: {printable(name)}: {printable(why)}" for name, why in self.skipped]
        if self.standings:
            lines.append(f"trend of the grid {printable(self.grid)}, fitted on {self.fit_rule}")
        if any(one.robustness.interval for one in self.standings):
            lines.append(f"{100 * self.level:g} % intervals, which cover {COVERS}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "grid": self.grid,
            "level": self.level,
            "interval_covers": COVERS,
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
    x: str | None = None,
    scale: str = "logit",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Placement:
    """Place a model among those of a grid, on each shift for which it has both accuracies.

    Args:
        scores: accuracies in percent by setting, as scores, a mapping or a CSV file; or a result store.
        grid: the reference models, as `load_grid` takes them.
        model: which model of a store.
        x: the setting of the standard accuracy, for all shifts; each one's own if None.
        scale: axes of the fit: logit, probit or linear.
        level: confidence level of the intervals.
        resamples: resamples of the bootstrap of the trend.
        seed: seed of the bootstrap.

    >>> found = place({"val": 80.1, "imagenetv2": 72.0})
    >>> found.standings[0].verdict
    'above'
    """
    grid = grid if isinstance(grid, Grid) else load_grid(grid)
    if isinstance(scores, Mapping):
        scores = [Score(name, accuracy) for name, accuracy in scores.items()]
    elif isinstance(scores, str | Path):
        is_file = Path(scores).suffix.lower() == ".csv" or Path(scores).is_file()
        scores = read_scores(scores) if is_file else scores_of_store(scores, model, grid)
    own, skipped, warnings = _matched(grid, scores)
    given = None if x is None else grid.setting(x).name
    standings = []
    for name, (setting, score) in own.items():
        usual = setting.clean if given is None or setting.kind == "standard" else given
        if usual is None or name == usual:
            continue
        if usual not in own:
            skipped.append((name, f"its standard accuracy {usual} is not among the scores"))
            continue
        try:
            trend = fit_shift(grid, name, x=given, scale=scale)
        except OptionError as error:
            skipped.append((name, str(error)))
            continue
        warnings.extend(f"{name}: {note}" for note in few_models(trend))
        standings.append(_standing(grid, own[usual], (setting, score), trend, level, resamples, seed))
    if not standings and not skipped:
        more = "; x names the standard accuracy" if given is None and len(own) > 1 else ""
        raise OptionError(
            f"scores must have a shift of the grid {grid.name} and its standard accuracy, got "
            f"{', '.join(own) or 'none of its settings'}{more}"
        )
    places = iter(holm([one.p for one in standings if one.p is not None]))
    standings = [one if one.p is None else replace(one, p_holm=float(next(places))) for one in standings]
    return Placement(grid.name, grid.fit_rule, tuple(standings), tuple(skipped), tuple(warnings), level)


Scored = tuple[Setting, Score]
Own = dict[str, Scored]


def _matched(grid: Grid, scores: Sequence[Score]) -> tuple[Own, list[tuple[str, str]], list[str]]:
    """Scores by the grid's settings, means of settings included; what is not in the grid; warnings."""
    own: Own = {}
    skipped = []
    told: dict[str, list[str]] = {}
    """Settings by what is different about their scores."""
    for score in scores:
        try:
            setting = grid.setting(score.setting)
        except BeaufortError as error:
            skipped.append((score.setting, str(error)))
            continue
        if setting.name in own:
            raise OptionError(f"settings must be distinct, got {setting.name!r} twice")
        own[setting.name] = (setting, score)
        for difference in _differences(setting, score):
            told.setdefault(difference, []).append(setting.name)
    for name, setting in grid.aggregates.items():
        if name not in own and all(member in own for member in setting.members):
            members = [own[member][1] for member in setting.members]
            sizes = [one.images for one in members if one.images is not None]
            mean = float(np.mean([one.accuracy for one in members]))
            own[name] = (setting, Score(name, mean, min(sizes, default=None)))
    warnings = [f"{_some(names)}: {difference}" for difference, names in told.items()]
    if own and all(score.accuracy <= 1 for _, score in own.values()):
        warnings.append("every accuracy is at most 1; they are read as percentages, not as shares")
    if caveat := grid.facts.get("caveat"):
        warnings.append(f"the grid {grid.name}: {caveat}")
    return own, skipped, warnings


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _differences(setting: Setting, score: Score) -> list[str]:
    found = list(score.differences)
    words = {"subset": f"among the classes of {setting.classes} alone", "all": "among all classes"}
    if score.convention is None and setting.classes:
        found.append(f"the reference answers {words['subset']}; the scores do not say their convention")
    elif score.convention is not None and score.convention != setting.convention:
        found.append(
            f"the reference answers {words[setting.convention]}, the scores say {score.convention!r}: the "
            "two are not comparable"
        )
    if score.preprocessing not in {None, "own"}:
        found.append(
            f"the reference uses each model's own resize and crop, the scores say {score.preprocessing!r}"
        )
    larger = setting.images is not None and (score.images or 0) > setting.images
    if larger and not setting.members:
        found.append(f"n is {score.images:,}, the reference's set has {setting.images:,} images")
    return found


def _standing(
    grid: Grid,
    x_scored: Scored,
    y_scored: Scored,
    trend: Trend,
    level: float,
    resamples: int,
    seed: int,
) -> Standing:
    (reference, clean), (setting, shifted) = x_scored, y_scored
    sizes = [float(score.images or one.images or np.nan) for one, score in (x_scored, y_scored)]
    (found,) = measure(
        trend,
        [("", "")],
        np.array([clean.accuracy]),
        np.array([shifted.accuracy]),
        *(np.array([size]) for size in sizes),
        level=level,
        resamples=resamples,
        seed=seed,
    )
    x, y = grid.column(reference.name), grid.column(setting.name)
    rows = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    rho = y[rows] - trend.predict(x[rows])
    rows, rho = rows[~np.isnan(rho)], rho[~np.isnan(rho)]
    left_out = np.array([grid.models[row] in trend.excluded for row in rows])
    near = _similar(x[rows], clean.accuracy)
    nearest = _nearest(trend.scale, x[rows], y[rows], clean.accuracy, shifted.accuracy)
    return Standing(
        reference.name,
        setting.name,
        found,
        _p_value(found, level),
        None,
        None if found.rho is None else _percent_below(rho[near], found.rho),
        len(near),
        (float(x[rows][near].min()), float(x[rows][near].max())),
        tuple(
            Neighbor(
                grid.models[rows[i]],
                grid.types[rows[i]],
                float(x[rows[i]]),
                float(y[rows[i]]),
                float(rho[i]),
            )
            for i in nearest
        ),
        float(np.sqrt(np.mean(rho[grid.fitted[rows] & ~left_out] ** 2))),
    )


def _percent(value: float) -> str:
    """A whole percentage; 0 and 100 only if it is none or all."""
    if value in (0, 100) or 0.5 < value < 99.5:
        return f"{value:.0f}"
    return f"{min(max(value, 0.1), 99.9):.1f}"


def _percent_below(values: Floats, own: float) -> float:
    return 100 * float(np.mean((values < own) + 0.5 * (values == own)))


def _similar(clean: Floats, own: float) -> NDArray[np.intp]:
    distance = np.abs(clean - own)
    near = np.flatnonzero(distance <= NEAR_POINTS)
    return near if len(near) >= NEAR_FEWEST else np.argsort(distance, kind="stable")[:NEAR_FEWEST]


def _nearest(scale: str, x: Floats, y: Floats, clean: float, shifted: float) -> NDArray[np.intp]:
    """By distance on the stretched axes, where 0 and 100 are taken as close to that."""
    stretch = get_scale(scale).forward
    dx, dy = (
        stretch(np.clip(column, 0.01, 99.99)) - stretch(np.clip([own], 0.01, 99.99))
        for column, own in ((x, clean), (y, shifted))
    )
    return np.argsort(np.hypot(dx, dy), kind="stable")[:NEIGHBORS]


def _p_value(found: Effective, level: float) -> float | None:
    if found.rho is None or found.interval is None:
        return None
    reach = found.rho - found.interval.low if found.rho > 0 else found.interval.high - found.rho
    error = reach / NormalDist().inv_cdf((1 + level) / 2)
    return erfc(abs(found.rho) / error / sqrt(2))  # exact where it is tiny
