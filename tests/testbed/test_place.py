"""Placement of a custom model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort import evaluate
from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.data import read_frame_sets
from beaufort.models import Model, as_model
from beaufort.results import PmScore, open_parts, pm_scores
from beaufort.store import FileStore
from beaufort.testbed import Grid, Score, effective_robustness, fit_shift, load_grid, place, read_scores
from beaufort.testbed.stored_accuracies import scores_of_store
from tests.commands import shows


def as_scores(grid: Grid, model: str, settings: list[str]) -> list[Score]:
    row = grid.row_of[model]
    return [
        Score(name, float(grid.column(name)[row]), grid.setting(name).images, grid.setting(name).convention)
        for name in settings
    ]


def test_a_model_of_the_grid_lands_where_it_is(paper: Grid) -> None:
    settings = ["val", "imagenetv2", "imagenet-r", "val-on-imagenet-r-classes"]
    found = place(as_scores(paper, "resnet50_swsl", settings), paper)
    assert [one.y for one in found.standings] == ["imagenetv2-matched-frequency-format-val", "imagenet-r"]
    assert (found.skipped, found.warnings) == ((), ())
    for one in found.standings:
        (expected,) = effective_robustness(paper, one.y, select=["resnet50_swsl"]).models
        assert one.robustness.rho == expected.rho
        assert one.robustness.interval == expected.interval
        assert one.robustness.scatter == expected.scatter
        assert one.robustness.percentile == expected.percentile
        assert one.neighbors[0].model == "resnet50_swsl"
        assert len(one.neighbors) == 5
        assert one.similar >= 20
        assert one.similar_range[0] <= one.robustness.clean <= one.similar_range[1]
    v2, r = found.standings
    assert r.verdict == "above"
    assert r.percentile is not None
    assert r.percentile > 90
    assert r.p_holm is not None
    assert r.p_holm < 1e-3
    assert v2.robustness.p is not None
    assert v2.p_holm is not None
    assert v2.p_holm >= v2.robustness.p


def test_model_on_the_trend_is_not_significant(paper: Grid) -> None:
    on_the_line = float(fit_shift(paper, "imagenetv2").predict(75.0))
    scores = [Score("val", 75.0, 50_000), Score("imagenetv2", on_the_line, 10_000)]
    (one,) = place(scores, paper).standings
    assert one.robustness.rho == pytest.approx(0)
    assert one.verdict == "within"
    assert one.robustness.percentile == pytest.approx(50)
    lower = [Score("val", 75.0, 50_000), Score("imagenetv2", on_the_line - 4, 10_000)]
    below = place(lower, paper).standings[0]
    assert below.verdict == "below"
    assert below.percentile == 0


def test_position_above_all_models_is_stated(tmp_path: Path) -> None:
    lines = [f"m{row},{70 + row / 1000},{60 + row % 2}" for row in range(250)]
    (tmp_path / "own.csv").write_text("\n".join(["model,clean,shifted", *lines, "best,70.1,80"]))
    grid = load_grid(tmp_path / "own.csv")
    output = {}
    for shifted in (50, 60.5, 79, 81):
        (one,) = place([Score("clean", 70.1), Score("shifted", shifted)], grid, x="clean").standings
        output[shifted] = str(one).split("of the 251 models")[0].split("above ")[-1].strip()
    assert output == {50: "0 %", 60.5: "50 %", 79: "99.6 %", 81: "100 %"}


def test_few_images_make_wide_intervals(paper: Grid) -> None:
    def widths(images: int) -> np.ndarray:
        (one,) = place([Score("val", 75.0, 50_000), Score("imagenetv2", 63.0, images)], paper).standings
        assert one.robustness.interval is not None
        assert one.robustness.scatter is not None
        ends = (one.robustness.interval, one.robustness.scatter)
        return np.array([interval.high - interval.low for interval in ends])

    assert (widths(500) > 4 * widths(10_000)).all()


def test_verdict_requires_a_number_of_images(paper: Grid) -> None:
    """Without the number of images there is no interval and no verdict."""
    placed = [Score("val", 80.1, 50_000), Score("imagenetv2", 71.0)]
    (one,) = place(placed, paper).standings
    values = one.as_dict()
    assert (one.verdict, values["low"], values["scatter_low"], values["p"]) == ("unknown", None, None, None)
    assert (values["n_x"], values["n_y"]) == (50_000, None)
    assert values["rho"] is not None
    assert "n = 50,000" in str(one)
    assert "n unknown" in str(one)
    (few,) = place([placed[0], Score("imagenetv2", 71.0, 1000)], paper).standings
    assert (few.verdict, few.as_dict()["n_y"]) == ("within", 1000)
    assert "n = 1,000" in str(few)


def test_means_are_placed_when_all_members_are_there(paper: Grid) -> None:
    names = [f"imagenet-c.fog.{severity}_on-disk" for severity in range(1, 6)]
    found = place(as_scores(paper, "resnet50", ["val", *names]), paper)
    assert [one.y for one in found.standings] == [*names, "imagenet-c.fog_on-disk"]
    assert len(place(as_scores(paper, "resnet50", ["val", *names[:4]]), paper).standings) == 4


def test_differences_are_reported(paper: Grid) -> None:
    scores = [
        Score("val-on-imagenet-a-classes", 90.0, convention="subset"),
        Score("imagenet-a", 5.0, 9000, "all", "resize 256, crop 224"),
        Score("val", 76.0),
        Score("objectnet", 30.0),
    ]
    found = place(scores, paper)
    text = "\n".join(found.warnings)
    assert "classes of imagenet_a" in text
    assert "the scores state 'all'" in text
    assert shows(text, "imagenet-a", "own resize and crop")
    assert "7,500 images" in text
    assert "objectnet-1.0-beta: " in text
    assert "val:" not in text
    assert dict(found.skipped)["objectnet-1.0-beta"].startswith(
        "its standard accuracy val-on-objectnet-classes"
    )


def test_leaderboards_say_their_caveat() -> None:
    grid = load_grid("robustbench-imagenet")
    found = place([Score("clean", 76.7), Score("corruptions", 39.5)], grid)
    assert any("5,000 images" in one for one in found.warnings)
    assert found.standings[0].neighbors[0].model == "Standard_R50"
    assert found.standings[0].robustness.rho is not None


def test_fractions_in_place_of_percentages_are_reported(paper: Grid) -> None:
    found = place([Score("val", 0.76), Score("imagenetv2", 0.63)], paper)
    assert any("percentages" in one for one in found.warnings)


def test_the_standard_accuracy_can_be_named(small: Path, paper: Grid) -> None:
    """A custom file does not state which of its columns is the clean one."""
    own = load_grid(small)
    scores = [Score("clean", 70.0), Score("shifted", 58.0)]
    with pytest.raises(OptionError, match="got clean, shifted;"):
        place(scores, own)
    (one,) = place(scores, own, x="clean").standings
    assert (one.x, one.y) == ("clean", "shifted")
    assert one.robustness.rho == pytest.approx(58 - float(fit_shift(own, "shifted", x="clean").predict(70.0)))
    names = ["val", "imagenetv2", "imagenet-r", "val-on-imagenet-r-classes"]
    found = place(as_scores(paper, "resnet50_swsl", names), paper, x="val")
    assert [(one.x, one.y) for one in found.standings] == [
        ("val", "imagenetv2-matched-frequency-format-val"),
        ("val", "imagenet-r"),
    ]
    (alone,) = place([Score("shifted", 58.0)], own, x="clean").skipped
    assert alone[0] == "shifted"
    assert shows(alone[1], "standard accuracy clean")


def test_p_far_from_the_trend_is_small(paper: Grid) -> None:
    (one,) = place([Score("val", 76.0, 50_000), Score("imagenetv2", 75.0, 10_000)], paper).standings
    assert one.robustness.p is not None
    assert 0 < one.robustness.p < 1e-16
    assert "p < 1e-16" in str(one)
    assert "percentile 99.9" in str(one)


def test_a_perfect_model_has_no_rho(paper: Grid) -> None:
    (one,) = place([Score("val", 100.0, 50_000), Score("imagenetv2", 90.0, 10_000)], paper).standings
    assert (one.robustness.rho, one.robustness.p, one.verdict) == (None, None, "unknown")
    assert one.percentile is None
    assert "above" not in str(one)


def test_models_that_the_line_leaves_out_do_not_scatter_around_it(tmp_path: Path) -> None:
    lines = ["a,60,50", "b,70,60.1", "c,80,70", "d,90,80.2", "failed,75,0", "untrained,0,10"]
    (tmp_path / "own.csv").write_text("\n".join(["model,clean,shifted", *lines]))
    grid = load_grid(tmp_path / "own.csv")
    scores = [Score("clean", 72, 1_000_000), Score("shifted", 62, 1_000_000)]
    (one,) = place(scores, grid, x="clean").standings
    assert one.robustness.scatter is not None
    assert -7 < one.robustness.scatter.low < 0 < one.robustness.scatter.high < 7


def test_nothing_to_place(paper: Grid) -> None:
    with pytest.raises(OptionError, match=r"scores.* shift.* paper"):
        place([Score("val", 76.0)], paper)
    found = place([Score("mnist", 76.0)], paper)
    assert found.standings == ()
    assert found.skipped[0][0] == "mnist"
    with pytest.raises(OptionError, match="got 'imagenet-sketch' twice"):
        place([Score("sketch", 20.0), Score("imagenet-sketch", 20.0)], paper)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("setting\nval\n", "no column 'accuracy'"),
        ("setting,accuracy\nval,\n", "percentage from 0 to 100, got none"),
        ("setting,accuracy\nval,120\n", "percentage from 0 to 100, got 120"),
        ("setting,accuracy,n\nval,76,0\n", "positive integer, got 0"),
        ("setting,accuracy,n\nval,76,1.5\n", "positive integer, got 1.5"),
        ("setting,accuracy,convention\nval,76,some\n", "must be all or subset, got 'some'"),
        ("setting,accuracy\nval,76\nval,77\n", "'val' more than once"),
    ],
)
def test_files_that_are_no_scores(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(OptionError, match=says):
        read_scores(path)


def test_scores_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("setting,accuracy,n,convention,preprocessing\nval,76.13,50000,all,own\nimagenet-a,0,,,\n")
    assert read_scores(path) == (
        Score("val", 76.13, 50_000, "all", "own"),
        Score("imagenet-a", 0.0, None, None, None),
    )


def test_scores_from_a_store(fill: Callable[..., FileStore], paper: Grid) -> None:
    store = str(fill("s", {"a": 0.9, "b": 0.8}).location).removeprefix("file://")
    with pytest.raises(OptionError, match="has 2 models"):
        scores_of_store(store, None, paper)
    with pytest.raises(UnknownNameError, match="unknown model of"):
        scores_of_store(store, "zzz", paper)
    scores = {one.setting: one for one in scores_of_store(store, "a", paper)[0]}
    grid = load_grid(store)
    assert scores["val"].accuracy == grid.column("clean")[0]
    assert scores["val"].images == grid.settings["clean"].images
    board = {one.setting: one for one in scores_of_store(store, "a", load_grid("robustbench-cifar10"))[0]}
    assert set(board) == {"clean", "corruptions"}
    assert np.isfinite(board["corruptions"].accuracy)


SHIFTS = """
name: own-shifts
version: 1
parts:
  - {dataset: val, name: imagenet-val, labels: {cat: [0], dog: [1]}}
  - {dataset: sketch, name: imagenet-sketch, labels: {cat: [0], dog: [1]}, counterpart: imagenet-val}
