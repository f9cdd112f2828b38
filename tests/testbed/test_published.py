"""Published test sets found by their layout, and a model evaluated on all of them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort._core.errors import OptionError
from beaufort.cli._app import app
from beaufort.corruptions import get_corruption_names
from beaufort.data import natural_shifts
from beaufort.data.labels import class_ids, label_maps
from beaufort.testbed import find_published_sets, load_grid
from beaufort.testbed.published_run import check_found
from tests.commands import shows

WNIDS = class_ids("imagenet-1k")

MODEL = """
import numpy as np
from beaufort.models import as_model

def predict(images):
    "Decode the class that an image encodes; output 5 wins for bright images."
    seen = images[:, 0, 0].astype(int)
    logits = np.zeros((len(images), 1000), np.float32)
    logits[np.arange(len(images)), np.minimum(seen[:, 0] * 256 + seen[:, 1], 999)] = 5
    logits[seen[:, 2] > 100, 5] = 9
    return logits

def make():
    return as_model(predict, name="reader", classes=1000, version="1")
"""


class Painter:
    """Writes images that encode a class; equal ones are hard links, because there are thousands."""

    def __init__(self, root: Path) -> None:
        self.root, self.drawn = root, dict[tuple[int, bool], Path]()
        root.mkdir()

    def __call__(self, path: Path, number: int, *, wrong: bool = False) -> None:
        key = number, wrong
        if key not in self.drawn:
            color = ((number + 7) % 1000 if wrong else number) // 256, (number + 7 * wrong) % 1000 % 256, 0
            self.drawn[key] = self.root / f"{number}-{wrong}.png"
            image = Image.new("RGB", (16, 16), (255, 0, 0))
            image.paste(color, (0, 0, 16, 16))
            image.save(self.drawn[key])
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(self.drawn[key], path)


def write_sets(root: Path, paint: Painter) -> None:
    """Write small stand-ins of published sets, in their layouts, below directories of other names."""
    for place, wnid in enumerate(WNIDS):
        name = f"ILSVRC2012_val_{place + 1:08d}"
        paint(root / "ilsvrc" / "clean" / wnid / f"{name}.JPEG", place, wrong=place % 10 == 0)
        paint(root / "drawn" / wnid / f"sketch_{place}.JPEG", place, wrong=place % 3 == 0)
        paint(root / "styles" / wnid / f"{name}.png", place, wrong=place % 2 == 0)
        paint(
            root / "v2" / "imagenetv2-matched-frequency-format-val" / str(place) / "a.jpeg",
            place,
            wrong=place % 5 == 0,
        )
    for name in ("imagenet-a", "imagenet-r"):
        for wnid, outputs in label_maps[name].grouping.items():
            number = int(outputs[0])
            paint(root / f"hard-{name[-1]}" / wnid / "x.jpg", number, wrong=number % 4 == 0)
    for name, outputs in label_maps["objectnet"].grouping.items():
        target = root / "objectnet-1.0" / "images" / name / "1.png"
        target.parent.mkdir(parents=True)
        number = int(outputs[0])
        Image.new("RGB", (20, 20), (number // 256, number % 256, 0)).save(target)
    sets: dict[str, list[str]] = {}
    labels: dict[str, list[int]] = {}
    members = [numbers[0] for numbers in label_maps["vid-robust"].outputs]
    for clip in range(10):
        frames = [f"val/ILSVRC2015_val_{clip:08d}/{number:06d}.JPEG" for number in (5, 6, 7)]
        sets[frames[1]] = [frames[0], frames[2]]
        labels |= {frame: [clip] for frame in frames}
        for number, frame in enumerate(frames):
            class_number = int(members[(clip + 1) % 30 if clip == 9 or (number == 2 and clip < 4) else clip])
            paint(root / "vid" / frame, class_number)
    (root / "vid" / "pmsets.json").write_text(json.dumps(sets))
    (root / "vid" / "labels.json").write_text(json.dumps(labels))
    for name in get_corruption_names("common"):
        for severity in "12345":
            for place in (0, 1, 2):
                file = f"ILSVRC2012_val_{place + 1:08d}.JPEG"
                paint(root / "c" / "any" / name / severity / WNIDS[place] / file, place)


FOUND = {
    "imagenet-val": "ilsvrc/clean",
    "imagenetv2-matched-frequency": "v2/imagenetv2-matched-frequency-format-val",
    "objectnet": "objectnet-1.0",
    "imagenet-a": "hard-a",
    "imagenet-r": "hard-r",
    "imagenet-sketch": "drawn",
    "vid-robust": "vid",
    "stylized-imagenet": "styles",
    "imagenet-c": "c",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("published")
    write_sets(base / "sets", Painter(base / "painted"))
    return base / "sets"


def test_sets_are_found_by_their_layout(root: Path) -> None:
    found = find_published_sets(root)
    assert {name: str(path.relative_to(root)) for name, path in found.places.items()} == FOUND
    assert set(found.missing) == {"imagenetv2-threshold-0.7", "imagenetv2-top-images", "ytbb-robust"}
    assert found.missing["ytbb-robust"].source
    lacking = [note for note in found.notes if "imagenet-c-validation is not evaluated" in note]
    assert "speckle_noise" in lacking[0]
    assert list(found.runs()) == [
        *("imagenetv2-matched-frequency", "imagenetv2-one-eighth", "objectnet-2020", "imagenet-a"),
        *("imagenet-r", "imagenet-sketch", "vid-robust", "stylized-imagenet", "imagenet-c"),
    ]
    assert "objectnet" in found.runs(latest=True)


def test_directories_that_look_alike_are_told_apart(root: Path, tmp_path: Path) -> None:
    """Incomplete copies are recognized, training images are not taken for validation images."""
    for place, wnid in enumerate(WNIDS):
        (tmp_path / "train" / wnid).mkdir(parents=True)
        (tmp_path / "train" / wnid / f"{wnid}_{place}.JPEG").touch()
        (tmp_path / "imagenetv2" / str(place)).mkdir(parents=True)
    shutil.copytree(root / "hard-a", tmp_path / "part-of-a")
    shutil.rmtree(tmp_path / "part-of-a" / label_maps["imagenet-a"].classes[0])
    found = find_published_sets(tmp_path)
    assert set(found.places) == {"imagenet-a", "imagenetv2-matched-frequency"}
    assert any("training images" in note for note in found.notes)
    assert any(shows(note, "not", "variant") for note in found.notes)
    with pytest.raises(OptionError, match=r"imagenet-val not found.*image-net\.org"):
        check_found(found, ())
    with pytest.raises(OptionError, match="objectnet not found below"):
        check_found(find_published_sets(root / "hard-a"), ["objectnet"])
    with pytest.raises(OptionError, match="did you mean 'imagenet-r'"):
        check_found(found, ["imagenetr"])


def invoke(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_what_is_there_is_listed(root: Path) -> None:
    text = invoke("testbed", "run", "--model", "nothing", "--data-root", str(root), "--dry-run")
    assert "ytbb-robust" in text
    assert "natural-perturbations" in text
    facts = json.loads(
        CliRunner()
        .invoke(app, ["testbed", "run", "--model", "x", "--data-root", str(root), "--dry-run", "--json"])
        .stdout
    )
    assert set(facts["found"]) == set(FOUND)


@pytest.mark.slow
def test_one_command_evaluates_and_places(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(natural_shifts, "_V2_CLASS_SIZE", 1)
    (tmp_path / "published_model.py").write_text(MODEL)
    how = ("testbed", "run", "--model", "python:published_model:make", "--data-root", str(root))
    text = invoke(*how)
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    for title, shifted, clean in (
        ("ImageNetV2", "80.00 % (n 1,000)", "90.00 % (n 1,000)"),
        ("ImageNet-Sketch", "66.60 % (n 1,000)", "90.00 % (n 1,000)"),
        ("Stylized-ImageNet", "50.00 % (n 1,000)", "90.00 % (n 1,000)"),
        ("Vid-Robust, ±10 frames", "50.00 % (n 10)", "90.00 % (n 10)"),
    ):
        assert shifted in lines[title]
        assert clean in lines[title]
    assert "reader is " in text
    assert "the testbed's 78 standard models" in text
    page = (tmp_path / "testbed.html").read_text()
    assert "reader is " in page
    store = load_grid("paper+results")
    scores = {one.setting: one for one in store.scores("reader")}
    wanted = label_maps["imagenet-a"]
    numbers = np.array([int(some[0]) for some in wanted.grouping.values()])
    assert scores["imagenet-a"].accuracy == pytest.approx(100 * np.mean(numbers % 4 != 0), abs=1)
    assert scores["imagenet-a"].classes == "imagenet-a"
    assert scores["val"].date
    assert scores["imagenet-c.fog.3_on-disk"].accuracy == 100
    again = json.loads(CliRunner().invoke(app, [*how, "--json", "--only", "imagenet-a"]).stdout)
    assert again["model"] == "reader"
    assert {"imagenet-a", "imagenet-sketch"} <= {shift["y"] for shift in again["shifts"]}
    (root / "hard-r" / "n00000000").mkdir()
    failed = invoke(*how, "--only", "imagenet-r,imagenet-a", code=1)
    assert "failed: imagenet-r" in failed
    (root / "hard-r" / "n00000000").rmdir()
