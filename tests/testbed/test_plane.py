"""Trends over several standard accuracies."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort._core.errors import OptionError
from beaufort.cli._app import app
from beaufort.metrics.scales import get_scale
from beaufort.testbed import (
    Accuracies,
    Grid,
    Line,
    Plane,
    band,
    effective_robustness,
    fit_plane,
    fit_shift,
    load_grid,
)
from beaufort.testbed.robustness import measure


def test_a_plane_over_one_accuracy_is_a_line(paper: Grid) -> None:
    line = fit_shift(paper, "sketch")
    assert isinstance(line, Line)
    plane = Plane((line.slope,), line.intercept, line.r2, "logit", line.x[:, None], line.y)
    x = np.array([60.0, 75.0, 88.0])
    for edge, expected in zip(band(plane, x[:, None]), band(line, x), strict=True):
        assert edge == pytest.approx(expected, abs=1e-9)
    names = [("", "")] * 3
    shift = Accuracies(np.array([30.0, 20.0, 50.0]), np.array([500.0, 50_889, 1000]), 50_889)
    standard = Accuracies(x, np.array([500.0, 50_000, 50_000]), 50_000)
    for one, other in zip(
        measure(plane, names, standard, shift), measure(line, names, standard, shift), strict=True
    ):
        assert (one.verdict, one.extrapolated) == (other.verdict, other.extrapolated)
        for key in ("rho", "expected", "percentile", "p"):
            assert getattr(one, key) == pytest.approx(getattr(other, key), abs=1e-9)
        for key in ("interval", "scatter"):
            assert vars(getattr(one, key)) == pytest.approx(vars(getattr(other, key)), abs=1e-9)


@pytest.mark.parametrize("scale", ["logit", "probit"])
def test_a_plane_is_the_least_squares_solution(paper: Grid, scale: str) -> None:
    names = ["val", "val-on-imagenet-r-classes"]
    plane = fit_plane(paper, "imagenet-r", names, scale=scale)
    forward = get_scale(scale).forward
    columns = np.stack([forward(paper.column(name)) for name in (*names, "imagenet-r")], axis=1)
    rows = columns[paper.fitted & np.isfinite(columns).all(axis=1)]
    design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    solution, (squares,), *_ = np.linalg.lstsq(design, rows[:, -1], rcond=None)
    assert [plane.intercept, *plane.slopes] == pytest.approx(solution, abs=1e-8)
    assert plane.r2 == pytest.approx(1 - squares / np.sum((rows[:, -1] - rows[:, -1].mean()) ** 2))
    alone = fit_shift(paper, "imagenet-r", scale=scale)
    assert isinstance(alone, Line)
    assert plane.r2 >= alone.r2
    point = np.array([[75.0, 92.0]])
    error = plane.forecast(point).error[0] ** 2
    inverse = np.linalg.inv(design.T @ design)
    at = np.array([1, *forward(point[0])])
    assert error == pytest.approx(squares / (len(rows) - 3) * (1 + at @ inverse @ at))


def test_models_of_other_data_are_judged_by_both_accuracies() -> None:
    """Models of two sources of data look robust by one accuracy alone, and ordinary by both."""
    rng = np.random.default_rng(1)
    first, second = rng.uniform(-1, 2, (2, 60))
    shifted = 0.4 * first + 0.6 * second - 0.5 + rng.normal(0, 0.02, 60)
    inverse = get_scale("logit").inverse
    values = {"a": inverse(first), "b": inverse(second), "c": inverse(shifted)}
    grid = replace(
        load_grid("robustbench-imagenet"),
        models=tuple(map(str, range(60))),
        values=values,
        settings={
            name: replace(load_grid("paper").settings["val"], name=name, images=10**6) for name in values
        },
        types=("STANDARD",) * 60,
        fitted=np.arange(60) > 0,
        groups={},
    )
    alone = effective_robustness(grid, "c", x="a").models
    both = effective_robustness(grid, "c", x=["a", "b"])
    assert max(abs(one.rho or 0) for one in alone) > 5
    assert max(abs(one.rho or 0) for one in both.models) < 2
    assert both.x == "a and b"
    assert list(both.models[0].further) == pytest.approx([values["b"][0]])
    assert sum(one.verdict == "within" for one in both.models) > 50
    with pytest.raises(OptionError, match="determine each other"):
        fit_plane(replace(grid, values={**values, "b": values["a"]}), "c", ["a", "b"])
    with pytest.raises(OptionError, match="at least 4 models"):
        fit_plane(replace(grid, fitted=np.arange(60) < 3), "c", ["a", "b"])


def test_the_command(paper: Grid) -> None:
    trend = ("--trend", "x=val,x=val-on-imagenet-r-classes")
    how = ["testbed", "robustness", "imagenet-r", *trend, "--select", "resnet50_swsl"]
    found = json.loads(CliRunner().invoke(app, [*how, "--json"]).stdout)
    (one,) = effective_robustness(
        paper, "imagenet-r", x=["val", "val-on-imagenet-r-classes"], select=["resnet50_swsl"]
    ).models
    assert found["rho"] == one.rho
    assert len(found["slopes"]) == 2
    assert found["models"][0]["x_further"] == list(one.further)
    assert "val and val-on-imagenet-r-classes" in CliRunner().invoke(app, how).output
    twice = CliRunner().invoke(app, ["testbed", "fit", "sketch", *trend])
    assert "two values for x" in twice.output
