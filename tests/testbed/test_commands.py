"""`beaufort testbed` and `beaufort place` as a person types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort.store import FileStore
from tests.commands import invoke, shows


def json_output(*arguments: str) -> Any:
    text = invoke(*arguments, "--json")
    return json.loads(text[text.index("{") :])  # after warnings


def test_grids() -> None:
    names = {one["grid"]: one for one in json_output("ls", "grids")["grids"]}
    assert (names["paper"]["models"], names["paper"]["settings"], names["paper"]["fitted"]) == (204, 213, 78)
    assert names["paper"]["groups"]["robust"] == 86
    one = json_output("ls", "grids", "timm")
    assert (len(one["model_names"]), one["facts"]["license"]) == (1556, "Apache-2.0")
    assert "robustbench-imagenet" in invoke("ls", "grids")
    assert "imagenet-sketch" in invoke("ls", "grids", "timm")


def test_fit() -> None:
    one = json_output("testbed", "fit", "imagenetv2")
    assert (f"{one['slope']:.3f}", f"{one['intercept']:.3f}", f"{one['r2']:.2f}", one["n"]) == (
        "0.922",
        "-0.495",
        "1.00",
        78,
    )
    assert one["slope_interval"]["low"] < one["slope"] < one["slope_interval"]["high"]
    band = one["band"]
    assert (band["resamples"], band["level"], len(band["x"])) == (1000, 0.95, 200)
    assert all(
        low < fit < high for low, fit, high in zip(band["low"], band["fit"], band["high"], strict=True)
    )
    knee = json_output("testbed", "fit", "imagenet-a")
    assert (knee["slope"], round(knee["knee"], 2)) == (None, 91.86)
    assert knee["left"]["n"] + knee["right"]["n"] == 77
    plain = json_output("testbed", "fit", "imagenet-a", "--trend", "knee=none")
    assert plain["excluded"] == ["resnet50"]
    assert len(json_output("testbed", "fit")["fits"]) == 9
    text = invoke("testbed", "fit")
    assert "above 91.86 %" in text
    assert "78 standard models" in text
    assert "accuracy of 0 or 100): resnet50" in invoke("testbed", "fit", "imagenet-a", "--trend", "knee=none")


def test_rho() -> None:
    one = json_output("testbed", "robustness", "imagenetv2", "--select", "resnet152-imagenet11k")
    assert (round(one["rho"], 1), one["n"]) == (2.1, 1)
    assert one["low"] < one["rho"] < one["high"]
    assert one["models"][0]["rho"] == one["rho"]
    assert "not a new training" in one["interval_covers"]
    (model,) = one["models"]
    assert (model["x_n"], model["y_n"]) == (50_000, 10_000)
    assert model["y_interval"]["low"] < model["y"] < model["y_interval"]["high"]
    many = json_output("testbed", "robustness", "vid-robust-pm10", "--select", "resnet50-lp")
    assert (round(many["rho"], 1), many["n"]) == (6.7, 13)
    names = [f"instagram-resnext101_32x{width}d" for width in (8, 16, 32, 48)]
    four = json_output("testbed", "robustness", "--select", "|".join(names))
    assert (round(four["rho"], 1), [one["model"] for one in four["models"]]) == (1.5, names[::-1])
    assert json_output("testbed", "robustness", "--select", "resnet50*", "--select", "LP_ADV")["n"] == 13
    text = invoke("testbed", "robustness", "imagenet-r")
    assert text.splitlines()[1].startswith("+29.07")
    assert "9 selected models" in text


def test_tau(small: Path, tmp_path: Path) -> None:
    one = json_output(
        "testbed", "robustness", "ytbb-robust-pm10", "--select", "resnet50-lp", "--pairs", "grid"
    )
    assert (round(one["tau"], 1), one["n"]) == (-0.7, 13)
    assert {"model", "base", "tau", "low", "high", "provenance"} <= set(one["models"][0])
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("model,base_model\nresnet50,alexnet\n")
    assert json_output("testbed", "robustness", "--pairs", str(pairs))["tau"] > 15
    assert "95 % intervals" in invoke("testbed", "robustness", "--select", "v1", "--pairs", "grid")
    pairs.write_text("model,base_model\nabove,m4\n")
    own = ("testbed", "robustness", "--grid", str(small), "shifted", "--pairs", str(pairs))
    assert "+5.00 on shifted" in invoke(*own)
    assert "on shifted, 95 % intervals" in invoke(*own, "--n", "shifted=1000")


def test_correlate() -> None:
    one = json_output("testbed", "correlate", "avg_pgd", "imagenetv2", "--select", "v1")
    assert (f"{one['pearson']:.2f}", one["n"], len(one["models"])) == ("-0.05", 102, 102)
    assert len(json_output("testbed", "correlate", "all", "objectnet")["correlations"]) == 45
    assert "avg_corruptions" in invoke("testbed", "correlate", "all", "imagenetv2")


def test_a_file_of_ones_own(small: Path) -> None:
    one = json_output("testbed", "fit", "--grid", str(small), "--trend", "x=clean", "shifted")
    assert (one["slope"], one["intercept"], one["r2"]) == pytest.approx((0.9, -0.4, 1.0), abs=1e-4)
    rho = json_output(
        "testbed", "robustness", "--grid", str(small), "--trend", "x=clean", "shifted", "--select", "above"
    )
    assert (rho["rho"], rho["low"]) == (pytest.approx(5, abs=1e-3), None)
    assert "STANDARD" in rho["fit_on"]
    sizes = ("--n", "clean=50000", "--n", "shifted=10000")
    sure = json_output(
        "testbed",
        "robustness",
        "--grid",
        str(small),
        "--trend",
        "x=clean",
        "shifted",
        "--select",
        "above",
        *sizes,
    )
    assert sure["low"] < sure["rho"] < sure["high"]
    assert (sure["models"][0]["x_n"], sure["models"][0]["y_n"]) == (50_000, 10_000)


def test_custom_file_errors_name_the_missing_part(small: Path, tmp_path: Path) -> None:
    """The shift, its standard accuracy and the base models are known of the testbed's columns alone."""
    own = ("--grid", str(small))
    for command in (
        ("robustness",),
        ("robustness", "--pairs", "grid"),
        ("export", "-o", str(tmp_path / "own.svg")),
    ):
        says = "clean, shifted"
        assert says in invoke("testbed", *command, *own, code=2)
    assert "has no pairs" in invoke("testbed", "robustness", *own, "shifted", "--pairs", "grid", code=2)
    named = ("shifted", "shifted")
    assert "--trend x=" in invoke("testbed", "correlate", *own, *named, code=2)
    rows = [f"m{i},{60 + i},{50 + i + i % 2}" for i in range(5)]
    usual = tmp_path / "usual.csv"
    usual.write_text("\n".join(["model,val,imagenet-r", *rows]))
    lacks = "the grid usual has no standard accuracy val-on-imagenet-r-classes"
    assert lacks in invoke("testbed", "robustness", "--grid", str(usual), "imagenet-r", code=2)
    board = invoke("testbed", "robustness", "--grid", "robustbench-imagenet", code=2)
    assert ": corruptions, corruptions-3d" in board  # and not clean, which is no shift
    page = ("testbed", "export", "--grid", str(usual), "-o", str(tmp_path / "usual.html"))
    assert shows(invoke(*page, code=2), "no shift", "standard accuracy")
    both = ("imagenet-r", "imagenet-r")
    one = json_output("testbed", "correlate", "--grid", str(usual), *both, "--trend", "x=val")
    assert (one["pearson"], one["n"]) == (pytest.approx(1), 5)


