"""Named selections of images."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort import evaluate
from beaufort._core.errors import ImageFileError
from beaufort.data import Dataset, from_arrays
from beaufort.data.selections import ImageSelection, selections
from beaufort.metrics import get_baseline
from beaufort.models import as_model
from beaufort.suites import Suite, get_suite


def validation_images(numbers: list[int]) -> Dataset:
    images = np.zeros((len(numbers), 8, 8, 3), np.uint8)
    found = from_arrays("val", images, labels=np.zeros(len(numbers), int))
    return replace(found, ids=[f"n01440764/ILSVRC2012_val_{number:08d}.JPEG" for number in numbers])


def test_the_images_of_robustbench() -> None:
    selection = selections["robustbench-imagenet"]
    numbers = sorted(int(stem.removeprefix("ILSVRC2012_val_")) for stem in selection.stems)
    assert (len(numbers), numbers[0] >= 1, numbers[-1] <= 50_000, sum(numbers)) == (
        5000,
        True,
        True,
        123943129,
    )
    every = validation_images(list(range(1, 50_001)))
    assert [int(id[-13:-5]) for id in selection.select(every).ids] == numbers


def test_missing_images_are_an_error() -> None:
    with pytest.raises(ImageFileError, match=r"5,000 images.*robustbench-imagenet.*\bval\b"):
        selections["robustbench-imagenet"].select(validation_images(list(range(1, 1000))))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(
        selections._things, "few", ImageSelection("few", "two images", lambda: frozenset({"b", "d"}))
    )
    return "few"


def test_clean_and_stored_images_are_selected(few: str, tmp_path: Path) -> None:
    for place in ("val", "ImageNet-C/fog/3"):
        for number, name in enumerate("abcd"):
            path = tmp_path / place / ("n01440764", "n01443537")[number % 2] / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (224, 224), (number % 2 if place == "val" else 1 - number % 2, 0, 0)).save(path)
    net = as_model(
        lambda images: np.eye(1000, dtype=np.float32)[images[:, 0, 0, 0]], name="net", classes=1000
    )
    suite = Suite(
        name="selected",
        version=1,
        dataset="imagenet-val",
        scale="imagenet",
        corruptions=("fog",),
        severities=(3,),
        images=few,
    )
    stored = f"imagenet-c:{tmp_path / 'ImageNet-C'}"
    (fog,) = evaluate([net], suite, stored, tmp_path / "stored").results
    assert (fog.images, fog.accuracy) == (2, 0)
    clean = evaluate([net], suite, tmp_path / "val", tmp_path / "made").results[0]
    assert (clean.images, clean.accuracy) == (2, 1)


def test_the_suite_has_the_conditions_of_the_leaderboard(shared: Path) -> None:
    suite = get_suite("robustbench-imagenet-c")
    assert suite.images == "robustbench-imagenet"
    assert suite.conditions() == get_suite("imagenet-c").conditions()
    with (shared / "data/robustbench/corruptions.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == "AlexNet"]
    errors = get_baseline("alexnet").select(suite.corruptions, suite.severities)
    ours = 100 * (1 - np.mean(list(errors.values())))
    assert ours == pytest.approx(float(rows[0]["corruptions_acc"]), abs=0.5)
