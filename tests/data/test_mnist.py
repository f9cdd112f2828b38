"""Idx files."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data import _catalog_entries, load_dataset

HEAD = bytes([0, 0, 8, 3]) + np.array([2, 28, 28], ">u4").tobytes()
LABELS = bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 1])


def write(
    root: Path, images: bytes = HEAD + bytes(2 * 784), labels: bytes = LABELS, prefix: str = "t10k"
) -> Path:
    (root / f"{prefix}-images-idx3-ubyte").write_bytes(images)
    (root / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)
    return root


def test_splits(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, prefix="train")
    assert load_dataset(f"{tmp_path}#train").ids[1] == "train/1"
    dataset = load_dataset(tmp_path)
    assert (dataset.ids[0], dataset.labels.tolist()) == ("test/0", [7, 1])
    assert dataset.classes == tuple("0123456789")
    with pytest.raises(OptionError, match="available: test, train"):
        load_dataset(f"mnist:{tmp_path}#validation")


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (HEAD + bytes(2 * 784 - 1), LABELS, "truncated"),
        (HEAD + bytes(2 * 784 + 1), LABELS, "truncated or damaged"),
        (b"", LABELS, "not an idx file"),
        (b"\0\0\x0d\3" + HEAD[4:], LABELS, "not an idx file"),
        (gzip.compress(HEAD + bytes(2 * 784), mtime=0)[:-12], LABELS, "cannot read"),
        (HEAD + bytes(2 * 784), LABELS[:-1], "truncated or damaged"),
        (HEAD + bytes(2 * 784), bytes([0, 0, 8, 1, 0, 0, 0, 1, 7]), r"\(1,\)"),
    ],
)
def test_damaged_files(tmp_path: Path, images: bytes, labels: bytes, message: str) -> None:
    with pytest.raises(ImageFileError, match=message):
        load_dataset(write(tmp_path, images, labels))


def test_images_without_labels(tmp_path: Path) -> None:
    (write(tmp_path) / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(ImageFileError, match="t10k-labels-idx1-ubyte"):
        load_dataset(tmp_path)


def test_the_real_dataset(shared: Path) -> None:
    dataset = load_dataset(shared / "data" / "mnist")
    assert np.bincount(dataset.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert dataset[0].image.shape == (28, 28, 1)
    assert dataset.digest() == "1755c4157764df0d717d6458d94160cdce8e4b90ec488781a12931407ad7fd75"


def test_by_name_from_a_mirror(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    monkeypatch.setenv("BEAUFORT_MIRROR", str(shared / "data"))
    dataset = load_dataset("mnist-test")
    assert (dataset.name, len(dataset)) == ("mnist-test", 10_000)
    assert dataset.digest() == load_dataset(shared / "data" / "mnist").digest()
    monkeypatch.delenv("BEAUFORT_MIRROR")
    assert len(load_dataset("mnist-test")) == 10_000  # from the cache
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(OSError, match="BEAUFORT_OFFLINE is set"):
        load_dataset("mnist-test")


def test_idx_from_csv() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 784))
    rows = [",".join(map(str, [label, *row])) for label, row in zip([5, 0, 9], pixels, strict=True)]
    content = "\r\n".join(["label,1x1", *rows, ""]).encode()
    images, labels = _catalog_entries.images_from_csv(content), _catalog_entries.labels_from_csv(content)
    assert images == HEAD.replace(b"\2", b"\3", 1) + pixels.astype(np.uint8).tobytes()
    assert labels == bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 9])
