"""Icons-50 from a folder, archives and arrays: the same dataset, and exact errors."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort import evaluate
from beaufort._core.errors import ImageFileError, OptionError, UnknownNameError
from beaufort.data import from_arrays, icon_columns, load_dataset, resized
from beaufort.data.labels import class_names
from beaufort.models import as_model
from beaufort.report import to_text_of_several
from beaufort.results import open_parts, score, shift_scores

CLASSES = class_names("icons-50")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two icons of each class, one of them transparent."""
    folder = tmp_path / "Icons-50"
    for number, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        clear = Image.new("RGBA", (40, 40), (number, 0, 0, 0))
        clear.paste((number, 0, 0, 255), (0, 0, 20, 40))
        clear.save(folder / name / "apple_0_thing.png")
        Image.new("RGB", (64, 64), (0, number, 0)).save(folder / name / "emoji-one_02_thing_type_1_2.png")
    return folder


def test_the_layouts_are_one_dataset(root: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive, tarfile.open(tmp_path / "a.tar", "w") as tar:
        for path in sorted(root.rglob("*.png"), reverse=True):
            archive.write(path, f"Icons-50/{path.relative_to(root)}")
            tar.add(path, f"x/Icons-50/{path.relative_to(root)}")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(root, "Icons-50")
    first = load_dataset(root)
    assert first.classes == CLASSES
    assert first.ids[:2] == ["airplane/apple_0_thing.png", "airplane/emoji-one_02_thing_type_1_2.png"]
    assert [first.column(name)[1] for name in ("style", "version", "subtype")] == [
        "emoji-one",
        "2",
        "thing_type_1_2",
    ]
    for where in (
        str(tmp_path),
        f"icons-50:{root}",
        *(f"icons-50:{tmp_path}/a{s}" for s in (".zip", ".tar", ".tar.gz")),
    ):
        other = load_dataset(where)
        assert other.digest() == first.digest()
        assert other.columns == first.columns
        assert np.array_equal(other[7].image, first[7].image)


def test_transparency_gets_a_white_background(root: Path) -> None:
    image = load_dataset(root)[2].image
    assert image[0, 0].tolist() == [1, 0, 0]
    assert image[0, -1].tolist() == [255, 255, 255]


def test_arrays_are_the_same_icons(root: Path, tmp_path: Path) -> None:
    first = resized(load_dataset(root), 32)
    order = np.random.default_rng(0).permutation(len(first))
    np.savez_compressed(
        tmp_path / "icons.npz",
        x=np.stack([first[place].image for place in order]),
        y=first.labels[order].astype(np.uint8),
        classes=np.array(CLASSES),
        fname=np.array([first.ids[place].rpartition("/")[2] for place in order]),
    )
    other = load_dataset(tmp_path / "icons.npz")
    assert list(other.ids) == list(first.ids)
    assert other.columns == first.columns
    assert other.labels.tolist() == first.labels.tolist()
    assert all(np.array_equal(other[place].image, first[place].image) for place in range(len(first)))


def test_an_image_without_a_style_is_reported(root: Path) -> None:
    Image.new("RGB", (4, 4)).save(root / "bird" / "duck.png")
    with pytest.raises(
        ImageFileError,
        match=r"STYLE_VERSION_SUBTYPE\.png.*'bird/duck\.png'",
    ):
        load_dataset(f"icons-50:{root}")


def test_class_folders_must_be_those_of_the_set(root: Path) -> None:
    for path in (root / "bird").iterdir():
        path.unlink()
    with pytest.raises(ImageFileError, match=r"1.*50.*icons-50 .*'bird'"):
        load_dataset(f"icons-50:{root}")
    shutil.rmtree(root / "bird")
    with pytest.raises(ImageFileError, match=r"1.*50.*icons-50 .*'bird'"):
        load_dataset(f"icons-50:{root}")
    (root / "birds").mkdir()
    (root / "bird").mkdir()
    with pytest.raises(ImageFileError, match=r"'birds'.*50"):
        load_dataset(f"icons-50:{root}")


def test_duplicate_images_are_reported(root: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for path in root.rglob("*.png"):
            archive.write(path, f"Icons-50/{path.relative_to(root)}")
        path = next(iter(sorted((root / "bird").iterdir())))
        archive.write(path, f"older/bird/{path.name}")
    with pytest.raises(ImageFileError, match=f"'bird/{path.name}'"):
        load_dataset(f"icons-50:{tmp_path}/a.zip")
    images, labels = np.zeros((2, 8, 8, 3), np.uint8), np.zeros(2, np.int64)
    np.savez(tmp_path / "a.npz", x=images, y=labels, classes=CLASSES, fname=["apple_0_jet.png"] * 2)
    with pytest.raises(ImageFileError, match=r"'airplane/apple_0_jet\.png'.* once"):
        load_dataset(f"icons-50:{tmp_path}/a.npz")


def test_archives_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("a.zip", "a.tar", "a.tar.gz", "a.npz"):
        (tmp_path / name).write_bytes(b"nothing of the kind" * 50)
        with pytest.raises(ImageFileError, match="cannot read"):
            load_dataset(f"icons-50:{tmp_path / name}")
    np.savez(tmp_path / "b.npz", x=np.zeros((1, 32, 32, 3), np.uint8))
    with pytest.raises(ImageFileError, match=r"3.*4.*'classes'"):
        load_dataset(f"icons-50:{tmp_path / 'b.npz'}")


def test_parts_are_rejected(root: Path) -> None:
    with pytest.raises(OptionError, match="unknown part 'style'"):
        load_dataset(f"icons-50:{root}#style")


def test_names_that_have_no_style() -> None:
    for name in ("duck.png", "apple_duck.png", "apple__duck.png", "_0_duck.png", "apple_0_.png"):
        with pytest.raises(ImageFileError, match="STYLE_VERSION_SUBTYPE"):
            icon_columns([f"bird/{name}"])


def test_invalid_sizes(root: Path) -> None:
    for side in (0, 2.5, True):
        with pytest.raises(OptionError, match=r"side.*1"):
            resized(load_dataset(root), side)  # type: ignore[arg-type]
    dataset = load_dataset(root)
    assert resized(dataset, 32).digest() != dataset.digest()
    assert resized(dataset, 32)[0].image.shape == (32, 32, 3)


def test_a_suite_evaluates_the_images_that_its_protocol_holds_out(root: Path, tmp_path: Path) -> None:
    for number, name in enumerate(CLASSES):
        Image.new("RGB", (72, 72), (number, 0, 0)).save(root / name / "microsoft_0_thing.png")
    model = as_model(
        lambda images: np.eye(50, dtype=np.float32)[np.minimum(images[:, 0, 0, 0], 41)],
        name="reader",
        classes=50,
    )
    evaluate([model], "icons-50-style", str(root), tmp_path / "store")
    (scores,) = [score(part) for part in open_parts(tmp_path / "store")]
    (row,) = shift_scores([scores])
    assert (scores.images, row.accuracy.value, row.clean) == (50, 0.84, None)
    text = to_text_of_several([scores], "md")
    assert "icons-50-style" in text
    assert "counterpart" not in text
    with pytest.raises(UnknownNameError, match="Icons-50 'small_airplane'"):
        evaluate([model], "icons-50-subtype", str(root))
    photos = from_arrays("photos", np.zeros((4, 32, 32, 3), np.uint8), np.arange(4))
    with pytest.raises(UnknownNameError, match="'style'"):
        evaluate([model], "icons-50-style", photos)
