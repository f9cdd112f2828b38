"""The numbers that the paper prints, at the precision that it prints them with."""

from __future__ import annotations

import numpy as np
import pytest

from beaufort.testbed import (
    Grid,
    Knee,
    Line,
    correlate,
    effective_robustness,
    fit_shift,
    load_grid,
    relative_robustness,
)


def test_the_grid(paper: Grid) -> None:
    assert (len(paper.models), len(paper.settings)) == (204, 213)
    assert [int(paper.groups[kind].sum()) for kind in ("standard", "robust", "more_data", "auxiliary")] == [
        78,
        86,
        30,
        10,
    ]
    assert (paper.fitted == paper.groups["standard"]).all()
    assert sum(np.isnan(column).sum() for column in paper.values.values()) == 893
    assert paper.types.count("LP_ADV") == 16


def test_the_later_grid() -> None:
    latest = load_grid("latest")
    assert (len(latest.models), len(latest.settings), int(latest.fitted.sum())) == (338, 213, 78)
    assert sum(np.isnan(column).sum() for column in latest.values.values()) == 26_220


@pytest.mark.parametrize(
    ("shift", "printed"),
    [("imagenetv2", "1.00"), ("objectnet", "0.95"), ("vid-robust", "0.95"), ("ytbb-robust", "0.83")],
)
def test_dataset_shifts_lie_on_a_line(paper: Grid, shift: str, printed: str) -> None:
    line = fit_shift(paper, shift)
    assert isinstance(line, Line)
    assert (f"{line.r2:.2f}", line.n) == (printed, 78)


@pytest.mark.parametrize(
    ("shift", "models", "printed"),
    [
        ("imagenetv2", "resnet152-imagenet11k", "2.1"),
        ("imagenetv2", "instagram-resnext*", "1.5"),
        ("imagenetv2", "efficientnet-l2-noisystudent", "1.1"),
        ("imagenetv2", "google_resnet101_jft-300M", "-0.23"),
        ("vid-robust-pm10", "resnet50-lp", "6.7"),
        ("ytbb-robust-pm10", "resnet50-lp", "4.9"),
        ("imagenet-r", "instagram-resnext101_32x16d", "29.1"),
        ("imagenet-r", "resnext101_32x8d_deepaugment_augmix", "11.2"),
        ("imagenet-r", "efficientnet-b8-advprop-autoaug", "7.5"),
        ("imagenet-r", "facebook_adv_trained_resnet152_denoise", "22.7"),
    ],
)
def test_effective_robustness(paper: Grid, shift: str, models: str, printed: str) -> None:
    digits = len(printed.partition(".")[2])
    assert f"{effective_robustness(paper, shift, select=[models]).mean:.{digits}f}" == printed


@pytest.mark.parametrize(("shift", "printed"), [("vid-robust-pm10", "-8.5"), ("ytbb-robust-pm10", "-0.7")])
def test_relative_robustness(paper: Grid, shift: str, printed: str) -> None:
    found = relative_robustness(paper, shift, select=["resnet50-lp"])
    assert len(found.models) == 13
    assert f"{found.mean:.1f}" == printed
    assert {one.pair.base for one in found.models} == {"resnet50_aws_baseline"}


@pytest.mark.parametrize(
    ("synthetic", "printed", "n", "on_all"),
    [("avg_corruptions", "0.24", 107, "0.25"), ("avg_pgd", "-0.05", 102, "-0.04")],
)
def test_correlations(paper: Grid, synthetic: str, printed: str, n: int, on_all: str) -> None:
    found = correlate(paper, synthetic, "imagenetv2", select=["v1"])
    assert (f"{found.pearson:.2f}", found.n) == (printed, n)
    assert f"{correlate(paper, synthetic, 'imagenetv2').pearson:.2f}" == on_all


@pytest.mark.parametrize(("scale", "printed"), [("logit", "1.1"), ("probit", "1.4"), ("linear", "3.1")])
def test_the_axes_matter(paper: Grid, scale: str, printed: str) -> None:
    found = effective_robustness(paper, "imagenetv2", select=["efficientnet-l2-noisystudent"], scale=scale)
    assert f"{found.mean:.1f}" == printed


def test_the_models_fitted_on_matter() -> None:
    """All 88 models of type STANDARD instead of 78 move the consistency shifts by more than a point."""
    every = load_grid("paper", fit_on=["STANDARD"])
    assert int(every.fitted.sum()) == 88
    assert effective_robustness(every, "vid-robust-pm10", select=["resnet50-lp"]).mean < 6.7 - 1


def test_aggregates(paper: Grid) -> None:
    assert len(paper.setting("avg_corruptions").members) == 39
    assert len(paper.setting("avg_pgd").members) == 4
    assert int((~np.isnan(paper.column("avg_corruptions"))).sum()) == 200
    attacked = ~np.isnan(paper.column("avg_pgd"))
    assert (int(attacked.sum()), int((attacked & paper.fitted).sum())) == (183, 71)


def test_the_knee_of_imagenet_a(paper: Grid) -> None:
    knee = fit_shift(paper, "imagenet-a")
    assert isinstance(knee, Knee)
    assert (f"{knee.pivot:.2f}", knee.left.n + knee.right.n) == ("91.86", 77)
    assert (knee.left.slope < 1, knee.right.slope > 2) == (True, True)
    at_pivot, above = knee.predict([knee.pivot, knee.pivot + 1e-6])
    assert at_pivot == pytest.approx(float(knee.left.predict(knee.pivot)))
    assert above == pytest.approx(float(knee.right.predict(knee.pivot + 1e-6)))
    (filter_model,) = effective_robustness(paper, "imagenet-a", select=["resnet50"]).models
    assert filter_model.rho == pytest.approx(-float(at_pivot))


def test_imagenet_r_lacks_five_standard_models(paper: Grid) -> None:
    assert fit_shift(paper, "imagenet-r").n == 73


def test_predictive_correlations(paper: Grid) -> None:
    """The paper's findings in words."""

    def r(synthetic: str, natural: str) -> float:
        return correlate(paper, synthetic, natural).pearson

    for shift in ("vid-robust-pm10", "ytbb-robust-pm10"):
        assert r("avg_pgd", shift) > 0.6
        assert max(r("imagenet-c.contrast_on-disk", shift), r("imagenet-c.fog_on-disk", shift)) < -0.4
    for shift in ("imagenetv2", "objectnet", "imagenet-a"):
        assert abs(r("avg_pgd", shift)) < 0.2
        assert r("avg_corruptions", shift) < 0.3
    best = [
        f"imagenet-c.{name}_on-disk" for name in ("brightness", "saturate", "gaussian_blur", "defocus_blur")
    ]
    others = [f"imagenet-c.{name}_on-disk" for name in ("shot_noise", "impulse_noise", "jpeg_compression")]
    assert min(r(name, "imagenetv2") for name in best) > max(r(name, "imagenetv2") for name in others)
