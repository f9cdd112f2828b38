"""ρ, τ and their intervals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta

from beaufort._core.errors import OptionError
from beaufort.metrics.scales import get_scale
from beaufort.testbed import (
    Accuracies,
    Grid,
    Pair,
    accuracy_intervals,
    correlate,
    correlation_table,
    effective_robustness,
    fit_line,
    fit_shift,
    load_grid,
    prediction_interval,
    relative_robustness,
)
from beaufort.testbed.correlation import natural_shifts, synthetic_shifts
from beaufort.testbed.natural_shift_study import since_2020
from beaufort.testbed.robustness import measure
from beaufort.testbed.trend import trend_notes


def test_points_have_exact_intervals(paper: Grid) -> None:
    rows = [paper.row_of[name] for name in ("resnet50", "alexnet", "efficientnet-l2-noisystudent")]
    for setting in ("val", "imagenet-a", "ytbb-robust_pm0"):
        p, n = paper.column(setting)[rows], paper.images(setting)[rows]
        low, high = accuracy_intervals(p, n)
        k = p * n / 100
        with np.errstate(invalid="ignore"):
            expected = np.where(k == 0, 0, 100 * beta.ppf(0.0025, k, n - k + 1))
        assert low == pytest.approx(expected, abs=1e-6)
        assert high == pytest.approx(100 * beta.ppf(0.9975, k + 1, n - k), abs=1e-6)


def test_the_numbers_of_images(paper: Grid) -> None:
    assert set(paper.images("ytbb-robust_pm0")) == {2030}
    assert set(paper.images("imagenet-sketch")) == {50_889}
    sizes = paper.images("imagenet-c.fog.3_on-disk")
    few = [paper.models[row] for row in np.flatnonzero(sizes == 5000)]
    assert len(few) == 7
    assert all("smoothing" in name for name in few)
    attacked = paper.images("pgd.linf.eps2")
    assert 60 < (attacked == 5000).sum() < 110
    assert set(paper.images("avg_corruptions")) == {5000}


def test_interval_of_rho_has_its_nominal_coverage(paper: Grid) -> None:
    """Redraw test images and fitted models: about 95 % of the intervals cover the true value."""
    grid, y = paper, "imagenetv2"
    expected = effective_robustness(grid, y, select=["resnet50_swsl"]).models[0]
    rng = np.random.default_rng(0)
    held, repeats = 0, 150
    x_row, rows = grid.row_of["resnet50_swsl"], np.flatnonzero(grid.fitted)
    for _ in range(repeats):
        chosen = rng.choice(rows, len(rows))
        values = {}
        for name, n in (("val", 50_000), (grid.setting(y).name, 10_000)):
            column = grid.column(name).copy()[[*chosen, x_row]]
            column[-1] = 100 * rng.binomial(n, column[-1] / 100) / n
            values[name] = column
        count = len(chosen) + 1
        drawn = replace(
            grid,
            models=tuple(f"m{i}" for i in range(count)),
            values=values,
            settings={name: grid.settings[name] for name in values},
            types=("STANDARD",) * count,
            fitted=np.arange(count) < len(chosen),
            groups={},
            pairs=(),
        )
        (found,) = effective_robustness(drawn, y, select=[f"m{count - 1}"], resamples=200).models
        assert found.interval is not None
        assert expected.rho is not None
        held += found.interval.low <= expected.rho <= found.interval.high
    assert 0.90 <= held / repeats <= 1.0


@pytest.mark.parametrize("name", ["paper", "latest", "timm"])
def test_the_scatter_contains_models_that_were_left_out(name: str) -> None:
    """Leave each fitted model out in turn: 91 to 97 % lie in the prediction interval of the others."""
    grid = load_grid(name)
    for shift in natural_shifts(grid):
        inside = []
        for _, side in fit_shift(grid, shift).sides:
            x, y = get_scale("logit").inverse(side.x), get_scale("logit").inverse(side.y)
            for row in range(side.n):
                others = np.arange(side.n) != row
                line = fit_line(x[others], y[others])
                low, high = prediction_interval(line, x[[row]])
                inside.append(low[0] <= y[row] <= high[0])
        assert 0.91 <= np.mean(inside) <= 0.97, shift


@pytest.mark.parametrize(
    ("images", "level"), [((50_000, 10_000), 50.0), ((2000, 500), 50.0), ((300, 100), 5.0)]
)
def test_the_scatter_contains_simulated_models(images: tuple[int, int], level: float) -> None:
    """Draw models around a line, then their images, on test sets that may be smaller than the reference's."""
    rng, scale = np.random.default_rng(1), get_scale("logit")
    center = float(scale.forward(level))
    inside, below, above = [], 0, 0
    for _ in range(300):
        z = rng.normal(1.0, 0.6, 60)
        expected = scale.inverse(z), scale.inverse(0.9 * z - 0.9 + center + rng.normal(0, 0.12, 60))
        sizes = np.array([50_000, 10_000])
        x, y = (100 * rng.binomial(n, values / 100) / n for n, values in zip(sizes, expected, strict=True))
        line = fit_line(x[:40], y[:40])
        own = [100 * rng.binomial(n, v[40:] / 100) / n for n, v in zip(images, expected, strict=True)]
        models = measure(
            line,
            [("", "")] * 20,
            *(
                Accuracies(values, np.full(20, float(n)), float(reference))
                for values, n, reference in zip(own, images, sizes, strict=True)
            ),
            resamples=100,
        )
        verdicts = [one.verdict for one in models if one.rho is not None]
        inside += [verdict == "within" for verdict in verdicts]
        below, above = below + verdicts.count("below"), above + verdicts.count("above")
    assert 0.93 <= np.mean(inside) <= 0.99
    assert max(below, above) / len(inside) < 0.05


