"""Arrays in files and in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data import PreparedImages, Problem, RowIds, _rows, from_arrays, load_dataset
from beaufort.data._dataset import read_several

IMAGES = np.arange(4 * 18 * 17, dtype=np.uint32).astype(np.uint8).reshape(4, 18, 17)
LABELS = np.array([1, 0, 2, 1], np.int32)

PROBE = """
import json, resource, sys
from beaufort.data import load_dataset
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
dataset = load_dataset(sys.argv[1])
values = [int(dataset[i].image.max()) for i in (0, len(dataset) // 2, len(dataset) - 1)]
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps([len(dataset), values, grown / 1024]))
"""


def sparse(path: Path, shape: tuple[int, ...]) -> None:
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + int(np.prod(shape, dtype=np.int64)))


@pytest.mark.skipif(sys.platform == "win32", reason="resource is not there")
def test_memory_stays_bounded(tmp_path: Path) -> None:
    count = 20_000
    sparse(tmp_path / "images.npy", (count, 224, 224, 3))
    np.save(tmp_path / "labels.npy", np.zeros(count, np.int64))
    assert (tmp_path / "images.npy").stat().st_size > 3e9
    child = subprocess.run(
        [sys.executable, "-c", PROBE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    length, values, grown_mb = json.loads(child.stdout)
    assert (length, values) == (count, [0, 0, 0])
    assert grown_mb < 50


def test_an_npy_and_its_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "train_images.npy", IMAGES)
    np.save(tmp_path / "train_labels.npy", LABELS)
    assert load_dataset(f"npy:{tmp_path}#train").ids[3] == "train/3"
    assert load_dataset(tmp_path / "train_images.npy").labels.tolist() == [1, 0, 2, 1]
    (tmp_path / "train_images.npy").rename(tmp_path / "images.npy")
    (tmp_path / "train_labels.npy").rename(tmp_path / "labels.npy")
    np.testing.assert_array_equal(load_dataset(tmp_path / "images.npy")[2].image[..., 0], IMAGES[2])


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES.astype(np.float32), LABELS, "float32"),
        (IMAGES.transpose(), LABELS, "Fortran order"),
        (IMAGES[:, None], LABELS, r"\(n, h, w, 3\)"),
        (IMAGES[:0], LABELS[:0], "n at least 1"),
        (IMAGES, LABELS[:3], r"\(3,\)"),
        (IMAGES, LABELS.astype(float), "integer labels"),
        (IMAGES, LABELS - 1, "got -1"),
        (IMAGES, LABELS.astype(np.uint64) + 2**63, "from 0 to 999,999"),
        (IMAGES, np.array(["a", "b", "c", "d"], object), "pickled"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_arrays_that_are_rejected(
    tmp_path: Path, images: np.ndarray, labels: np.ndarray, message: str, packed: bool
) -> None:
    if packed:
        np.savez_compressed(tmp_path / "x.npz", images=images, labels=labels)
    else:
        np.save(tmp_path / "images.npy", images)
        np.save(tmp_path / "labels.npy", labels)
    with pytest.raises(ImageFileError, match=message):
        load_dataset(tmp_path / "x.npz" if packed else tmp_path)


def test_truncated_files(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "labels.npy", LABELS)
    dataset = load_dataset(tmp_path)
    content = (tmp_path / "images.npy").read_bytes()
    (tmp_path / "images.npy").write_bytes(content[:-1])
    with pytest.raises(ImageFileError, match="truncated"):
        load_dataset(tmp_path)
    with pytest.raises(ImageFileError, match="truncated"):
        dataset[3]


def test_npz_arrays_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x_train=IMAGES, y_train=LABELS, other=LABELS)
    assert load_dataset(f"{tmp_path}/x.npz#train").ids[0] == "train/0"
    with pytest.raises(ImageFileError, match=r"x_train.*y_train"):
        load_dataset(tmp_path / "x.npz")


def test_in_memory() -> None:
    dataset = from_arrays("mine", IMAGES, LABELS, split="val", classes=("a", "b", "c"))
    assert dataset[1].id == "val/1"
    dataset[0].image[:] = 9
    assert dataset[0].image[0, 0, 0] == IMAGES[0, 0, 0]
    other = IMAGES.copy()
    other[3, 0, 0] ^= 1
    digests = {
        from_arrays("mine", images, labels).digest()
        for images in (IMAGES, other, IMAGES.reshape(4, 17, 18))
        for labels in (LABELS, LABELS[::-1].copy())
    }
    assert len(digests) == 6
    with pytest.raises(ImageFileError, match="from 0 to 1"):
        from_arrays("mine", IMAGES, LABELS, classes=("a", "b"))


@given(st.integers(0, 20), st.slices(20))
def test_row_ids_are_like_a_list(count: int, part: slice) -> None:
    ids, plain = RowIds("test", count), [f"test/{i}" for i in range(count)]
    assert list(ids) == plain
    assert list(ids[part]) == plain[part]


@pytest.mark.parametrize("order", ["original", "shuffled"])
@pytest.mark.parametrize("neighbors", [1, 3, 100])
def test_images_read_together_are_those_read_alone(
    tmp_path: Path, order: str, neighbors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a truncated file, the remaining images are read and each missing one is reported."""
    monkeypatch.setattr(_rows, "_READ_BYTES", neighbors * 18 * 17)
    count = 20
    np.save(
        tmp_path / "images.npy",
        np.arange(count * 18 * 17, dtype=np.uint32).astype(np.uint8).reshape(-1, 18, 17),
    )
    np.save(tmp_path / "labels.npy", np.zeros(count, np.int64))
    dataset = load_dataset(str(tmp_path))
    images = PreparedImages(dataset if order == "original" else dataset.shuffled(1), (), gray=True)
    for left in (count, 13):
        with (tmp_path / "images.npy").open("r+b") as file:
            file.truncate(file.seek(0, 2) - (count - left) * 18 * 17)
        together, alone = list(images.read_many(range(2, 18))), [images(place) for place in range(2, 18)]
        assert len(together) == 16
        for one, other in zip(together, alone, strict=True):
            assert one == other if isinstance(other, Problem) else np.array_equal(one, other)
        assert any(isinstance(one, Problem) for one in together) == (left < count)


@pytest.mark.parametrize("images", [IMAGES, np.asfortranarray(IMAGES)], ids=["rows", "columns"])
def test_images_in_memory_are_not_copied_for_a_run(images: np.ndarray) -> None:
    dataset = from_arrays("four", images, LABELS)
    for place, image in enumerate(read_several(dataset.pixels, range(4))):
        assert np.array_equal(image, dataset[place].image)
        assert image.flags.c_contiguous
        assert np.shares_memory(image, images) == images.flags.c_contiguous
        assert not (image.flags.writeable and np.shares_memory(image, images))
    dataset[0].image[:] = 0  # which is a copy
    assert np.array_equal(dataset[0].image[..., 0], IMAGES[0])


@pytest.mark.parametrize("labels", [[0.5] * 4, [0], [-1, 0, 0, 0]])
def test_invalid_labels_are_reported_by_name(labels: list[float]) -> None:
    """The message must distinguish labels from images."""
    with pytest.raises(ImageFileError, match=r"^labels of mine .*got"):
        from_arrays("mine", np.zeros((4, 32, 32), np.uint8), np.array(labels))


@pytest.mark.parametrize("classes", [["a", "b", "c"], np.array(["a", "b", "c"]), iter("abc")])
def test_names_of_classes_in_any_list(classes: Any) -> None:
    found = from_arrays("mine", IMAGES, LABELS, classes=classes)
    assert found.classes == ("a", "b", "c")
    assert found.digest() == from_arrays("mine", IMAGES, LABELS, classes=("a", "b", "c")).digest()


@pytest.mark.parametrize("classes", ["abc", {"a", "b", "c"}])
def test_invalid_lists_of_classes(classes: Any) -> None:
    with pytest.raises(OptionError, match=r"classes of mine.*list"):
        from_arrays("mine", IMAGES, LABELS, classes=classes)
