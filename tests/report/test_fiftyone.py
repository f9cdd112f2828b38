"""Export for FiftyOne: the documented JSON format, and what its importer does with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort import evaluate
from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.cli import app
from beaufort.data import Dataset
from beaufort.models import as_model
from beaufort.report import export_fiftyone
from beaufort.results import Scores
from beaufort.suites import suite_from_corruptions
from beaufort.suites.conditions import Condition


def imported(folder: Path, labels: str = "labels.json") -> dict[str, tuple[Path, Any]]:
    """Labels by key with their images: keys are paths below `data` without extension."""
    files = {
        path.relative_to(folder / "data").with_suffix("").as_posix(): path
        for path in (folder / "data").rglob("*.*")
    }
    content = json.loads((folder / labels).read_text(encoding="utf-8"))
    assert set(content) == {"classes", "labels"}
    assert {one["label"] for one in content["labels"].values()} <= set(content["classes"])
    return {key: (files[key], label) for key, label in content["labels"].items()}


def test_all_images_of_some_conditions(scores: Scores, data: Dataset, tmp_path: Path) -> None:
    out = export_fiftyone(scores, data, tmp_path / "out", conditions=["clean", "fog@5"], limit=7)
    labels = imported(out)
    assert len(labels) == len(list((out / "data").rglob("*.png"))) == 14
    names = [one.model for one in scores.models]
    assert {path.stem for path in (out / "predictions").iterdir()} == set(names)
    predictions = scores.predictions()
    for name in names:
        found = imported(out, f"predictions/{name}.json")
        assert found.keys() == labels.keys()
        model = predictions[name]
        for key, (path, label) in found.items():
            condition, _, file = key.partition("/")
            place = int(file[:6])
            row = [one.done or "clean" for one in model.conditions].index(condition)
            assert labels[key][1] == {"label": data.classes[model.labels[place]]}
            assert label["label"] == data.classes[model.top[row, place, 0]]
            assert label["confidence"] == pytest.approx(float(model.confidence[row, place]))
            assert label["attributes"] == {
                "correct": bool(model.correct[row, place]),
                "condition": condition,
            }
            image = data[list(data.ids).index(model.ids[place])]
            expected = image.image
            if condition != "clean":
                at = Condition.parse(f"x/{condition}")
                expected = at.apply(image.image[None], ids=[image.id], seed=0, scale="cifar")[0]
            assert np.array_equal(np.asarray(Image.open(path)), expected)


def test_mistakes_alone(alone: Scores, data: Dataset, tmp_path: Path) -> None:
    out = export_fiftyone(alone, data, tmp_path / "out", mistakes=True, limit=1000)
    (name,) = (one.model for one in alone.models)
    found = imported(out, f"predictions/{name}.json")
    assert not any(label["attributes"]["correct"] for _, label in found.values())
    assert len(found) == np.count_nonzero(~alone.predictions()[name].correct)


def test_rejected_inputs(scores: Scores, data: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="'fog@2'"):
        export_fiftyone(scores, data, tmp_path / "out", conditions=["fog@2"])
    with pytest.raises(OptionError, match="--data"):
        export_fiftyone(scores, data.first(10), tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(OptionError, match=r"full"):
        export_fiftyone(scores, data, tmp_path / "full")
    assert not (tmp_path / "out").exists()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(6):
        path = tmp_path / "toys" / ("dark", "light")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), (60 + 80 * (number % 2),) * 3).save(path)
    model = as_model(
        lambda images: np.stack([np.full(len(images), 100), images.mean((1, 2, 3))], 1),
        name="a/b",
        classes=["dark", "light"],
    )
    evaluate([model], suite_from_corruptions(["brightness"], [5]), "toys", "results")

    def run(*words: object) -> tuple[int, str]:
        found = CliRunner().invoke(app, ["report", "results", *map(str, words)])
        return found.exit_code, found.output

    export = ("--format", "fiftyone", "--data", "toys")
    code, output = run(*export, "-o", "out", "--images", "mistakes=yes,condition=brightness@5,limit=2")
    assert (code, "2 images" in output) == (0, True), output
    found = imported(tmp_path / "out", "predictions/a-b.json")
    assert [key.split("/")[0] for key in found] == ["brightness@5"] * 2
    assert {label["label"] for _, label in found.values()} == {"light"}
    assert {label["label"] for _, label in imported(tmp_path / "out").values()} == {"dark"}

    for words, fact in (
        ((*export, "-o", "out"), "out"),
        (("--format", "fiftyone", "-o", "new"), "--data"),
        ((*export, "-o", "new", "--images", "mistakes=maybe"), "'maybe'"),
        ((*export, "-o", "new", "--images", "limit=0"), "limit"),
        (("--images", "limit=3"), "--images"),
    ):
        code, output = run(*words)
        assert (code, fact in output) == (2, True), output
    assert not (tmp_path / "new").exists()
