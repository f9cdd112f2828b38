"""Trends: against SciPy, against the original's generator, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import linregress, norm

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.metrics.scales import SCALES, get_scale
from beaufort.testbed import Grid, Knee, Line, band, coefficient_intervals, fit_line, fit_shift


@pytest.mark.parametrize("y", ["imagenetv2", "objectnet", "ytbb-robust", "imagenet-r", "avg_corruptions"])
def test_as_scipy(paper: Grid, y: str) -> None:
    line = fit_shift(paper, y)
    assert isinstance(line, Line)
    a, b = paper.column(paper.clean_of(y).name), paper.column(y)
    rows = paper.fitted & ~np.isnan(a) & ~np.isnan(b)
    found = linregress(logit(a[rows] / 100), logit(b[rows] / 100))
    assert (line.slope, line.intercept, line.r2) == pytest.approx(
        (found.slope, found.intercept, found.rvalue**2)
    )
    assert line.predict([61.0]) == pytest.approx(100 * expit(found.slope * logit(0.61) + found.intercept))


def test_probit_as_scipy(paper: Grid) -> None:
    line = fit_shift(paper, "imagenetv2", scale="probit")
    assert isinstance(line, Line)
    a, b = paper.column("val")[paper.fitted], paper.column("imagenetv2")[paper.fitted]
    found = linregress(norm.ppf(a / 100), norm.ppf(b / 100))
    assert (line.slope, line.intercept) == pytest.approx((found.slope, found.intercept))
    assert line.predict([88.3]) == pytest.approx(
        100 * norm.cdf(found.slope * norm.ppf(0.883) + found.intercept)
    )


@given(st.floats(0.001, 99.999), st.sampled_from(sorted(SCALES)))
def test_scales_there_and_back(percent: float, name: str) -> None:
    scale = get_scale(name)
    assert float(scale.inverse(scale.forward(percent))) == pytest.approx(percent, rel=1e-9)


@pytest.mark.parametrize("name", ["logit", "probit"])
def test_ends_are_infinite(name: str) -> None:
    assert get_scale(name).forward([0.0, 100.0]).tolist() == [-np.inf, np.inf]
    assert np.isnan(get_scale(name).forward([np.nan])).all()
    assert get_scale(name).inverse([-800.0, 800.0]) == pytest.approx([0, 100])


def test_intervals_are_those_of_the_original_generator(paper: Grid) -> None:
    """Models by falling accuracy, the legacy generator, the original's seed: the same ends."""
    for y in ("imagenetv2", "objectnet", "ytbb-robust"):
        line = fit_shift(paper, y)
        assert isinstance(line, Line)
        legacy = np.random.RandomState(720257663)
        fits = []
        for _ in range(1000):
            rows = legacy.choice(line.n, line.n)
            fits.append(np.polyfit(line.x[rows], line.y[rows], 1))
        low = np.quantile(fits, 0.025, axis=0, method="lower")
        high = np.quantile(fits, 0.975, axis=0, method="higher")
        slope, intercept = coefficient_intervals(line)
        assert (slope.low, slope.high) == pytest.approx((low[0], high[0]))
        assert (intercept.low, intercept.high) == pytest.approx((low[1], high[1]))
        other, _ = coefficient_intervals(line, seed=1)
        assert (other.low, other.high) == pytest.approx((low[0], high[0]), abs=0.012)


def test_the_grid_is_in_the_order_of_the_original(paper: Grid) -> None:
    assert (np.diff(paper.column("val")[paper.fitted]) <= 0).all()


@given(st.permutations(range(12)))
def test_the_order_of_models_does_not_matter(order: list[int]) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(40, 90, 12)
    y = x - rng.uniform(5, 15, 12)
    one, other = fit_line(x, y), fit_line(x[order], y[order])
    assert (one.slope, one.intercept, one.r2) == pytest.approx((other.slope, other.intercept, other.r2))