"""

VIDEOS = """
name: own-videos
version: 1
parts:
  - {dataset: val, name: imagenet-val-vid-robust, labels: {cat: [0], dog: [1]}}
  - dataset: clips
    name: vid-robust-anchors
    labels: {cat: [0], dog: [1]}
    counterpart: imagenet-val-vid-robust
  - {dataset: clips, name: vid-robust-frames, labels: {cat: [0], dog: [1]}}
"""


def clips(root: Path) -> Path:
    """Ten clips of an anchor and three neighbors; the model takes red frames for dogs."""
    rng = np.random.default_rng(0)
    sets, labels = {}, {}
    for clip in range(10):
        frames = [f"clip{clip}/{number:04d}.png" for number in (5, 10, 15, 16)]
        sets[frames[2]] = [frames[0], frames[1], frames[3]]
        for one in frames:
            labels[one] = ["dog" if clip % 2 else "cat"]
            (root / one).parent.mkdir(parents=True, exist_ok=True)
            red = (rng.random() < 0.2) != bool(clip % 2)
            Image.new("RGB", (16, 16), (int(red), 0, 0)).save(root / one)
    (root / "pmsets.json").write_text(json.dumps(sets))
    (root / "labels.json").write_text(json.dumps(labels))
    return root


def looker() -> Model:
    return as_model(
        lambda images: np.eye(2, dtype=np.float32)[images[:, 0, 0, 0].astype(int)],
        name="looker",
        classes=2,
        version="1",
    )


def folder(root: Path, wrong: int) -> Path:
    for number in range(10):
        place = root / ("cat" if number % 2 else "dog") / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        red = (number % 2 == 0) != (number < wrong)
        Image.new("RGB", (16, 16), (int(red), 0, 0)).save(place)
    return root


def test_every_suite_of_a_store_counts(tmp_path: Path, paper: Grid) -> None:
    """All runs are placed, and the consistency over frames, too."""
    for name, text in (("shifts", SHIFTS), ("videos", VIDEOS)):
        (tmp_path / f"{name}.yaml").write_text(text)
    data = {
        "imagenet-val": str(folder(tmp_path / "val", 1)),
        "imagenet-sketch": str(folder(tmp_path / "sketch", 4)),
    }
    evaluate([looker()], str(tmp_path / "shifts.yaml"), data, tmp_path / "kept")
    root = clips(tmp_path / "clips")
    videos = {
        "imagenet-val-vid-robust": data["imagenet-val"],
        "vid-robust-anchors": f"frame-sets:{root}#anchors",
        "vid-robust-frames": f"frame-sets:{root}",
    }
    evaluate([looker()], str(tmp_path / "videos.yaml"), videos, tmp_path / "kept")
    found = place(tmp_path / "kept", paper)
    assert {one.y for one in found.standings} == {
        "imagenet-sketch",
        "imagenet-vid-robust_pm0",
        "imagenet-vid-robust_pm10",
    }
    own = {one.y: one.robustness for one in found.standings}
    scores = {f"pm-{one.k}": one.accuracy for one in pm_scores_of(tmp_path / "kept", root)}
    for k in (0, 10):
        one = own[f"imagenet-vid-robust_pm{k}"]
        assert one.shifted == pytest.approx(100 * scores[f"pm-{k}"].value)
        assert one.images == (10, 10)
    assert own["imagenet-vid-robust_pm10"].shifted < own["imagenet-vid-robust_pm0"].shifted
    (alone,) = place(tmp_path / "kept", paper, suite="own-shifts").standings
    assert alone.y == "imagenet-sketch"
    grid = load_grid(tmp_path / "kept")
    assert {"vid-robust-pm0", "vid-robust-pm10", "imagenet-sketch"} <= set(grid.settings)
    assert grid.column("vid-robust-pm10")[0] == pytest.approx(100 * scores["pm-10"].value)
    assert grid.settings["vid-robust-pm10"].clean == "imagenet-val-vid-robust"


def pm_scores_of(store: Path, root: Path) -> tuple[PmScore, ...]:
    frames = open_parts(store, suite="own-videos")[2]
    return pm_scores(frames, read_frame_sets(root))


def test_a_stores_own_zero_is_a_percentage(paper: Grid) -> None:
    zero = [Score("val", 0.0, 100, measured=True), Score("imagenetv2", 0.0, 100, measured=True)]
    assert not any("percentages" in one for one in place(zero, paper).warnings)


def test_store_unlike_the_leaderboard_is_reported(fill: Callable[..., FileStore]) -> None:
    store = str(fill("s", {"a": 0.9}).location).removeprefix("file://")
    board = load_grid("robustbench-cifar10")
    warnings = place(scores_of_store(store, None, board)[0], board).warnings
    assert any(shows(one, "15 corruptions × 5", "mnist-c") for one in warnings)
    assert any("digits (mnist-c)" in one for one in warnings)


def test_store_of_other_classes_is_reported(fill: Callable[..., FileStore], paper: Grid) -> None:
    """Ten digits are not ImageNet's validation images, whatever their conditions are called."""
    store = str(fill("s", {"a": 0.9}).location).removeprefix("file://")
    message = "10 of digits: the two are not comparable"
    assert any(message in one for one in place(scores_of_store(store, None, paper)[0], paper).warnings)