def test_small_files_have_a_size(small: Path, tmp_path: Path) -> None:
    """A figure of 6 kB has its size in kB."""
    figure = tmp_path / "own.svg"
    output = invoke(
        "testbed", "export", "--grid", str(small), "shifted", "--trend", "x=clean", "-o", str(figure)
    )
    assert output.endswith(f" models, {figure.stat().st_size / 1e3:.1f} kB\n")


def test_a_file_without_accuracies_is_no_grid(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("model,type\na,STANDARD\n")
    says = "no column of accuracies, only model, type"
    assert says in invoke("ls", "grids", str(path), code=2)


def test_words_are_about_this_fit(tmp_path: Path) -> None:
    """The output states the models in the fit and those left out, without intervals."""
    path = tmp_path / "own.csv"
    rows = [f"m{i},{60 + i},{50 + i + i % 2},{40 + i}" for i in range(5)]
    path.write_text("\n".join(["model,val,imagenet-r,imagenet-sketch", *rows, "none,70,0,", "no,71,,"]))
    text = invoke("testbed", "robustness", "--grid", str(path), "imagenet-r", "--trend", "x=val")
    assert "5 of these models" in text
    assert "accuracy of 0 or 100): none" in text
    assert "a line through 5 models" in text
    own = ("--grid", str(path), "imagenet-sketch")
    assert "95 % measurement intervals" in invoke("testbed", "robustness", *own)
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(path.read_text().replace("imagenet-sketch", "drawn"))
    unsure = invoke("testbed", "robustness", "--grid", str(renamed), "drawn", "--trend", "x=val")
    assert shows(unsure, "no intervals", "number of images")
    assert "measurement intervals" not in unsure


def test_one_shift_that_cannot_be_fitted_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    rows = [f"m{i},{60 + i},{50 + i}," for i in range(5)]
    path.write_text("\n".join(["model,val,imagenet-sketch,imagenetv2-matched-frequency-format-val", *rows]))
    one = json_output("testbed", "fit", "--grid", str(path))
    assert [fit["y"] for fit in one["fits"]] == ["imagenet-sketch"]
    assert list(one["not_fitted"]) == ["imagenetv2-matched-frequency-format-val"]
    assert shows(invoke("testbed", "fit", "--grid", str(path)), "not fitted", "imagenetv2")


def test_a_grid_without_natural_shifts(small: Path) -> None:
    assert "natural shifts" in invoke("testbed", "fit", "--grid", str(small), code=2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("fit", "imagenet2"), "did you mean 'imagenetv2'"),
        (("fit", "--grid", "papers"), "unknown grid"),
        (("fit", "imagenetv2", "--trend", "axis=log"), "unknown scale"),
        (("fit", "imagenetv2", "--trend", "knee=no"), "knee in --trend must be a number, got 'no'"),
        (
            ("fit", "imagenetv2", "--trend", "fit=resnet50"),
            "at least 3 models with both accuracies, got 1",
        ),
        (("robustness", "--select", "resnet5O"), "did you mean 'resnet50'"),
        (
            ("robustness", "--select", "STANDARD", "--select", "LP_ADV"),
            "'STANDARD' and 'LP_ADV'",
        ),
        (
            ("robustness", "val", "--trend", "x=val"),
            "x and y must be two settings of the grid paper, got val for both",
        ),
        (("robustness", "--pairs", "grid", "--grid", "timm"), "model has a base model"),
        (("correlate", "--grid", "timm"), "needs synthetic and natural shifts"),
        (("robustness", "--n", "val=many"), "--n must be SETTING=IMAGES"),
        (("robustness", "--n", "vall=10"), "did you mean"),
        (
            ("fit", "--intervals", "resamples=1"),
            "resamples in --intervals must be an integer of at least 100, got 1",
        ),
        (("export", "-o", "x.gif"), "output must end in .html, .svg, .png or .csv"),
        (("export", "-o", "x.html", "--trend", "axis=log"), "unknown scale"),
    ],
)
def test_errors_are_messages(arguments: tuple[str, ...], says: str) -> None:
    assert says in invoke("testbed", *arguments, code=2)


