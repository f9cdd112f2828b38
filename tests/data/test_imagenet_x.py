"""ImageNet-X: annotations in the published layout, as a dataset and as groups."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort import evaluate
from beaufort._core.errors import ImageFileError
from beaufort.cli import app
from beaufort.data import load_dataset
from beaufort.data.imagenet_x import FACTORS, read_factors
from beaufort.data.labels import class_ids
from beaufort.models import as_model
from beaufort.results import open_parts, read_column, score
from beaufort.suites import get_suite

IMAGES = {1: ("pose", 0), 2: ("background", 0), 3: ("pose", 1), 4: (None, 1), 5: ("style", 1)}
"""Factor and class of each annotated image; image 6 has no annotation, and image 5 is a prototype."""


def file(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}.JPEG"


def annotate(path: Path, more: str = "") -> None:
    rows = []
    for number, (factor, label) in IMAGES.items():
        flags = {name: int(name in (factor, more)) for name in FACTORS}
        text = {"justification": "because", "one_word": "odd"}
        rows.append(json.dumps({"file_name": file(number), "class": label, **flags, **text}))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


@pytest.fixture
def spec(tmp_path: Path) -> str:
    """All classes of ImageNet, of which two have images."""
    for id in class_ids("imagenet-1k"):
        (tmp_path / "val" / id).mkdir(parents=True)
    for number, (_, label) in {**IMAGES, 6: (None, 1)}.items():
        red = 99 if number == 3 else label
        path = tmp_path / "val" / class_ids("imagenet-1k")[label] / file(number)
        Image.new("RGB", (32, 32), (red, 0, 0)).save(path, "PNG")
    annotate(tmp_path / "imagenet_x_val_top_factor.jsonl")
    (tmp_path / "prototypical_paths.csv").write_text(f"file_name\n{file(5)}\n", encoding="utf-8")
    return f"imagenet-x:{tmp_path / 'val'}#{tmp_path / 'imagenet_x_val_top_factor.jsonl'}"


def test_annotated_images_without_prototypes(spec: str) -> None:
    dataset = load_dataset(spec)
    assert [id.rpartition("/")[2] for id in dataset.ids] == [file(number) for number in (1, 2, 3, 4)]
    assert dataset.column("factor") == ["pose", "background", "pose", "none"]
    assert dataset.labels.tolist() == [0, 0, 1, 1]


def test_accuracy_by_factor(spec: str, tmp_path: Path) -> None:
    net = as_model(lambda images: np.eye(1000, dtype="f4")[images[:, 0, 0, 0]], name="net", classes=1000)
    evaluate([net], get_suite("imagenet-x"), {"imagenet-x": spec}, tmp_path / "results")
    groups = read_column(f"{tmp_path / 'imagenet_x_val_top_factor.jsonl'}:factor")
    (part,) = open_parts(str(tmp_path / "results"))
    (scores,) = score(part, groups=groups, calibration=False).models
    assert scores.groups is not None
    found = {name: one.value for name, one in scores.groups.accuracies.items()}
    assert found == {"pose": 0.5, "background": 1, "none": 1}
    annotations = tmp_path / "imagenet_x_val_top_factor.jsonl"
    command = ["report", str(tmp_path / "results"), "--group-by", f"{annotations}:factor", "--format", "md"]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, "background" in result.output) == (0, True), result.output


def test_invalid_annotations(spec: str, tmp_path: Path) -> None:
    with pytest.raises(ImageFileError, match=r"#imagenet_x_val_top_factor\.jsonl"):
        load_dataset(spec.partition("#")[0])
    (tmp_path / "val" / class_ids("imagenet-1k")[0] / file(2)).unlink()
    with pytest.raises(ImageFileError, match="1 of 4 annotated images"):
        load_dataset(spec)
    annotate(tmp_path / "multi.jsonl", more="color")
    with pytest.raises(ImageFileError, match=r"multi\.jsonl"):
        read_factors(tmp_path / "multi.jsonl")
    (tmp_path / "bad.jsonl").write_text("no json\n")
    with pytest.raises(ImageFileError, match=r"bad\.jsonl"):
        read_factors(tmp_path / "bad.jsonl")
