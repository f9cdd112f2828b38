"""Images for checks of a model: opened, prepared and labeled as in a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from beaufort._core.errors import BeaufortError
from beaufort.data import load_dataset
from beaufort.evaluation.samples import read_samples
from beaufort.models import ModelSpec, Network, Preprocessing, as_model

NET = Network(
    ModelSpec(
        name="net",
        source="x",
        preprocessing=Preprocessing(size=(16, 16), resize=16),
        classes=3,
        class_names=("cat", "dog", "fox"),
    ),
    lambda images: images.mean(axis=(2, 3)),
)


def folder(path: Path, names: list[str], mode: str = "RGB") -> Path:
    for i, name in enumerate(names):
        (path / name).mkdir(parents=True, exist_ok=True)
        for j in range(4):
            color = (40 * i,) * len(mode) if mode != "L" else 40 * i
            Image.new(mode, (20 + j, 24), color).save(path / name / f"{j}.png")
    return path


@pytest.mark.parametrize(("names", "outputs"), [(["2", "0"], (0, 2)), (["fox", "cat"], (0, 2))])
def test_folder_names(tmp_path: Path, names: list[str], outputs: tuple[int, ...]) -> None:
    found = read_samples(folder(tmp_path, names), NET)
    assert found.images.shape == (4 * len(names), 16, 16, 3)
    assert found.space.outputs == tuple((output,) for output in outputs)
    few = read_samples(tmp_path, NET, limit=5)
    assert few.labels is not None
    assert sorted(np.bincount(few.labels).tolist()) == [2, 3]  # spread over the classes


def test_as_many_folders_as_outputs_without_names(tmp_path: Path) -> None:
    unnamed = replace(NET, spec=replace(NET.spec, class_names=None))
    assert read_samples(folder(tmp_path, ["n01", "n02", "n03"]), unnamed).space.identity
    with pytest.raises(BeaufortError, match="match no class of"):
        read_samples(tmp_path, NET)


def test_without_labels(tmp_path: Path) -> None:
    folder(tmp_path, ["0"], mode="RGBA")
    assert read_samples(tmp_path / "0", NET).labels is None
    images = np.zeros((6, 16, 16, 3), np.uint8)
    np.savez(tmp_path / "b.npz", images=images[..., 0])
    assert read_samples(tmp_path / "b.npz", NET).labels is None


def test_arrays(tmp_path: Path) -> None:
    images = np.zeros((6, 16, 16, 3), np.uint8)
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(6) % 3)
    np.savez(tmp_path / "c.npz", images=images, labels=np.zeros(5))
    np.savez(tmp_path / "d.npz", photos=images)
    assert read_samples(tmp_path / "a.npz", NET).labels is not None
    for name in ("c.npz", "d.npz", "absent.npz"):
        with pytest.raises(BeaufortError):
            read_samples(tmp_path / name, NET)


def test_rotation_is_left_alone_as_in_a_run(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    for name in NET.spec.class_names or ():
        (tmp_path / name).mkdir()
        Image.fromarray(pixels).save(tmp_path / name / "a.png", exif=exif)
    shown = read_samples(tmp_path, NET).images[0]
    assert np.array_equal(shown, pixels)
    assert np.array_equal(load_dataset(str(tmp_path))[0].image, pixels)


def test_images_are_prepared_as_by_a_suite(tmp_path: Path) -> None:
    free = NET.with_preprocessing(Preprocessing())
    for name in NET.spec.class_names or ():
        (tmp_path / name).mkdir()
        Image.new("L", (300, 260)).save(tmp_path / name / "a.png")
    assert read_samples(tmp_path, free).images.shape == (3, 260, 300, 3)
    assert read_samples(tmp_path, free, suite="imagenet-c").images.shape == (3, 224, 224, 3)


def test_mistakes(tmp_path: Path) -> None:
    free = NET.with_preprocessing(Preprocessing())
    with pytest.raises(BeaufortError, match="of one size"):
        read_samples(folder(tmp_path, ["cat"]), free)
    with pytest.raises(BeaufortError, match="limit must be"):
        read_samples(tmp_path, NET, limit=0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BeaufortError):
        read_samples(tmp_path / "empty", NET)


def test_outputs_are_counted_with_the_first_image(tmp_path: Path) -> None:
    flat = as_model(lambda images: images.reshape(len(images), 20 * 24 * 3)[:, :3], name="flat")
    Image.new("RGB", (20, 24)).save(folder(tmp_path, ["a", "b"]) / "a" / "0.png")
    for file in tmp_path.rglob("[1-3].png"):
        file.unlink()
    with pytest.raises(BeaufortError, match=r"2 classes .* 3 outputs of flat"):
        read_samples(tmp_path, flat)