def test_place(tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("setting,accuracy,n\nval,80.1,50000\nimagenetv2,72.0,10000\nobjectnet,40,\n")
    one = json_output("place", "--scores", str(scores))
    (shift,) = one["shifts"]
    assert (shift["verdict"], shift["y"]) == ("above", "imagenetv2-matched-frequency-format-val")
    assert shift["low"] < shift["rho"] < shift["high"]
    assert {"percentile", "similar", "neighbors", "p", "p_holm", "scatter_low", "extrapolated"} <= set(shift)
    assert one["skipped"][0]["setting"] == "objectnet-1.0-beta"
    assert json_output("place", "--scores", str(scores), "--grid", "timm")["shifts"][0]["similar"]["n"] > 100
    text = invoke("place", "--scores", str(scores))
    assert "above the scatter" in text
    assert "n = 50,000" in text
    assert "nearest: " in text
    assert "--scores, --store and --model" in invoke("place", code=2)
    unused = invoke("place", "--scores", str(scores), "--model", "my-net", code=2)
    assert shows(unused, "--model", "--store")


def test_place_in_a_file_of_ones_own(small: Path) -> None:
    scores = small.with_name("scores.csv")
    scores.write_text("setting,accuracy\nclean,70\nshifted,58\n")
    own = ("place", "--scores", str(scores), "--grid", str(small), "--trend", "x=clean")
    (shift,) = json_output(*own)["shifts"]
    assert (shift["x"], shift["y"], shift["low"]) == ("clean", "shifted", None)
    assert shows(invoke(*own), "no verdict", "n is unknown")


def test_placement_without_result_is_a_failure(tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("setting,accuracy\nmnist,76\n")
    text = invoke("place", "--scores", str(scores), code=2)
    assert "not placed: mnist" in text
    assert shows(text, "no shift", "scores")


def test_place_from_a_store(fill: Callable[..., FileStore]) -> None:
    store = str(fill("s", {"a": 0.9, "b": 0.8}).location)
    one = json_output("place", "--store", store, "--model", "a", "--grid", "robustbench-cifar10")
    assert [shift["y"] for shift in one["shifts"]] == ["corruptions"]
    assert one["shifts"][0]["rho"] is not None
    assert "has 2 models" in invoke("place", "--store", store, code=2)


ATTACKED = """
from torch import manual_seed, nn

def make():
    manual_seed(0)
    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 10))
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in, with a network and some images in ten classes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    images = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3)).astype(np.uint8)
    (tmp_path / "toys").mkdir()
    np.save("toys/images.npy", images)
    np.save("toys/labels.npy", np.arange(40) % 10)
    (tmp_path / "placed_net.py").write_text(ATTACKED)
    return tmp_path


def test_place_a_corruption_and_an_attack(toys: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    (toys / "hard.yaml").write_text(
        "{name: hard, version: 1, dataset: toys, scale: cifar, corruptions: [contrast], "
        "severities: [1], shifts: [testbed-pgd-linf@2/255, pgd-linf@2/255]}"
    )
    model = ("--model", "python:placed_net:make", "--set", "device=cpu")
    invoke("run", *model, "--data", "toys", "--suite", "hard.yaml", "--store", "kept")
    one = json_output("place", "--store", "kept")
    assert [shift["y"] for shift in one["shifts"]] == ["imagenet-c.contrast.1_in-memory", "pgd.linf.eps2"]
    assert [other["setting"] for other in one["skipped"]] == ["pgd-linf@2/255"]
    assert any("own resize and crop" in text for text in one["warnings"])


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "folder.svg").mkdir()
    for name in ("page.html", "figure.svg"):
        message = invoke("testbed", "export", "-o", str(tmp_path / "taken" / name), code=2)
        assert "cannot write" in message
    assert "got the directory" in invoke("testbed", "export", "-o", str(tmp_path / "folder.svg"), code=2)
    assert "cannot write" in invoke("reproduce", "natural-shifts", "-o", str(tmp_path / "taken"), code=2)


def test_plots(tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("setting,accuracy,n\nval,80.1,50000\nimagenetv2,72.0,10000\n")
    for name in ("page.html", "figure.svg", "figure.png"):
        target = tmp_path / name
        text = invoke(
            "testbed",
            "export",
            "-o",
            str(target),
            "imagenetv2",
            "--grid",
            f"paper+{scores}",
        )
        assert "205 models" in text
        assert target.stat().st_size > 5000


def test_names_of_settings_are_harmless(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    rows = [f"m{i},{60 + i},{50 + i + i % 2}" for i in range(5)]
    path.write_text("\n".join(["model,\x1b[31mclean,\x1b]0;x\x07shifted", *rows]))
    names = ("--grid", str(path), "--trend", "x=\x1b[31mclean", "\x1b]0;x\x07shifted")
    for command in ("fit", "robustness"):
        assert "\x1b" not in invoke("testbed", command, *names)
