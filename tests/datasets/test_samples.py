"""Pictures to check a model with, from folders and arrays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort.datasets.samples import read_samples
from beaufort.errors import BeaufortError
from beaufort.models import ModelSpec, Preprocessing

SPEC = ModelSpec(
    name="net",
    source="x",
    preprocessing=Preprocessing(size=(16, 16), resize=16),
    classes=3,
    class_names=("cat", "dog", "fox"),
)


def folder(path: Path, names: list[str], mode: str = "RGB") -> Path:
    for i, name in enumerate(names):
        (path / name).mkdir(parents=True, exist_ok=True)
        for j in range(4):
            Image.new(mode, (20 + j, 24), (40 * i,) * len(mode) if mode != "L" else 40 * i).save(
                path / name / f"{j}.png"
            )
    return path


@pytest.mark.parametrize(
    ("names", "labels"),
    [(["2", "0"], {0, 2}), (["fox", "cat"], {0, 2}), (["n01", "n02", "n03"], {0, 1, 2})],
)
def test_folder_names(tmp_path: Path, names: list[str], labels: set[int]) -> None:
    found = read_samples(folder(tmp_path, names), SPEC)
    assert found.images is not None
    assert found.images.shape == (4 * len(names), 16, 16, 3)
    assert found.labels is not None
    assert set(found.labels.tolist()) == labels
    assert len(read_samples(tmp_path, SPEC, limit=5).images) == 5  # type: ignore[arg-type]


def test_a_folder_of_pictures_has_no_labels(tmp_path: Path) -> None:
    folder(tmp_path, ["0"], mode="RGBA")
    found = read_samples(tmp_path / "0", SPEC)
    assert found.labels is None


def test_arrays(tmp_path: Path) -> None:
    images = np.zeros((6, 16, 16, 3), np.uint8)
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(6))
    np.savez(tmp_path / "b.npz", images=images[..., 0])
    np.savez(tmp_path / "c.npz", images=images, labels=np.zeros(5))
    np.savez(tmp_path / "d.npz", pictures=images)
    assert read_samples(tmp_path / "a.npz", SPEC).labels is not None
    grey = read_samples(tmp_path / "b.npz", SPEC)
    assert (grey.labels, grey.images.shape) == (None, (6, 16, 16, 1))  # type: ignore[union-attr]
    for name, told in (
        ("c.npz", r"must be \(6,\) whole numbers"),
        ("d.npz", "array `images`"),
        ("e.npz", "e.npz"),
    ):
        with pytest.raises(BeaufortError, match=told):
            read_samples(tmp_path / name, SPEC)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BeaufortError, match="no picture"):
        read_samples(tmp_path / "empty", SPEC)
    with pytest.raises(BeaufortError, match="neither a folder"):
        read_samples(tmp_path / "a.txt", SPEC)
    with pytest.raises(BeaufortError, match="2 folders came for a model of 3 classes"):
        read_samples(folder(tmp_path / "two", ["a", "b"]), SPEC)
    with pytest.raises(BeaufortError, match="from 1"):
        read_samples(tmp_path, SPEC, limit=0)
    free = replace(SPEC, preprocessing=Preprocessing())
    with pytest.raises(BeaufortError, match="several sizes"):
        read_samples(folder(tmp_path / "sizes", ["0"]), free)
