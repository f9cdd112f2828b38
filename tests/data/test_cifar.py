"""CIFAR-10 and CIFAR-100 in the forms in which they are downloaded."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.errors import BeaufortError, ImageFileError, OptionError
from beaufort.data import Dataset, Sample, dataset_kind, iterate, load_dataset
from beaufort.data.labels import class_names

RNG = np.random.default_rng(5)
IMAGES = RNG.integers(0, 256, (10, 32, 32, 3), np.uint8)
LABELS = {"cifar-10": [3, 8, 8, 0, 6, 9, 1, 2, 5, 4], "cifar-100": [49, 33, 72, 51, 71, 92, 15, 14, 99, 0]}
BATCHES = {
    "cifar-10": {"test": ["test_batch"], "train": [f"data_batch_{i}" for i in range(1, 6)]},
    "cifar-100": {"test": ["test"], "train": ["train"]},
}
FOLDERS = {
    "cifar-10": {"binary": "cifar-10-batches-bin", "python": "cifar-10-batches-py"},
    "cifar-100": {"binary": "cifar-100-binary", "python": "cifar-100-python"},
}
VERSION = pytest.mark.parametrize("version", LABELS)
FORM = pytest.mark.parametrize("form", ["binary", "python"])


def batch_of(version: str, form: str, rows: slice, protocol: int = 2) -> bytes:
    planes = IMAGES[rows].transpose(0, 3, 1, 2).reshape(-1, 3072)
    labels = LABELS[version][rows]
    if form == "binary":
        before = [labels] if version == "cifar-10" else [[7] * len(labels), labels]
        return np.concatenate([np.array(before, np.uint8).T, planes], axis=1).tobytes()
    batch = {"batch_label": "part", "filenames": [f"{label}.png" for label in labels], "data": planes}
    named = (
        {"labels": labels} if version == "cifar-10" else {"fine_labels": labels, "coarse_labels": [7] * 10}
    )
    return pickle.dumps({**batch, **named}, protocol=protocol)


def files_of(version: str, form: str) -> dict[str, bytes]:
    end = ".bin" if form == "binary" else ""
    found = {}
    for names in BATCHES[version].values():
        fraction = len(IMAGES) // len(names)
        for i, name in enumerate(names):
            found[f"{name}{end}"] = batch_of(version, form, slice(i * fraction, (i + 1) * fraction))
    return found


def write(folder: Path, version: str, form: str) -> Path:
    folder.mkdir(parents=True)
    for name, content in files_of(version, form).items():
        (folder / name).write_bytes(content)
    return folder


def check(dataset: Dataset, version: str, split: str = "test") -> None:
    assert dataset.classes == class_names(version)
    assert dataset.labels.tolist() == LABELS[version]
    assert list(dataset.ids) == [f"{split}/{i}" for i in range(10)]
    samples = [sample for sample in iterate(dataset) if isinstance(sample, Sample)]
    np.testing.assert_array_equal([sample.image for sample in samples], IMAGES)


@VERSION
@FORM
def test_the_unpacked_folder_and_the_one_above(tmp_path: Path, version: str, form: str) -> None:
    folder = write(tmp_path / FOLDERS[version][form], version, form)
    for place in (folder, tmp_path):
        assert dataset_kind(place) == "cifar"
        check(load_dataset(place), version)
        check(load_dataset(f"{place}#train"), version, "train")
    with pytest.raises(OptionError, match="unknown part 'val'"):
        load_dataset(f"{folder}#val")


@VERSION
@FORM
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_the_archive(tmp_path: Path, version: str, form: str, mode: Literal["w", "w:gz"]) -> None:
    path = tmp_path / f"{version}-{form}.tar{'.gz' if mode == 'w:gz' else ''}"
    with tarfile.open(path, mode) as archive:
        for name, content in {"readme.html": b"hello", **files_of(version, form)}.items():
            info = tarfile.TarInfo(f"{FOLDERS[version][form]}/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    check(load_dataset(path), version)
    check(load_dataset(f"{path}#train"), version, "train")


@VERSION
def test_one_batch(tmp_path: Path, version: str) -> None:
    write(tmp_path / "b", version, "binary")
    write(tmp_path / "p", version, "python")
    name = BATCHES[version]["test"][0]
    check(load_dataset(tmp_path / "b" / f"{name}.bin"), version)
    check(load_dataset(tmp_path / "p" / name), version)
    first = load_dataset(tmp_path / "p" / BATCHES[version]["train"][0])
    assert first.ids[0] == "train/0"


@VERSION
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_of_pickle(tmp_path: Path, version: str, protocol: int) -> None:
    name = BATCHES[version]["test"][0]
    (tmp_path / name).write_bytes(batch_of(version, "python", slice(10), protocol))
    check(load_dataset(f"cifar:{tmp_path / name}"), version)


def test_a_grid_beside_labels(tmp_path: Path) -> None:
    tiles = np.concatenate([IMAGES, np.zeros((2, 32, 32, 3), np.uint8)]).reshape(3, 4, 32, 32, 3)
    Image.fromarray(tiles.transpose(0, 2, 1, 3, 4).reshape(96, 128, 3)).save(tmp_path / "grid.png")
    for version, labels in LABELS.items():
        lines = ["index,label,name", *(f"{i},{label},x" for i, label in enumerate(labels))]
        (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
        check(load_dataset(tmp_path), version)
    (tmp_path / "labels.csv").write_text("file,label\ngrid.png,0\n")
    assert dataset_kind(tmp_path) == "csv"  # a list of files is one, also of a single image


def test_arrays_hold_cifar_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", x_test=IMAGES, y_test=np.array(LABELS["cifar-100"])[:, None])
    dataset = load_dataset(tmp_path / "c.npz")
    assert dataset.labels.tolist() == LABELS["cifar-100"]
    assert list(dataset.ids) == [f"test/{i}" for i in range(10)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test_batch.bin", b"x" * 3072, "3073 bytes, got 3072"),
        ("test_batch.bin", b"\x0b" * 3073, "from 0 to 9, .*got 11 to 11"),
        ("test.bin", b"\x64" * 3074, "from 0 to 99, .*got 100 to 100"),
        ("test_batch", pickle.dumps({"labels": [1], "data": b"short"}), "got 5 bytes and 1 labels"),
        ("test_batch", pickle.dumps({"labels": ["cat"], "data": bytes(3072)}), "bytes and 0 labels"),
        ("test_batch", pickle.dumps({"labels": [1 << 80], "data": bytes(3072)}), "integer"),
        ("test_batch", pickle.dumps([1, 2]), "got 0 bytes"),
        ("test_batch", b"\x80\x02}q\x01", "pickle"),
        ("cifar-10-python.tar.gz", b"\x1f\x8bno", "cannot read"),
        ("cifar-10-python.tar", b"no tar" * 200, "cannot read .* as a tar"),
    ],
)
def test_other_files_than_cifar_are_rejected(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ImageFileError, match=message):
        load_dataset(f"cifar:{tmp_path / name}")


def test_a_folder_without_batches(tmp_path: Path) -> None:
    (tmp_path / "test").write_text("my notes on the test")
    assert dataset_kind(tmp_path) is None
    with pytest.raises(ImageFileError, match=r"test_batch\(\.bin\)"):
        load_dataset(f"cifar:{tmp_path}")
    np.save(tmp_path / "images.npy", np.array([{}]), allow_pickle=True)
    np.save(tmp_path / "labels.npy", np.arange(1))
    with pytest.raises(BeaufortError, match="array"):
        load_dataset(tmp_path)


def test_the_real_test_set(shared: Path) -> None:
    dataset = load_dataset(shared / "data" / "cifar10_test")
    assert len(dataset) == 10_000
    assert [dataset.classes[label] for label in dataset.labels[:3]] == ["cat", "ship", "ship"]


def write_rows(folder: Path, name: str, images: NDArray[np.uint8]) -> None:
    Image.fromarray(images.reshape(len(images), 1024, 3)).save(folder / name)


def test_files_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (23, 32, 32, 3), np.uint8)
    labels = (np.arange(23) % 10).tolist()
    for number in range(5):
        write_rows(tmp_path, f"data_batch_{number + 1}.png", images[4 * number : 4 * number + 4])
    write_rows(tmp_path, "test_batch.png", images[20:])
    (tmp_path / "train_lables.json").write_text(json.dumps(labels[:20]))
    (tmp_path / "test_lables.json").write_text(json.dumps(labels[20:]))
    for split, first, count in (("train", 0, 20), ("test", 20, 3)):
        found = load_dataset(f"{tmp_path}#{split}")
        assert (len(found), found.ids[1]) == (count, f"{split}/1")
        assert found.labels.tolist() == labels[first : first + count]
        np.testing.assert_array_equal(found[1].image, images[first + 1])
    assert len(load_dataset(str(tmp_path))) == 3
    (tmp_path / "test_lables.json").write_text("[1, 2]")
    with pytest.raises(ImageFileError, match="list of 3 integers"):
        load_dataset(str(tmp_path))
    (tmp_path / "test_lables.json").write_text("[1, 2")
    with pytest.raises(ImageFileError, match="JSON"):
        load_dataset(str(tmp_path))
    Image.new("RGB", (32, 32)).save(tmp_path / "test_batch.png")
    with pytest.raises(ImageFileError, match=r"1024.*wide.*32"):
        load_dataset(str(tmp_path))
