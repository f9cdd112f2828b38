"""Values left out one after the other: trained, scored, resumed, reported."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort._core.errors import ImageValueError, OptionError, UnknownNameError
from beaufort.cli import app
from beaufort.data import Problem, load_dataset, resized
from beaufort.studies.leave_out import experiment
from beaufort.studies.leave_out.value_report import value_score, values_csv, values_page

torch = pytest.importorskip("torch", reason="torch is not installed; the extra training has it")
pytest.importorskip("safetensors", reason="safetensors is not installed; the extra training has it")

from beaufort.data.protocols import split_by  # noqa: E402
from beaufort.studies.leave_out import leave_out, remarks  # noqa: E402
from beaufort.studies.leave_out.experiment import _kept_back, _slug  # noqa: E402
from beaufort.training import Recipe, open_training_data, train  # noqa: E402

NETWORK = """
from torch import nn

def make(classes=7):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, classes))
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("tiny_net.py").write_text(NETWORK, encoding="utf-8")


@pytest.fixture
def photos() -> str:
    """Red and green images of three cameras; camera z has its colors swapped."""
    rng = np.random.default_rng(0)
    Path("photos").mkdir()
    rows = []
    for number in range(120):
        label, camera = number % 2, "xyz"[number % 3]
        image = rng.integers(0, 60, (10, 12, 3), np.uint8)
        image[..., label if camera != "z" else 1 - label] += 150
        Image.fromarray(image).save(f"photos/{number}.png")
        rows.append(f"{number}.png,{('red', 'green')[label]},{camera},same")
    Path("photos/labels.csv").write_text(
        "\n".join(["file,label,camera,lens", *rows]) + "\n", encoding="utf-8"
    )
    return "photos"


@pytest.fixture
def recipe() -> Recipe:
    return Recipe(
        name="tiny", architecture="python:tiny_net:make", epochs=25, batch=16, optimizer="adam", rate=0.3
    )


