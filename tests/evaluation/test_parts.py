"""Suites of several datasets, and stored corrupted images, each with its clean condition."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from beaufort import corrupt, evaluate
from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data import from_arrays, prepare
from beaufort.evaluation import RunOptions
from beaufort.models import as_model
from beaufort.report import to_text_of_several
from beaufort.results import gate, open_parts, open_results, score, shift_scores
from beaufort.results._match import ResultsError
from beaufort.store import FileStore
from beaufort.suites import Suite, get_suite, parse_suite
from beaufort.suites.conditions import Condition
from beaufort.suites.shifts import register_shift
from beaufort.testing._contracts import example_image
from tests.commands import invoke, shows

SUITE = """
name: two-worlds
version: 1
title: Toys and animals
parts:
  - dataset: toys
    title: Toys, in memory
    scale: cifar
    corruptions: [contrast, brightness]
    severities: [1, 5]
    labels:
      round: [0, 1, 2]
      square: [3]
      flat: [4, 5]
  - dataset: animals
    title: Animals, from the disk
    scale: cifar
    corruptions: [fog]
    severities: [2, 3]
    labels: cifar-10
  - dataset: drawings
    title: Drawings of toys
    labels: {round: [0, 1, 2], square: [3], flat: [4, 5]}
    convention: all
    counterpart: toys
"""

MODELS = """
import numpy as np
from beaufort.models import as_model

def make(seed, name):
    weights = np.random.default_rng(seed).normal(0, 1, (10, 32 * 32 * 3)).astype(np.float32)
    def predict(images):
        return images.reshape(len(images), -1).astype(np.float32) @ weights.T / 3000
    return as_model(predict, name=name, classes=10, version=str(seed))

def one():
    return make(1, "one")

def two():
    return make(2, "two")