def test_other_input_size_is_reported_once(fill: Callable[..., FileStore], paper: Grid) -> None:
    store = str(fill("s", {"a": 0.8}, suite="imagenet-c").location).removeprefix("file://")
    scores, _ = scores_of_store(store, None, paper)
    assert {one.preprocessing for one in scores} == {"resize 256, crop 224"}
    (message,) = [one for one in place(scores, paper).warnings if "own resize and crop" in one]
    assert shows(message, "val and 70 more", "'resize 256, crop 224'")


def test_suites_of_natural_shifts_have_the_testbeds_names() -> None:
    """Every dataset of theirs is a setting of the grid, but frames, ImageNet-D and icons, which it lacks."""
    from beaufort.suites import SHIFT_SUITE_NAMES, get_suite
    from beaufort.testbed.stored_accuracies import PART_SETTINGS

    grid, missing = load_grid("paper"), {"imagenet-d", "imagenet-val-imagenet-d", "vid-robust-frames"}
    for name in SHIFT_SUITE_NAMES:
        for part in get_suite(name).parts:
            if (
                part.name in missing
                or part.name == "ytbb-robust-frames"
                or part.dataset in ("icons-50", "imagenet-x")
            ):
                continue
            setting = grid.setting(PART_SETTINGS.get(part.name, part.name))
            clean = part.counterpart and grid.setting(PART_SETTINGS[part.counterpart]).name
            assert setting.clean == clean
            assert (setting.convention == "subset") == (part.convention == "restricted")
