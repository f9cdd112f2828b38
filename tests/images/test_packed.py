"""Files with many pictures."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort.errors import ImageFileError
from beaufort.images import read_cifar, read_idx

RNG = np.random.default_rng(5)
IMAGES = RNG.integers(0, 256, (6, 32, 32, 3), np.uint8)
LABELS = np.array([3, 8, 8, 0, 6, 9], np.uint8)


def idx(array: np.ndarray) -> bytes:
    shape = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + shape + array.tobytes()


@pytest.mark.parametrize("packed", [False, True])
def test_idx_round_trip(tmp_path: Path, packed: bool) -> None:
    array = RNG.integers(0, 256, (5, 28, 28), np.uint8)
    content = idx(array)
    (tmp_path / "a").write_bytes(gzip.compress(content) if packed else content)
    np.testing.assert_array_equal(read_idx(tmp_path / "a"), array)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\x08",
        b"\0\0\x0d\x01\0\0\0\0",
        idx(LABELS)[:-1],
        idx(LABELS) + b"x",
        gzip.compress(idx(LABELS), mtime=0)[:-9],
        b"\x80\x04pickle",
    ],
)
def test_damaged_idx_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ImageFileError):
        read_idx(tmp_path / "a")


def write_binary(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    records = np.concatenate([LABELS[:, None], IMAGES.transpose(0, 3, 1, 2).reshape(6, -1)], axis=1)
    (folder / "test_batch.bin").write_bytes(records.tobytes())
    return folder


def write_arrays(folder: Path) -> Path:
    np.save(folder / "images.npy", IMAGES)
    np.save(folder / "labels.npy", LABELS.astype(np.int64))
    return folder


def write_grid(folder: Path) -> Path:
    tiles = np.concatenate([IMAGES, np.zeros((2, 32, 32, 3), np.uint8)]).reshape(2, 4, 32, 32, 3)
    Image.fromarray(tiles.transpose(0, 2, 1, 3, 4).reshape(64, 128, 3)).save(folder / "grid.png")
    lines = ["index,label,name", *(f"{i},{label},x" for i, label in enumerate(LABELS))]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


FORMS = {
    "binary file": lambda tmp: write_binary(tmp) / "test_batch.bin",
    "its folder": write_binary,
    "the folder above": lambda tmp: write_binary(tmp / "cifar-10-batches-bin").parent,
    "arrays": write_arrays,
    "grid": write_grid,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_cifar_reads_the_same(tmp_path: Path, form: str) -> None:
    found = read_cifar(FORMS[form](tmp_path))
    np.testing.assert_array_equal(found.images, IMAGES)
    np.testing.assert_array_equal(found.labels, LABELS)
    assert found.labels.dtype == np.uint8
    assert len(found.first(2).images) == len(found.first(2).labels) == 2


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "test_batch").write_bytes(b"\x80\x02}q\x01.")
    with pytest.raises(ImageFileError, match="pickle"):
        read_cifar(tmp_path)
    np.save(tmp_path / "images.npy", np.array([{}]), allow_pickle=True)
    np.save(tmp_path / "labels.npy", LABELS)
    with pytest.raises(ImageFileError, match="array"):
        read_cifar(tmp_path)


def test_what_is_not_cifar_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageFileError, match="give the binary version"):
        read_cifar(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(b"x" * 3072)
    with pytest.raises(ImageFileError, match="3073"):
        read_cifar(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(b"\x0b" * 3073)
    with pytest.raises(ImageFileError, match="from 0 to 9"):
        read_cifar(tmp_path)
    np.save(tmp_path / "images.npy", IMAGES[..., :1])
    np.save(tmp_path / "labels.npy", LABELS)
    (tmp_path / "test_batch.bin").unlink()
    with pytest.raises(ImageFileError, match="uint8"):
        read_cifar(tmp_path)