"""

COUNT = 40


def make_images(count: int, first: int = 0) -> Any:
    return np.stack([example_image(32, 32, variant=first + i) for i in range(count)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data in three layouts: class folders, CIFAR-10-C's arrays, class folders again."""
    monkeypatch.chdir(tmp_path)
    names = ("flat", "round", "square")
    for root, count, first in (("toys", COUNT, 0), ("drawings", COUNT // 2, 500)):
        for number, image in enumerate(make_images(count, first)):
            path = tmp_path / root / names[number % 3] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
    stored = tmp_path / "CIFAR-10-C"
    stored.mkdir()
    np.save(stored / "fog.npy", make_images(5 * COUNT, 100))
    np.save(stored / "labels.npy", np.tile(np.arange(COUNT) % 10, 5))
    (tmp_path / "two.yaml").write_text(SUITE)
    (tmp_path / "nets.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


DATA = {"toys": "toys", "animals": "cifar10-c:CIFAR-10-C", "drawings": "drawings"}


@pytest.mark.usefixtures("folder")
def test_one_run_on_three_datasets_of_different_classes() -> None:
    suite = parse_suite(SUITE)
    models = ["python:nets:one", "python:nets:two"]
    found = evaluate(models, suite, DATA, "kept")
    seen = {result.condition: result for result in found.results if result.model == "one"}
    assert list(seen) == [
        "toys",
        *(f"toys/{name}@{severity}" for name in ("contrast", "brightness") for severity in (1, 5)),
        *("animals/fog@2", "animals/fog@3", "drawings"),
    ]
    assert {result.images for result in seen.values()} == {COUNT, COUNT // 2}
    assert "6 of 10 outputs" in seen["toys"].labels
    assert "convention all" in seen["drawings"].labels
    assert seen["animals/fog@2"].labels.startswith("labels are numbers of outputs")
    assert all(result.reused for result in evaluate(models, suite, DATA, "kept").results)

    parts = open_parts("kept")
    assert [part.suite.name for part in parts] == ["toys", "animals", "drawings"]
    assert [part.stored for part in parts] == [False, True, False]
    scores = [score(part, calibration=False) for part in parts]
    by_condition = {
        (one.model, str(condition)): value.value
        for part in scores
        for one in part.models
        for condition, value in one.conditions.items()
    }
    for result in found.results:
        assert by_condition[result.model, result.condition] == pytest.approx(result.accuracy)
    with pytest.raises(ResultsError, match="toys, animals, drawings"):
        open_results("kept")


@pytest.mark.usefixtures("folder")
def test_a_shift_stands_beside_its_own_clean_condition() -> None:
    found = evaluate(["python:nets:one"], parse_suite(SUITE), DATA, "kept")
    accuracy = {result.condition: result.accuracy for result in found.results}
    toys, animals, drawings = shift_scores([score(part, calibration=False) for part in open_parts("kept")])
    mean = np.mean([value for name, value in accuracy.items() if name.startswith("toys/")])
    assert toys.accuracy.value == pytest.approx(mean)
    assert toys.clean is not None
    assert toys.drop is not None
    assert (toys.paired, toys.counterpart) == (True, "toys")
    assert toys.drop.value == pytest.approx(accuracy["toys"] - mean)
    assert toys.drop.low < toys.drop.value < toys.drop.high
    assert (animals.clean, animals.drop, animals.counterpart) == (None, None, None)
    assert animals.accuracy.value == pytest.approx(
        (accuracy["animals/fog@2"] + accuracy["animals/fog@3"]) / 2
    )
    assert (drawings.paired, drawings.counterpart) == (False, "toys")
    assert drawings.drop is not None
    assert drawings.drop.value == pytest.approx(accuracy["toys"] - accuracy["drawings"])
    assert drawings.drop.low < drawings.drop.value < drawings.drop.high


@pytest.mark.usefixtures("folder")
def test_command_line_on_three_datasets() -> None:
    assert "ok: two-worlds 1, 9 conditions" in invoke("validate", "two.yaml")
    options = ["--suite", "two.yaml", "--store", "kept"]
    for name, source in DATA.items():
        options += ["--data", f"{name}={source}"]
    models = ["--model", "python:nets:one", "--model", "python:nets:two"]
    assert "100 images" in invoke("run", *models, *options, "--dry-run")
    output = invoke("run", *models, *options)
    assert shows(output, "animals@1", "40 images", "4 cells")
    assert shows(output, "one on toys", "two on toys", "3 classes", "6 of 10 outputs")

    text = invoke("report", "kept", "--format", "md")
    assert text.startswith("# Toys and animals")
    assert "| drawings | one | toys |" in text
    assert "## Animals, from the disk" in text
    rows = invoke("report", "kept", "--format", "csv").splitlines()
    assert sum(row.startswith("model,condition") for row in rows) == 1
    assert any(",animals/fog@2," in row for row in rows)
    facts = json.loads(invoke("report", "kept", "--format", "json"))
    assert {row["part"]: row["counterpart"] for row in facts["shifts"]} == {
        "toys": "toys",
        "animals": None,
        "drawings": "toys",
    }
    invoke("report", "kept", "-o", "report.html")
    page = Path("report.html").read_text()
    assert page.count("<iframe") == 2
    assert "Content-Security-Policy" in page
    numbers = list(csv.DictReader(invoke("report", "kept", "--format", "csv").splitlines()))
    means = [(row["dataset"], row["model"]) for row in numbers if row["metric"] == "mean_accuracy"]
    assert sorted(means) == sorted((name, model) for name in DATA for model in ("one", "two"))
    labels = re.findall(r"\\label{(.*)}", invoke("report", "kept", "--format", "latex"))
    assert "tab:beaufort-animals-headline" in labels
    assert len(set(labels)) == len(labels)

    _, front, rest = invoke("report", "kept", "--format", "card").split("---\n", 2)
    index = yaml.safe_load(front)["model-index"]
    assert {one["name"]: [result["dataset"]["type"] for result in one["results"]] for one in index} == {
        "one": list(DATA),
        "two": list(DATA),
    }
    assert [line for line in rest.splitlines() if line.startswith("## ")] == ["## Robustness"]

    output = invoke("compare", "one", "two", "--store", "kept")
    assert [line.split()[1] for line in output.splitlines() if line.startswith("== ")] == list(DATA)
    compared = json.loads(invoke("compare", "one", "two", "--store", "kept", "--json"))
    assert [part["dataset"] for part in compared["parts"]] == list(DATA)

    limits = ["--store", "kept", "--max-drop", "100", "--junit", "gate.xml"]
    output = invoke("gate", "one", "--reference", "two", *limits)
    assert "gate, all datasets: passed" in output
    assert Path("gate.xml").read_text().count("<testcase") == 3
    verdict = json.loads(invoke("gate", "one", "--require", "99", "--store", "kept", "--json", code=1))
    assert verdict["decision"] == "failed"
    assert [part["dataset"] for part in verdict["parts"]] == list(DATA)

    # animals have no clean images, drawings no shifted ones
    limits = ["--store", "kept", "--require", "clean=0", "--require", "worst=0", "--github-summary"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
        output = invoke("gate", "one", *limits, "--junit", "gate.xml")
    assert "gate, all datasets: passed" in output
    assert [line for line in output.splitlines() if line.startswith("==")] == [f"== {name}" for name in DATA]
    assert Path("gate.xml").read_text().count("<testcase") == 4
    assert all(f"one, on {name};" in Path("summary.md").read_text() for name in DATA)
    output = invoke("gate", "one", "--require", "worst=0", "--store", "kept")
    assert shows(output, "no limit", "drawings")
    assert "== drawings" not in output

    output = invoke("power", "one", "--store", "kept", "--drop", "20")
    assert [line for line in output.splitlines() if line.startswith("==")] == [f"== {name}" for name in DATA]
    plans = json.loads(invoke("power", "one", "--store", "kept", "--drop", "20", "--json"))["parts"]
    assert [plan["suite"] for plan in plans] == [f"{name}@1" for name in DATA]
    measured = json.loads(
        invoke("power", "one", "--reference", "two", "--store", "kept", "--drop", "20", "--json")
    )
    assert all(shows(plan["source"], "one", "two") for plan in measured["parts"])


@pytest.mark.usefixtures("folder")
def test_images_that_are_a_shift_by_themselves_are_not_called_clean() -> None:
    """Accuracy on icons of another style is not reported as clean accuracy."""
    head, *_, drawings = re.split(r"(?=  - dataset)", SUITE)
    Path("one.yaml").write_text(head + drawings.replace("    counterpart: toys\n", ""))
    run = ["run", "--model", "python:nets:one", "--suite", "one.yaml", "--data", "drawings"]
    output = invoke(*run, "--store", "one")
    assert "model  Mean accuracy\n" in output
    assert "clean accuracy" not in output
    found = evaluate(["python:nets:one"], "one.yaml", "drawings")
    assert "Clean accuracy" not in found._repr_html_()
    gated = gate(open_results("one"), min_clean=0.01)
    assert gated.checks[0].requirement == "accuracy at least 1 %"
    for format in ("md", "latex", "card"):
        text = invoke("report", "one", "--format", format)
        assert "Too few images" in text
        assert "Clean accuracy (%)" not in text
    ids = open_results("one").predictions("one").ids
    rows = [f"{name},{'ab'[place % 2]}" for place, name in enumerate(ids)]
    Path("halves.csv").write_text("\n".join(["id,half", *rows]) + "\n")
    for format in ("md", "latex", "html"):
        invoke("report", "one", "--format", format, "--group-by", "halves.csv:half", "-o", "text")
        text = Path("text").read_text(encoding="utf-8")
        assert "drawings: " in text
        assert "worst group" in text
    with pytest.raises(OptionError, match=r"labels.*two-worlds@1"):
        evaluate(["python:nets:one"], "one.yaml", "drawings", labels="identity")


def test_a_dataset_of_one_class_is_reported(tmp_path: Path) -> None:
    """With one class, every prediction is correct, so an accuracy of 100 % needs a warning."""
    three = as_model(lambda shown: shown.mean(axis=(1, 2)), name="three", classes=3, version="1")
    data = from_arrays("toys", make_images(4), np.zeros(4, int), classes=("red",))
    suite = Suite(name="alone", version=1, dataset="toys")
    message = "Only one class competes, so three"
    alone = evaluate([three], suite, data, tmp_path / "alone", labels={"red": [1]})
    assert [one.accuracy for one in alone.results] == [1]
    assert any(note.startswith(message) for note in alone.scores().notes)
    assert message in to_text_of_several([score(open_results(tmp_path / "alone"))], "md")
    everything = evaluate([three], suite, data, labels={"red": [1]}, options=RunOptions(convention="all"))
    assert not any("Only one class" in note for note in everything.scores().notes)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_two_processes_do_the_same() -> None:
    suite = parse_suite(SUITE)
    alone = evaluate(["python:nets:one"], suite, DATA, "alone")
    shared = evaluate(["python:nets:one"], suite, DATA, "shared", engine="processes:2")
    assert [replace(one, reused=False) for one in alone.results] == list(shared.results)


@pytest.mark.usefixtures("folder")
def test_a_part_is_called_as_the_suite_calls_it() -> None:
    evaluate(["python:nets:one"], parse_suite(SUITE), DATA, "kept")
    renamed = parse_suite(SUITE.replace("toys", "things"))
    data = {"things": "toys", "animals": DATA["animals"], "drawings": "drawings"}
    again = evaluate(["python:nets:one"], renamed, data, "kept")
    assert all(result.reused for result in again.results)  # a name changes no prediction
    things = open_parts("kept", suite=renamed)[0]
    assert things.dataset == "things"
    assert str(next(iter(things.cells["one"]))) == "things"


@pytest.mark.usefixtures("folder")
def test_mistakes_in_data_by_name() -> None:
    suite = parse_suite(SUITE)
    with pytest.raises(OptionError, match=r"3 datasets.*toys, animals, drawings"):
        evaluate(["python:nets:one"], suite, "toys", "kept")
    with pytest.raises(OptionError, match=r"'toy' of two-worlds@1"):
        evaluate(["python:nets:one"], suite, {"toy": "toys"}, "kept")
    with pytest.raises(OptionError, match=r"animals, drawings.*animals=PATH"):
        evaluate(["python:nets:one"], suite, {"toys": "toys"}, "kept")
    with pytest.raises(OptionError, match="two-worlds@1"):
        evaluate(["python:nets:one"], suite, DATA, "kept", labels="identity")
    with pytest.raises(OptionError, match="precision"):
        evaluate(["python:nets:one"], suite, DATA, "kept", options=RunOptions(precision=0.1))


# Published files


def cifar10_c(root: Path, count: int = 20, *, only: tuple[str, ...] = ()) -> Path:
    root.mkdir()
    for number, name in enumerate(only or get_suite("cifar10-c").corruptions):
        rng = np.random.default_rng(number)
        np.save(root / f"{name}.npy", rng.integers(0, 256, (5 * count, 32, 32, 3), np.uint8))
    np.save(root / "labels.npy", np.tile(np.arange(count) % 10, 5))
    return root


def mean_net() -> Any:
    return as_model(
        lambda images: images.reshape(len(images), -1)[:, :10].astype(np.float32),
        name="net",
        classes=10,
        version="1",
    )


def test_published_cifar10_c_in_one_command(tmp_path: Path) -> None:
    root = cifar10_c(tmp_path / "CIFAR-10-C")
    found = evaluate([mean_net()], "cifar10-c", f"cifar10-c:{root}", tmp_path / "kept")
    assert len(found.results) == 75
    assert any("no clean accuracy" in note for note in found.notes)
    fog = np.load(root / "fog.npy")[40:60].reshape(20, -1)[:, :10]
    expected = (fog.argmax(axis=1) == np.arange(20) % 10).mean()
    by_name = {result.condition: result.accuracy for result in found.results}
    assert by_name["CIFAR-10-C/fog@3"] == expected  # the pixels on the disk, and no fog on top
    assert len(found.predictions) == 1
    scores = score(open_results(tmp_path / "kept"))
    assert scores.suite.name == found.scores(calibration=False).suite.name == "cifar10-c"
    assert scores.models[0].clean is None
    assert scores.models[0].metrics["mean_accuracy"].value == pytest.approx(np.mean(list(by_name.values())))
    again = evaluate([mean_net()], "cifar10-c", str(root), tmp_path / "kept")  # the kind is found out
    assert all(result.reused for result in again.results)


def test_clean_images_beside_stored_images(tmp_path: Path) -> None:
    root = cifar10_c(tmp_path / "CIFAR-10-C")
    images = np.random.default_rng(99).integers(0, 256, (20, 32, 32, 3), np.uint8)
    names = get_suite("cifar10-c")
    clean = from_arrays("cifar10-test", images, labels=np.arange(20) % 10)
    clean = replace(clean, ids=[f"test/{i}" for i in range(20)])
    found = evaluate(
        [mean_net()], names, f"cifar10-c:{root}", tmp_path / "kept", options=RunOptions(clean=clean)
    )
    assert found.results[0].condition == "CIFAR-10-C"
    assert score(open_results(tmp_path / "kept"), calibration=False).models[0].clean is not None
    other = replace(clean, labels=(np.arange(20) + 1) % 10)
    with pytest.raises(ImageFileError, match="same images and labels"):
        evaluate([mean_net()], names, f"cifar10-c:{root}", tmp_path / "kept", options=RunOptions(clean=other))


def test_mistakes_with_stored_images(tmp_path: Path) -> None:
    root = cifar10_c(tmp_path / "CIFAR-10-C", only=("fog",))
    with pytest.raises(OptionError, match=r"gaussian_noise\.npy not found.*--corruption fog"):
        evaluate([mean_net()], "cifar10-c", f"cifar10-c:{root}", tmp_path / "kept")
    with pytest.raises(OptionError, match=r"cifar10-c:"):
        evaluate([mean_net()], "cifar10-c", f"cifar10-c:{root}#fog@3", tmp_path / "kept")
    plain = from_arrays("a", np.zeros((2, 32, 32, 3), np.uint8), labels=np.zeros(2, int))
    with pytest.raises(OptionError, match="clean requires stored images"):
        evaluate([mean_net()], "cifar10-c", plain, tmp_path / "kept", options=RunOptions(clean=plain))


def test_published_imagenet_c_with_and_without_groups(tmp_path: Path) -> None:
    suite = Suite(
        name="few", version=1, dataset="imagenet-val", scale="imagenet", corruptions=("fog",), severities=(3,)
    )
    ids = ("n01440764", "n01443537")
    for root in ("plain/fog/3", "grouped/weather/fog/3"):
        for number, name in enumerate(ids):
            path = tmp_path / root / name / f"{number}.JPEG"
            path.parent.mkdir(parents=True)
            Image.new("RGB", (224, 224), (90 * number, 0, 0)).save(path)
    net = as_model(
        lambda images: np.eye(1000, dtype=np.float32)[np.rint(images[:, 0, 0, 0] / 90).astype(int)],
        name="net",
        classes=1000,
        version="1",
    )
    for root in ("plain", "grouped"):
        found = evaluate([net], suite, f"imagenet-c:{tmp_path / root}", tmp_path / root / "kept")
        assert [(one.condition, one.accuracy) for one in found.results] == [(f"{root}/fog@3", 1)]


def test_published_mnist_c_has_its_clean_digits(tmp_path: Path) -> None:
    suite = get_suite("mnist-c")
    for number, name in enumerate(("identity", *suite.corruptions)):
        folder = tmp_path / "mnist_c" / name
        folder.mkdir(parents=True)
        rng = np.random.default_rng(number)
        np.save(folder / "test_images.npy", rng.integers(0, 256, (12, 28, 28, 1), np.uint8))
        np.save(folder / "test_labels.npy", np.arange(12) % 10)
    found = evaluate([mean_net()], "mnist-c", f"mnist-c:{tmp_path / 'mnist_c'}", tmp_path / "kept")
    assert [one.condition for one in found.results][:2] == ["mnist_c", "mnist_c/shot_noise"]
    assert len(found.results) == 16
    assert score(open_results(tmp_path / "kept"), calibration=False).suite.name == "mnist-c"
    (tmp_path / "mnist_c" / "identity").rename(tmp_path / "elsewhere")
    with pytest.raises(OptionError, match=r"clean images.* mean"):
        evaluate([mean_net()], "mnist-c", f"mnist-c:{tmp_path / 'mnist_c'}", tmp_path / "kept")


def test_two_copies_of_stored_images_do_not_mix(tmp_path: Path) -> None:
    suite = replace(get_suite("cifar10-c"), corruptions=("fog",), name="mine")
    for seed in (1, 2):
        root = tmp_path / str(seed) / "C"
        root.mkdir(parents=True)
        pixels = np.random.default_rng(seed).integers(0, 256, (50, 32, 32, 3), np.uint8)
        np.save(root / "fog.npy", pixels)
        np.save(root / "labels.npy", np.tile(np.arange(10), 5))
        found = evaluate([mean_net()], suite, f"cifar10-c:{root}", tmp_path / "kept")
        wanted = np.mean([result.accuracy for result in found.results])
        scores = score(open_results(tmp_path / "kept"), calibration=False)
        assert scores.models[0].metrics["mean_accuracy"].value == pytest.approx(wanted)


# Shifts of other kinds


@register_shift("test-shade")
class Shade:
    """Darken images by a level."""

    def __init__(self, level: str) -> None:
        self.amount = int(level or "50")

    def facts(self, *, seed: int) -> dict[str, Any]:
        return {"amount": self.amount}

    def apply(self, images: Any, *, ids: Any, seed: int) -> Any:
        return np.clip(images.astype(int) - self.amount, 0, 255).astype(np.uint8)


@register_shift("test-spite")
class Spite:
    """Has the model say anything but the truth."""

    def __init__(self, level: str) -> None:
        assert not level

    def facts(self, *, seed: int) -> dict[str, Any]:
        return {"seed": seed}

    def predict(self, model: Any, images: Any, *, ids: Any, labels: Any, space: Any, seed: int) -> Any:
        logits = model(images).copy()
        logits[np.arange(len(labels)), labels] = -100
        return logits


def test_shifts_of_other_kinds_in_a_suite(tmp_path: Path) -> None:
    suite = Suite(
        name="others", version=1, dataset="toys", shifts=("test-shade@30", "test-shade@200", "test-spite")
    )
    data = from_arrays("toys", make_images(30), labels=np.arange(30) % 10)
    found = evaluate([mean_net()], suite, data, tmp_path / "kept", seed=3)
    accuracy = {one.condition: one.accuracy for one in found.results}
    assert list(accuracy) == ["toys", "toys/test-shade@30", "toys/test-shade@200", "toys/test-spite"]
    assert accuracy["toys/test-spite"] == 0
    assert all(one.reused for one in evaluate([mean_net()], suite, data, tmp_path / "kept", seed=3).results)
    scores = score(open_results(tmp_path / "kept"), calibration=False)
    assert list(scores.models[0].corruptions) == ["test-shade", "test-spite"]
    shade = (accuracy["toys/test-shade@30"] + accuracy["toys/test-shade@200"]) / 2
    assert scores.models[0].metrics["mean_accuracy"].value == pytest.approx(shade / 2)
    (row,) = shift_scores([scores])
    assert (row.part, row.counterpart) == ("toys", "toys")  # the dataset, not the suite
    assert row.drop is not None
    assert row.drop.value == pytest.approx(accuracy["toys"] - shade / 2)
    text = to_text_of_several([scores], "md")
    assert "test-spite" in text
    kept = [cell.condition_name for cell in FileStore(tmp_path / "kept").cells().values()]
    assert Condition.parse("toys/test-shade@30") in {Condition.parse(name) for name in kept}


# The real thing: CIFAR-10's test images for a model of ImageNet, and ImageNet photos on a disk

REAL = """
name: small-and-large
version: 1
parts:
  - dataset: cifar10-test
    scale: cifar
    corruptions: [contrast]
    severities: [1, 5]
    convention: restricted
    labels:
      airplane: [404, 895]
      automobile: [436, 511, 609, 627, 656, 661, 751, 817]
      bird: [7, 8, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20]
      cat: [281, 282, 283, 284, 285]
      deer: [351, 352, 353]
      dog: [151, 153, 207, 208, 235, 245, 254, 263]
      frog: [30, 31, 32]
      horse: [339]
      ship: [484, 510, 554, 625, 628, 724, 780, 814, 914]
      truck: [555, 569, 675, 717, 864, 867]
  - dataset: imagenet-photos
    scale: imagenet
    corruptions: [brightness]
    severities: [1, 5]
    labels: imagenet-1k
    prepare: [resize 256, crop 224]
"""


def test_cifar_and_imagenet_in_one_run(shared: Path, tmp_path: Path) -> None:
    network = shared / "data" / "imagenet_models" / "mobilenet_v1_0.25_128.onnx"
    grid = np.asarray(Image.open(shared / "data" / "cifar10_test" / "cifar10_test_grid_100x100.png"))
    tiles = grid.reshape(100, 32, 100, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)[:60]
    lines = (shared / "data" / "cifar10_test" / "labels.csv").read_text().splitlines()[1:61]
    names = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
    cifar = from_arrays(
        "cifar10-test", tiles, labels=np.array([int(line.split(",")[1]) for line in lines]), classes=names
    )
    photos = tmp_path / "photos"
    with zipfile.ZipFile(shared / "data" / "imagenet_val_1k" / "images_0.zip") as archive:
        rows = (shared / "data" / "imagenet_val_1k" / "labels.csv").read_text().splitlines()[1:41]
        for row in rows:
            file, _, _, wnid = row.split(",")[:4]
            photo = Image.open(io.BytesIO(archive.read(file))).convert("RGB")
            small = prepare(np.asarray(photo), get_suite("imagenet-c").prepare)
            for severity in (1, 5):
                bright = corrupt(small, "brightness", severity=severity)
                path = photos / "brightness" / str(severity) / wnid / file
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(bright).save(path, quality=85)
    suite = parse_suite(REAL)
    data: dict[str, Any] = {"cifar10-test": cifar, "imagenet-photos": f"imagenet-c:{photos}"}
    found = evaluate([f"onnx:{network}"], suite, data, tmp_path / "kept")
    accuracy = {result.condition: result.accuracy for result in found.results}
    assert accuracy["imagenet-photos/brightness@1"] > accuracy["imagenet-photos/brightness@5"] > 0.05
    assert accuracy["cifar10-test"] > 0.1  # chance, at 32 × 32
    words = {result.condition: result.labels for result in found.results}
    assert words["cifar10-test"].startswith("10 classes, from 57 of 1,000 outputs")
    assert words["imagenet-photos/brightness@5"].startswith("40 classes, from 40 of 1,000 outputs")
    scores = [score(part, calibration=False) for part in open_parts(tmp_path / "kept")]
    text = to_text_of_several(scores, "md")
    assert "| cifar10-test, contrast | mobilenet" in text
    assert "| imagenet-photos, brightness | mobilenet" in text
