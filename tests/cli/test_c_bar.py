"""C-bar in use: shown in memory, written to disk, read back, and listed with ImageNet-C."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort.cli._app import app
from beaufort.corruptions import get_corruption_names
from beaufort.results import open_results
from beaufort.testing._contracts import example_image

MODEL = """
import numpy as np
from beaufort.models import as_model

def toy():
    weights = np.random.default_rng(3).normal(0, 1, (10, 8 * 8 * 3)).astype(np.float32)

    def predict(images):
        step = images.shape[1] // 8
        return images[:, ::step, ::step].reshape(len(images), -1).astype(np.float32) @ weights.T / 900

    return as_model(predict, name="toy", classes=10, version="1")
"""
TOY = ["--model", "python:toybar:toy"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small images in `toys`, larger ones in the class directories of `photos`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toybar.py").write_text(MODEL)
    (tmp_path / "toys").mkdir()
    np.save(tmp_path / "toys" / "images.npy", np.stack([example_image(32, 32, variant=i) for i in range(12)]))
    np.save(tmp_path / "toys" / "labels.npy", np.arange(12) % 10)
    for number in range(2):
        file = tmp_path / "photos" / f"class{number}" / "a.JPEG"
        file.parent.mkdir(parents=True)
        Image.fromarray(example_image(230, 240, variant=number)).save(file)
    return tmp_path


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_cifar10_c_bar_made_and_in_memory_agree(folder: Path) -> None:
    names = get_corruption_names("cifar10-c-bar")
    run = ["run", *TOY, "--suite", "cifar10-c-bar", "--labels", "identity"]
    invoke(*run, "--data", "toys", "--store", "memory")
    assert json.loads(invoke("make", "cifar10-c-bar", "toys", "bar", "--json"))["done"] == 11
    assert sorted(path.stem for path in (folder / "bar").glob("*.npy")) == sorted([*names, "labels"])
    invoke(*run, "--data", "cifar10-c-bar:bar", "--config", "clean=toys", "--store", "disk")
    memory, disk = (open_results(store).predictions("toy") for store in ("memory", "disk"))
    assert [one.done for one in memory.conditions] == [one.done for one in disk.conditions]
    assert len(memory.conditions) == 51
    assert np.array_equal(memory.top, disk.top)
    assert np.array_equal(memory.nll, disk.nll)


@pytest.mark.usefixtures("folder")
def test_c_and_c_bar_side_by_side() -> None:
    """After the one, only the other is left to do; the report has a table of both."""
    run = ["run", *TOY, "--labels", "identity", "--data", "toys", "--store", "kept", "--json"]
    bar = json.loads(invoke(*run, "--suite", "cifar10-c-bar"))
    assert not any(one["reused"] for one in bar["results"])
    suite = {**json.loads(invoke("ls", "suites", "--json"))[_index("cifar10-c-and-bar")], "name": "some"}
    some = ["fog", "contrast", *get_corruption_names("cifar10-c-bar")]
    suite |= {"corruptions": some, "title": "two of C and all of C-bar"}
    Path("some.yaml").write_text(json.dumps(suite))  # JSON is YAML
    both = json.loads(invoke(*run, "--suite", "some.yaml"))
    assert sum(one["reused"] for one in both["results"]) == 51
    assert len(both["results"]) == 61
    for kind in ("md", "html", "latex"):
        invoke("report", "kept", "--suite", "some", "--format", kind, "-o", f"report.{kind}")
        text = Path(f"report.{kind}").read_text()
        assert "Common (2)" in text
        assert "C-bar (10)" in text


def _index(name: str) -> int:
    return [suite["name"] for suite in json.loads(invoke("ls", "suites", "--json"))].index(name)


def test_imagenet_c_bar_from_the_published_folders(folder: Path) -> None:
    """With severities, as `make` and the later download have them, or with the magnitudes of the first."""
    names = "brownish_noise,checkerboard_cutout,sparkles"
    suite = json.loads(invoke("ls", "suites", "--json"))[_index("imagenet-c-bar")]
    suite |= {"name": "three", "corruptions": names.split(","), "title": "three of C-bar"}
    Path("three.yaml").write_text(json.dumps(suite))
    made = json.loads(invoke("make", "imagenet-c-bar", "photos", "bar", "--corruption", names, "--json"))
    assert made["done"] == 3 * 5 * 2
    run = ["run", *TOY, "--suite", "three.yaml", "--labels", "identity", "--json"]
    first = json.loads(
        invoke(*run, "--data", "imagenet-c-bar:bar", "--config", "clean=photos", "--store", "one")
    )
    magnitudes = {
        "brownish_noise": ("1.00", "2.00", "3.00", "4.00", "5.00"),
        "checkerboard_cutout": ("2.00", "3.00", "4.00", "5.00", "6.00"),
        "sparkles": ("9.00", "10.00", "11.00", "12.00", "13.00"),  # by number, not by letter
    }
    for name, five in magnitudes.items():
        for severity, magnitude in enumerate(five, 1):
            (folder / "bar" / name / str(severity)).rename(folder / "bar" / name / magnitude)
    again = json.loads(
        invoke(*run, "--data", "imagenet-c-bar:bar", "--config", "clean=photos", "--store", "one")
    )
    assert len(first["results"]) == 16
    assert all(one["reused"] for one in again["results"])  # the same images under the same conditions
    invoke(*run, "--data", "photos", "--store", "two")