def test_verdict_percentile_and_p_are_one_statement(paper: Grid) -> None:
    for shift in ("imagenetv2", "imagenet-a", "imagenet-c.fog.3_on-disk"):
        for one in effective_robustness(paper, shift).models:
            assert one.scatter is not None
            assert one.percentile is not None
            assert one.p is not None
            assert (one.verdict == "within") == (one.p >= 0.05) == (2.5 <= one.percentile <= 97.5)
            assert one.p == pytest.approx(2 * min(one.percentile, 100 - one.percentile) / 100, abs=1e-12)


def test_above_the_scatter_is_informative_on_sketch(paper: Grid, timm: Grid) -> None:
    """Measurement intervals are above 0 for hundreds of models that were trained on ImageNet-1k alone."""
    sketch = next(one for one in since_2020(paper, timm) if one.shift == "imagenet-sketch")
    entries = [one for one in sketch.entries if one.type == "imagenet-1k"]
    assert sum(one.interval is not None and one.interval.low > 0 for one in entries) > 400
    rows = {row.kind: row for row in sketch.by_kind()}
    assert (rows["imagenet-1k"].above, rows["imagenet-1k"].n) == (16, 1108)
    assert rows["image-text"].above == rows["image-text"].n == 37


def test_standard_accuracies_without_a_trend(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text("model,clean,shifted\na,60,50\nb,70,61\nc,80,72\nfull,100,90\nnone,,80\n")
    found = effective_robustness(load_grid(path), "shifted", x="clean")
    full = next(one for one in found.models if one.model == "full")
    assert (full.rho, full.expected, full.interval) == (None, None, None)
    assert found.missing == ("none",)
    assert len(found.defined) == 3
    assert found.trend.excluded == ("full",)
    with pytest.raises(OptionError, match=r"no selected model.* effective robustness"):
        _ = effective_robustness(load_grid(path), "shifted", x="clean", select=["full"]).mean


def test_an_accuracy_of_0_under_the_shift_has_a_rho(paper: Grid) -> None:
    (one,) = effective_robustness(paper, "imagenet-a", select=["resnet50"]).models
    assert one.shifted == 0
    assert one.interval is not None
    assert one.interval.low < one.rho < one.interval.high  # type: ignore[operator]


def test_small_grids(small: Path) -> None:
    grid = load_grid(small)
    assert "STANDARD" in grid.fit_rule
    found = effective_robustness(grid, "shifted", x="clean", select=["above | below"])
    assert [one.rho for one in found.models] == pytest.approx([5, -3], abs=1e-3)
    assert [one.interval for one in found.models] == [None, None]  # the file does not say how many images
    assert (found.mean_interval, found.missing) == (None, ())


def test_extrapolation_is_reported(paper: Grid) -> None:
    found = {one.model: one for one in effective_robustness(paper, "imagenetv2").models}
    assert found["efficientnet-l2-noisystudent"].extrapolated
    assert not found["resnet50"].extrapolated
    assert not any(found[name].extrapolated for name in ("alexnet", "efficientnet-b7-randaug"))


def test_tau_of_pairs(paper: Grid) -> None:
    found = relative_robustness(paper, "imagenetv2", select=["resnet50_swsl"])
    (one,) = found.models
    column = paper.column("imagenetv2")
    assert one.tau == column[paper.row_of["resnet50_swsl"]] - column[paper.row_of["resnet50"]]
    assert one.interval is not None
    assert one.interval.low < one.tau < one.interval.high
    lonely = relative_robustness(paper, "imagenetv2", select=["efficientnet-b8-advprop-autoaug"])
    assert lonely.missing == ("efficientnet-b8-advprop-autoaug",)
    with pytest.raises(OptionError, match=r"no selected model.* base model"):
        _ = lonely.mean
    own = relative_robustness(paper, "imagenetv2", pairs=[Pair("resnet50", "alexnet")])
    assert len(own.models) == 1
    with pytest.raises(OptionError, match=r"both.* grid paper"):
        relative_robustness(paper, "imagenetv2", pairs=[Pair("resnet50", "resnet51")])


def test_correlations_as_numpy(paper: Grid) -> None:
    found = correlate(paper, "avg_pgd", "objectnet")
    assert found.pearson == pytest.approx(np.corrcoef(found.x, found.y)[0, 1])
    assert found.interval is not None
    assert found.interval.low < found.pearson < found.interval.high
    standard = {name for name, kind in zip(paper.models, paper.types, strict=True) if kind == "STANDARD"}
    assert not standard & set(found.models)


def test_the_natural_fit_does_not_shrink_to_the_synthetic_one(paper: Grid) -> None:
    """Fitting V2 only on models that were attacked flips the sign of the PGD value."""
    attacked = paper.fitted & ~np.isnan(paper.column("avg_pgd"))
    shrunk = correlate(replace(paper, fitted=attacked), "avg_pgd", "imagenetv2", select=["v1"])
    assert shrunk.pearson > 0 > correlate(paper, "avg_pgd", "imagenetv2", select=["v1"]).pearson


def test_correlations_that_are_not(paper: Grid, small: Path) -> None:
    with pytest.raises(OptionError, match="at least 3 models"):
        correlate(paper, "avg_pgd", "imagenetv2", select=["resnet50_swsl | resnet18_swsl"])
    ordinary = small.with_name("ordinary.csv")
    rows = [f"m{i},STANDARD,{60 + i},{50 + i * 1.1},{40 + i * 1.2}" for i in range(6)]
    ordinary.write_text("\n".join(["model,type,val,imagenet-sketch,greyscale", *rows]))
    with pytest.raises(OptionError, match=r"at least 3 models.*not standard.*\b0\b"):
        correlate(load_grid(ordinary), "greyscale", "sketch")
    with pytest.raises(OptionError, match=r"synthetic.* natural.*\b0 and 0"):
        correlation_table(load_grid(small))


def test_the_whole_table(paper: Grid) -> None:
    table = correlation_table(paper)
    naturals = {one.natural for one in table}
    synthetics = {one.synthetic for one in table}
    assert len(naturals) == 9
    assert (
        len(synthetics) == 37 + 2 + 1 + 4 + 1
    )  # corruptions, greyscale and style, their mean, attacks, theirs
    assert len(table) == len(naturals) * len(synthetics)
    assert all(-1 <= one.pearson <= 1 and one.n > 90 for one in table)


def test_gaps_leave_the_rest_of_the_table(paper: Grid) -> None:
    """A shift without models is omitted; requesting it by name is an error."""
    empty = np.full(len(paper.models), np.nan)
    gaps = {"imagenet-sketch": empty, "imagenet-c.fog.3_on-disk": empty}
    grid = replace(paper, values={**paper.values, **gaps})
    table = correlation_table(grid, select=["resnet50-lp"])
    assert {one.natural for one in table} == set(natural_shifts(paper)) - {"imagenet-sketch"}
    lost = {"avg_corruptions", "imagenet-c.fog_on-disk"}
    assert {one.synthetic for one in table} == set(synthetic_shifts(paper)) - lost
    with pytest.raises(OptionError, match=r"fit .*imagenet-sketch .*val"):
        correlation_table(grid, natural=["imagenet-sketch"])
    with pytest.raises(OptionError, match="in the grid paper"):
        correlation_table(grid, select=["resnet50_swsl"])


def test_an_interval_of_rho_ends_where_rho_must(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text("model,clean,shifted\na,40,10\nb,50,80\nc,60,30\nd,52,0\n")
    grid = load_grid(path, images={"clean": 1, "shifted": 1})
    for one in effective_robustness(grid, "shifted", x="clean").models:
        assert one.interval is not None
        assert one.rho is not None
        assert -100 <= one.interval.low <= one.rho <= one.interval.high <= 100


def test_models_outside_a_trend_are_reported(paper: Grid) -> None:
    (filtered,) = trend_notes(fit_shift(paper, "imagenet-a"))
    assert filtered.endswith("filter the images): resnet50")
    assert trend_notes(fit_shift(paper, "imagenetv2")) == ()
    few = replace(paper, fitted=paper.select(["resnet18 | resnet50 | vgg16 | alexnet"]))
    (note,) = trend_notes(fit_shift(few, "imagenetv2"))
    assert "a line through 4 models" in note
