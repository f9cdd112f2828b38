"""Class directories: order, labels and bad files."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data import Problem, Sample, iterate, load_dataset

NAMES = ["a/1.png", "a/10.png", "a/2.png", "a/sub/3.png", "a-b/0.png", "B/x.png", "é/x.png"]


def image(path: Path, value: int = 0, mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (18, 17), value).save(path)


@pytest.mark.parametrize("seed", range(4))
def test_order_does_not_depend_on_creation(tmp_path: Path, seed: int) -> None:
    names = NAMES.copy()
    random.Random(seed).shuffle(names)
    for name in names:
        image(tmp_path / name, len(name))
    dataset = load_dataset(tmp_path)
    assert dataset.classes == ("B", "a", "a-b", "é")
    assert dataset.ids == sorted(NAMES, key=str.encode)
    assert [dataset.classes[label] for label in dataset.labels] == [
        id.partition("/")[0] for id in dataset.ids
    ]


def test_an_empty_class_keeps_its_label(tmp_path: Path) -> None:
    image(tmp_path / "c" / "1.png")
    (tmp_path / "b").mkdir()
    dataset = load_dataset(tmp_path)
    assert (dataset.classes, dataset[0].label) == (("b", "c"), 1)


@pytest.mark.parametrize(
    ("mode", "channels"), [("L", 1), ("LA", 1), ("RGB", 3), ("RGBA", 3), ("P", 3), ("1", 1)]
)
def test_channels(tmp_path: Path, mode: str, channels: int) -> None:
    image(tmp_path / "a" / "1.png", 0, mode)
    found = load_dataset(tmp_path)[0].image
    assert found.shape == (17, 18, channels)
    assert found.dtype == np.uint8


def test_exif_orientation_is_not_applied(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    exif = Image.Exif()
    exif[0x112] = 6
    Image.new("RGB", (30, 20)).save(tmp_path / "a" / "1.jpg", exif=exif)
    assert load_dataset(tmp_path)[0].image.shape == (20, 30, 3)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for i in range(4):
        image(root / "a" / f"{i}.png", i)
    (root / "a" / "1.png").write_bytes(b"")
    (root / "a" / "2.png").write_bytes((root / "a" / "2.png").read_bytes()[:50])
    return root


def test_bad_files_are_counted_and_named(damaged: Path) -> None:
    dataset = load_dataset(damaged)
    assert len(dataset) == 4
    walk = iterate(dataset)
    kinds = [type(item) for item in walk]
    assert kinds == [Sample, Problem, Problem, Sample]
    assert [problem.id for problem in walk.problems] == ["a/1.png", "a/2.png"]
    assert "empty" in walk.problems[0].message
    with pytest.raises(ImageFileError, match="empty"):
        dataset[1]
    assert dataset.digest() == load_dataset(damaged).digest(fresh=True)


def test_strict_stops_at_the_first(damaged: Path) -> None:
    walk = iterate(load_dataset(damaged, strict=True))
    assert isinstance(next(walk), Sample)
    with pytest.raises(ImageFileError, match=r"a/1\.png: .*empty"):
        next(walk)


def test_a_deleted_file_is_a_problem_and_changes_the_digest(damaged: Path) -> None:
    dataset = load_dataset(damaged)
    before = dataset.digest()
    (damaged / "a" / "3.png").unlink()
    assert dataset.digest() != before
    assert [p.id for p in list(iterate(dataset)) if isinstance(p, Problem)] == [
        "a/1.png",
        "a/2.png",
        "a/3.png",
    ]


def test_ignored_files_are_reported(tmp_path: Path) -> None:
    image(tmp_path / "a" / "1.png")
    image(tmp_path / "stray.png")
    (tmp_path / "a" / "2.txt").write_text("no image")
    (tmp_path / "a" / ".hidden").write_text("not looked at")
    (tmp_path / "README.md").write_text("an ignored file")
    dataset = load_dataset(tmp_path)
    assert [problem.id for problem in dataset.problems] == ["stray.png"]
    assert [problem.id for problem in dataset.ignored] == ["a/2.txt"]
    with pytest.raises(ImageFileError, match=r"a/2\.txt"):
        load_dataset(tmp_path, strict=True)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user who may not read all")
def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    image(tmp_path / "a" / "1.png")
    image(tmp_path / "b" / "1.png")
    (tmp_path / "b").chmod(0)
    assert [problem.id for problem in load_dataset(tmp_path).problems] == ["b"]
    (tmp_path / "b").chmod(0o700)


def test_links_in_a_circle(tmp_path: Path) -> None:
    image(tmp_path / "a" / "1.png")
    (tmp_path / "a" / "again").symlink_to(tmp_path / "a")
    assert load_dataset(tmp_path).ids == ["a/1.png"]


def test_a_link_back_to_the_root_gives_no_image_a_second_label(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (16, 16)).save(tmp_path / name / "1.png")
    (tmp_path / "dog" / "up").symlink_to("..")
    assert list(load_dataset(str(tmp_path)).ids) == ["cat/1.png", "dog/1.png"]


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_undecodable_names(tmp_path: Path) -> None:
    image(tmp_path / "a" / "1.png")
    os.rename(tmp_path / "a" / "1.png", os.fsencode(tmp_path / "a") + b"/\xff.png")  # noqa: PTH104
    dataset = load_dataset(tmp_path)
    assert dataset[0].image.shape == (17, 18, 3)
    assert len(dataset.digest()) == 64


def test_no_parts_and_no_images(tmp_path: Path) -> None:
    image(tmp_path / "a" / "1.png")
    with pytest.raises(OptionError, match="no parts"):
        load_dataset(f"folder:{tmp_path}#train")
    with pytest.raises(ImageFileError, match="no images found"):
        load_dataset(f"folder:{tmp_path / 'a'}")