def test_a_band_holds_its_line_and_depends_on_the_seed_alone(paper: Grid) -> None:
    for y in ("imagenetv2", "imagenet-a"):
        trend = fit_shift(paper, y)
        x = np.linspace(60, 97, 50)
        low, high = band(trend, x)
        assert ((low < trend.predict(x)) & (trend.predict(x) < high)).all()
        again, other = band(trend, x), band(trend, x, seed=1)
        assert (again[0] == low).all()
        assert (other[0] != low).any()
        wider = band(trend, x, level=0.99)
        assert ((wider[0] <= low) & (wider[1] >= high)).all()


def test_percentiles_are_draws_rounded_outward() -> None:
    line = fit_line([50, 60, 70, 80], [40, 52, 61, 70])
    drawn = np.sort(line.draws(100)[:, 0])
    slope, _ = coefficient_intervals(line, resamples=100)
    assert slope.low == drawn[int(np.floor(0.025 * 99))]
    assert slope.high == drawn[int(np.ceil(0.975 * 99))]


def test_accuracies_of_0_and_100_are_left_out_and_named() -> None:
    names = ("a", "b", "c", "zero", "full", "none")
    line = fit_line([60, 70, 80, 65, 100, np.nan], [50, 61, 72, 0, 99, 50], names=names)
    assert (line.n, line.excluded) == (3, ("zero", "full"))
    assert fit_line([60, 70, 80, 65], [50, 61, 72, 0], scale="linear").n == 4
    assert np.isnan(line.predict([0.0, 100.0])).all()
    assert np.isfinite(line.predict([1e-3, 99.999])).all()


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        ([60, 70], [50, 60], r"at least 3 models.* 2"),
        ([60, 70, 80], [50, 60, np.nan], r"at least 3 models.* 2"),
        ([60, 70, 80, 90], [50, 60, 0, 100], r"got 2 \(2 more have an accuracy of 0 or 100\)"),
        ([70, 70, 70], [50, 60, 65], "standard accuracy.*3"),
        ([60, 70, 80], [50, 50, 50], "under the shift.*3"),
    ],
)
def test_no_line(x: list[float], y: list[float], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        fit_line(x, y)


def test_a_resample_of_one_model_has_the_line_itself() -> None:
    line = fit_line([50, 60, 70], [40, 52, 61])
    drawn = line.draws(2000)
    assert np.isfinite(drawn).all()
    same = (drawn == (line.slope, line.intercept)).all(axis=1)
    assert 0 < same.sum() < 500


def test_a_knee_is_found_by_the_model_with_accuracy_0() -> None:
    x = np.array([50.0, 55, 60, 65, 70, 75, 80, 85, 90])
    y = np.array([1.0, 1.1, 1.2, 1.3, 0, 4, 9, 17, 30])
    grid = _grid(x, y)
    knee = fit_shift(grid, "shifted", x="clean")
    assert isinstance(knee, Line)  # x is not the shift's own standard accuracy
    from dataclasses import replace

    settings = {**grid.settings, "shifted": replace(grid.settings["shifted"], clean="clean")}
    grid = replace(grid, settings=settings)
    knee = fit_shift(grid, "shifted")
    assert isinstance(knee, Knee)
    assert (knee.pivot, knee.left.n, knee.right.n) == (70, 4, 4)
    assert isinstance(fit_shift(grid, "shifted", knee=None), Line)
    moved = fit_shift(grid, "shifted", knee=62.0)
    assert isinstance(moved, Knee)
    assert (moved.left.n, moved.right.n) == (3, 5)
    with pytest.raises(OptionError, match="left of 52 %"):
        fit_shift(grid, "shifted", knee=52.0)
    with pytest.raises(OptionError, match=r"knee.*'auto'.*None"):
        fit_shift(grid, "shifted", knee="here")


def test_unknown_names(paper: Grid) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'imagenetv2'"):
        fit_shift(paper, "imagenet2")
    with pytest.raises(UnknownNameError, match="unknown scale"):
        fit_shift(paper, "imagenetv2", scale="log")
    with pytest.raises(OptionError, match=r"no standard accuracy.* val\b"):
        fit_shift(paper, "val")


def _grid(x: np.ndarray, y: np.ndarray) -> Grid:
    from beaufort.testbed.load import from_columns

    names = [f"m{i}" for i in range(len(x))]
    return from_columns("made", {"model": names, "clean": list(x), "shifted": list(y)})
