"""ImageNet-3DCC: published images of corruptions that cannot be computed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort import evaluate
from beaufort._core.errors import ImageFileError, OptionError
from beaufort.cli import app
from beaufort.data import dataset_kind, load_dataset
from beaufort.data.selections import ImageSelection, selections
from beaufort.evaluation import RunOptions
from beaufort.models import Model, as_model
from beaufort.results import open_results, score
from beaufort.suites import Suite, get_suite
from beaufort.suites.conditions import Condition
from beaufort.suites.published_shifts import CORRUPTIONS_3D

WNIDS = ("n01440764", "n01443537")
FEW = ("3dcc-fog_3d@1", "3dcc-fog_3d@5", "3dcc-near_focus@2")


def net() -> Model:
    """Predicts the red value of the first pixel."""
    return as_model(
        lambda images: np.eye(1000, dtype="f4")[np.rint(images[:, 0, 0, 0] / 90).astype(int)],
        name="net",
        classes=1000,
        version="1",
    )


def fill(root: Path, shift: int) -> None:
    """Two images of two classes, which the model predicts correctly if `shift` is 0."""
    for number, wnid in enumerate(WNIDS):
        path = root / wnid / f"ILSVRC2012_val_{number + 1:08d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (224, 224), (90 * ((number + shift) % 2), 0, 0)).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "3DCC/fog_3d/1", 0)
    fill(tmp_path / "3DCC/fog_3d/5", 1)
    fill(tmp_path / "3DCC/near_focus/2", 0)
    fill(tmp_path / "val", 0)
    return tmp_path


def suite(*shifts: str, images: str | None = None) -> Suite:
    return Suite(
        name="few",
        version=1,
        dataset="imagenet-val",
        shifts=shifts or FEW,
        labels="imagenet-1k",
        images=images,
    )


def test_a_run_reads_the_published_images(folder: Path) -> None:
    store = folder / "results"
    data = f"imagenet-3dcc:{folder / '3DCC'}"
    found = evaluate([net()], suite(), data, store).results
    assert {one.condition.partition("/")[2]: one.accuracy for one in found} == dict(
        zip(FEW, (1, 0, 1), strict=True)
    )
    (scores,) = score(open_results(store), calibration=False).models
    assert scores.metrics["mean_accuracy"].value == pytest.approx(0.75)  # the mean over corruptions
    assert all(one.reused for one in evaluate([net()], suite(), data, store).results)
    code = CliRunner().invoke(app, ["report", str(store), "--format", "json", "--intervals", "resamples=200"])
    assert (code.exit_code, "fog_3d" in code.output) == (0, True), code.output
    with_clean = evaluate(
        [net()], suite(), data, folder / "more", options=RunOptions(clean=str(folder / "val"))
    ).results
    assert (with_clean[0].accuracy, len(with_clean)) == (1, 4)


def test_the_images_of_robustbench_are_selected(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ImageSelection("one", "one image", lambda: frozenset({"ILSVRC2012_val_00000002"}))
    monkeypatch.setitem(selections._things, "one", one)
    chosen = suite(FEW[1], images="one")
    (found,) = evaluate([net()], chosen, f"imagenet-3dcc:{folder / '3DCC'}", folder / "results").results
    assert (found.images, found.accuracy) == (1, 0)


def test_clean_images_and_incomplete_sets_are_rejected(folder: Path) -> None:
    with pytest.raises(OptionError, match="imagenet-3dcc:FOLDER"):
        evaluate([net()], suite(), folder / "val", folder / "results")
    with pytest.raises(OptionError, match="flash"):
        evaluate([net()], suite("3dcc-flash@1"), f"imagenet-3dcc:{folder / '3DCC'}", folder / "results")
    (folder / "3DCC/near_focus/2" / WNIDS[0] / "ILSVRC2012_val_00000001.png").unlink()
    with pytest.raises(ImageFileError, match="near_focus@2"):
        evaluate([net()], suite(), f"imagenet-3dcc:{folder / '3DCC'}", folder / "results")


def test_one_condition_is_a_dataset(folder: Path) -> None:
    spec = f"imagenet-3dcc:{folder / '3DCC'}#fog_3d@5"
    assert (dataset_kind(spec), len(load_dataset(spec))) == ("imagenet-3dcc", 2)


def test_levels_and_pixels() -> None:
    for level in ("", "0", "6", "2.5"):
        with pytest.raises(OptionError, match="from 1 to 5"):
            Condition.parse(f"x/3dcc-flash@{level}" if level else "x/3dcc-flash")
    with pytest.raises(OptionError, match="published images"):
        Condition.parse("x/3dcc-flash@1").apply(np.zeros((1, 32, 32, 3), np.uint8), ids=["a"])


@pytest.mark.parametrize("name", ["imagenet-3dcc", "robustbench-imagenet-3dcc"])
def test_the_published_suites(name: str) -> None:
    found = get_suite(name)
    assert list(found.shifts) == [f"3dcc-{one}@{level}" for one in CORRUPTIONS_3D for level in range(1, 6)]
    assert found.images == ("robustbench-imagenet" if name.startswith("robustbench") else None)
    assert (found.metrics, found.label_space) == (("mean_accuracy",), "imagenet-1k")
    listed = CliRunner().invoke(app, ["ls", "suites", "--json"])
    assert name in [one["name"] for one in json.loads(listed.output)]