def test_a_value_that_differs_is_found(photos: str, recipe: Recipe) -> None:
    found = leave_out(photos, "camera", recipe=recipe, output="out", side=8, seeds=2, device="cpu")
    scores = {one.value: one for one in found.values}
    assert list(scores) == ["x", "y", "z"]
    assert scores["z"].accuracy.value == 0
    assert scores["z"].seen is not None
    assert scores["z"].seen.value == 1
    assert scores["z"].drop is not None
    assert scores["z"].drop.low > 0
    assert all(one.accuracy.n == 40 and one.trained_on == 72 for one in found.values)
    assert all(len(one.by_seed) == 2 and one.cap == 1 and one.unread == 0 for one in found.values)
    # without x or y, half of the images contradict the others: there is nothing to learn
    assert [one.partition(":")[0] for one in found.failed] == [f"{v}, seed {s}" for v in "xy" for s in (0, 1)]
    assert Path("out/index.html").read_text(encoding="utf-8").count("<li>without ") == 4
    with Path("out/leave-out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["camera"] for row in rows] == ["x", "y", "z"]
    assert float(rows[2]["accuracy"]) == 0
    assert float(rows[2]["accuracy_high"]) > 0
    text = Path("out/index.html").read_text(encoding="utf-8")
    assert "above zero for: z" in text
    assert "over 2 training runs" in text
    assert "another training run" not in text


def test_existing_runs_are_reused(photos: str, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    first = leave_out(photos, "camera", recipe=recipe, output="out", side=8, device="cpu", only=["z"])
    from beaufort.training import loop

    def fail(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("trained again")

    monkeypatch.setattr(loop._Run, "_learn", fail)
    again = leave_out(photos, "camera", recipe=recipe, output="out", side=8, device="cpu", only=["z"])
    assert again.values == first.values


def test_without_images_of_seen_values(photos: str, recipe: Recipe) -> None:
    (one,) = leave_out(
        photos, "camera", recipe=recipe, output="out", side=8, seen=0, device="cpu", only=["z"]
    ).values
    assert (one.trained_on, one.seen, one.drop) == (80, None, None)


def test_errors_come_before_training(photos: str, recipe: Recipe) -> None:
    with pytest.raises(OptionError, match=r"'lens'.*values.*'same'"):
        leave_out(photos, "lens", recipe=recipe, output="out")
    with pytest.raises(UnknownNameError, match=r"'camra'.*'camera'\?"):
        leave_out(photos, "camra", recipe=recipe, output="out")
    with pytest.raises(UnknownNameError, match=r"camera of photos 'q'.*x, y, z"):
        leave_out(photos, "camera", recipe=recipe, output="out", only=["x", "q"])
    with pytest.raises(OptionError, match=r"seen.*1"):
        leave_out(photos, "camera", recipe=recipe, output="out", seen=1)
    with pytest.raises(OptionError, match=r"seeds.*0"):
        leave_out(photos, "camera", recipe=recipe, output="out", seeds=0)
    rows = Path("photos/labels.csv").read_text(encoding="utf-8")
    Path("photos/labels.csv").write_text(rows.replace("red", "green"), encoding="utf-8")
    with pytest.raises(OptionError, match=r"photos.*'green'"):
        leave_out(photos, "camera", recipe=recipe, output="out", side=8, device="cpu")
    assert not Path("out").exists()


def test_too_few_images_are_rejected_before_training(photos: str, recipe: Recipe) -> None:
    """Without x many images are left, without y only one of each class."""
    every = Path("photos/labels.csv").read_text(encoding="utf-8").splitlines()
    rows = [row for row in every if ",y," in row or row.startswith(("file", "0.png", "3.png"))]
    Path("photos/labels.csv").write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(
        OptionError,
        match=r"camera=y.* 2.*2.*0",
    ):
        leave_out(photos, "camera", recipe=recipe, output="out", side=8, device="cpu")
    assert not Path("out").exists()


def test_fine_tuning_records_its_start(photos: str, recipe: Recipe) -> None:
    first = leave_out(photos, "camera", recipe=recipe, output="out", side=8, device="cpu", only=["z"])
    assert first.values[0].accuracy.value == 0
    tuned = replace(recipe, epochs=1, start="out/trained/z-seed0")
    leave_out(photos, "camera", recipe=tuned, output="tuned", side=8, device="cpu", only=["z"])
    text = "Training started from the weights of out/trained/z-seed0."
    page = Path("tuned/index.html").read_text(encoding="utf-8")
    assert text in page
    assert "1 value of camera" in page
    assert "out of training" not in page
    plain = Path("out/index.html").read_text(encoding="utf-8")
    assert text not in plain
    assert "1 value of camera" in plain
    (remark,) = remarks(first.values, first.unread, tuned.start)
    assert remark.startswith(text)


def test_a_start_trained_on_all_images_is_rejected(photos: str, recipe: Recipe) -> None:
    every = open_training_data(resized(load_dataset(photos), 8))
    train(recipe, every, output="every", device="cpu")
    with pytest.raises(OptionError, match="'every'"):
        leave_out(photos, "camera", recipe=replace(recipe, start="every"), output="out", side=8, device="cpu")
    assert not Path("out").exists()


@pytest.mark.parametrize("fraction", [0, 0.1])
def test_a_start_trained_on_another_value_is_rejected(photos: str, recipe: Recipe, fraction: float) -> None:
    """A model trained without z has seen y, and so have models that start from it."""
    short = replace(recipe, epochs=1)
    for start in ("", "out/trained/z-seed0"):
        leave_out(
            photos,
            "camera",
            recipe=replace(short, start=start),
            output="tuned" if start else "out",
            side=8,
            device="cpu",
            only="z",
            seen=fraction,
        )
    for name in ("out", "tuned"):
        tuned = replace(short, start=f"{name}/trained/z-seed0")
        message = f"'{name}/.* was trained on images of all values but z of photos.*camera=y"
        with pytest.raises(OptionError, match=message):
            leave_out(photos, "camera", recipe=tuned, output="more", side=8, device="cpu", only=["z", "y"])
    other = replace(short, start="tuned/trained/z-seed0", epochs=2)
    learned = open_training_data(resized(load_dataset(photos), 8).select(np.arange(7)))
    train(replace(short, start="tuned/trained/z-seed0"), learned, output="last", device="cpu")
    with pytest.raises(OptionError, match=r"'last'.*'tuned/trained/z-seed0'"):
        leave_out(photos, "camera", recipe=replace(other, start="last"), output="more", side=8, only="x")
    assert not Path("more").exists()


def test_a_run_that_ends_without_a_loss_is_rejected(photos: str, recipe: Recipe) -> None:
    wild = replace(recipe, optimizer="sgd", rate=999_999.0, weight_decay=999_999.0)
    with pytest.raises(OptionError, match=r"without z.*seed 0.* rate .*\b999999\b"):
        leave_out(photos, "camera", recipe=wild, output="out", side=8, device="cpu", only="z")


def test_the_command(photos: str) -> None:
    Path("tiny.yaml").write_text("architecture: conv1\nepochs: 3\nrate: 0.5\n", encoding="utf-8")
    command = [
        "leave-out",
        photos,
        "camera",
        "tiny.yaml",
        "--output",
        "out",
        "--side",
        "8",
    ]
    command += ["--only", "z", "--device", "cpu", "--set", "architecture=python:tiny_net:make"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "cannot be read" not in result.output
    assert result.stdout.splitlines()[0].startswith("camera")
    result = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(result.stdout)["values"][0]["value"] == "z"
    assert json.loads(result.stdout)["failed"][0].startswith("z, seed 0: its last loss is ")
    rows = Path("photos/labels.csv").read_text(encoding="utf-8").replace(",z,", ',"z, old",')
    Path("photos/labels.csv").write_text(rows + 'none.png,blue,x,same\n1.jpg,blue,"z, old",same\n')
    Image.new("RGB", (9, 9)).save("photos/1.jpg")
    named = [part if part != "z" else 'y,"z, old"' for part in command]
    result = CliRunner().invoke(app, [part if part != "out" else "more" for part in named])
    assert result.exit_code == 0, result.output
    assert "\nz, old  41 " in result.output
    assert "z, old: 1 of 41 images" in result.output
    assert "(first: none.png: " in result.output
    result = CliRunner().invoke(app, [*command, "--only", " , "])
    assert result.exit_code == 2
    assert "got ' , '" in result.output
    result = CliRunner().invoke(app, [*command[:2], "lens", *command[3:]])
    assert result.exit_code == 2
    assert "at least two values" in result.output


def test_tables_and_pages_of_numbers(recipe: Recipe) -> None:
    right = np.array([[True, False, True, True], [True, True, True, True]])
    plain = value_score("a & b", 9, right, None, cap=0.75, unread=2)
    assert plain.accuracy.value == 0.875
    assert plain.by_seed == (0.75, 1.0)
    rows = list(csv.DictReader(values_csv("season", [plain]).splitlines()))
    assert (rows[0]["season"], rows[0]["seen"], rows[0]["lowest_seed"]) == ("a & b", "", "0.750000")
    unread = [Problem("x.png", "it is empty"), Problem("y.png", "it is cut off")]
    text = values_page("season", "photos", recipe, [plain], unread)
    assert "a &amp; b: 1 of 4 images" in text
    assert "75.0 %" in text
    *_, tuned = remarks([plain], [], "before")
    assert tuned.endswith("accuracy above 75.0 % is chance, unless before knows the class.")
    assert "(first: x.png: " in text
    assert "1 value of season" in text
    assert "over 2 training runs" in text
    one = values_page(
        "season", "photos", recipe, [value_score("a", 9, right[:1], None, cap=1.0, unread=0)], []
    )
    assert "between training runs" in one
    safe = value_score("c", 9, right, right, cap=1.0, unread=0)
    text = values_page("season", "photos", recipe, [safe, plain], [])
    assert "2 values of season" in text
    assert "cannot be read" not in text
    assert values_csv("seen", [plain]).startswith("value of seen,images,trained_on,")


@pytest.mark.parametrize("kept", [True, False])
def test_every_image_is_read_once_if_all_fit_into_memory(
    photos: str, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    data, read = load_dataset(photos), list[int]()
    pixels = type(data.pixels)
    original = pixels.read

    def noted(self: Any, index: int) -> Any:
        read.append(index)
        return original(self, index)

    monkeypatch.setattr(pixels, "read", noted)
    monkeypatch.setattr(experiment, "_CACHE_BYTES", 120 * 8 * 8 * 3 - (not kept))
    usable, _ = experiment.readable(data, 8)
    assert sorted(read) == list(range(120))
    plain = resized(data, 8)
    some = np.array([3, 7, 119])
    assert usable.digest() == plain.digest()
    assert usable.select(some).digest() == plain.select(some).digest()  # or networks would be trained again
    read.clear()
    assert np.array_equal(usable[3].image, resized(load_dataset(photos), 8)[3].image)
    assert read == ([3] if kept else [3, 3])


def test_an_image_that_cannot_be_read_is_counted_once(photos: str, recipe: Recipe) -> None:
    Path("photos/0.png").write_bytes(b"not an image")  # of camera x
    Path("photos/5.png").unlink()  # of camera z
    found = leave_out(photos, "camera", recipe=recipe, output="out", side=8, device="cpu")
    assert [one.id for one in found.unread] == ["0.png", "5.png"]
    assert [(one.accuracy.n, one.unread) for one in found.values] == [(39, 1), (40, 0), (39, 1)]
    assert [one.trained_on for one in found.values] == [71, 70, 71]
    assert "2 images cannot be read" in Path("out/index.html").read_text(encoding="utf-8")


def test_images_are_read_before_training(photos: str, recipe: Recipe) -> None:
    Image.new("L", (12, 10)).save("photos/117.png")  # of camera x, which is trained on last
    with pytest.raises(
        ImageValueError,
        match=r"\(10.*12.*1\).*117\.png.*\(10.*12.*3\).*0\.png",
    ):
        leave_out(photos, "camera", recipe=recipe, output="out", device="cpu")
    for number in range(1, 120, 3):
        Path(f"photos/{number}.png").unlink()
    with pytest.raises(OptionError, match=r"camera=y .* \(first: 1\.png"):
        leave_out(photos, "camera", recipe=recipe, output="out", side=8, device="cpu")
    assert not Path("out").exists()


def test_keeping_images_back_leaves_every_class_in_training() -> None:
    labels = np.array([0] * 30 + [1, 2, 2])
    for held_out in range(20):
        chosen = split_by(_Labels(labels), "x", np.arange(33) == held_out)
        train_on, kept_back = _kept_back(chosen, 0.9, labels)
        assert set(labels[train_on]) == {0, 1, 2}
        assert len(kept_back) == 29
        assert sorted([*train_on, *kept_back]) == chosen.train.tolist()
    with pytest.raises(OptionError, match=r"32 images .*3 classes.*\b30\b"):
        _kept_back(chosen, 0.95, labels)


class _Labels:
    """A table of which only labels matter."""

    name = "labels"

    def __init__(self, labels: Any) -> None:
        self.labels, self.ids = labels, [str(number) for number in range(len(labels))]

    def column(self, name: str) -> list[str]:
        return [name] * len(self.ids)


def test_values_are_files_of_their_own() -> None:
    values = ["nikon", "Nikon", "NIKON", "a b", "a-b", _slug("a b"), "../up", "Ä", "1", "1.0"]
    slugs = [_slug(value).lower() for value in values]
    assert len(set(slugs)) == len(values)
    assert all("/" not in one and one[0].isalnum() for one in slugs)


def test_problems_of_the_data_are_reported(photos: str) -> None:
    shard = Problem("second.tar", "the archive is cut short")
    usable, problems = experiment.readable(replace(load_dataset(photos), problems=(shard,)), 8)
    assert problems == (shard,)
    assert len(open_training_data(usable)) == len(usable) == 120
