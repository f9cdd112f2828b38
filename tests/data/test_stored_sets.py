"""Published C-sets: the right part, with the ids of the clean images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data import load_dataset


@pytest.fixture
def cifar(tmp_path: Path) -> Path:
    values = np.arange(20, dtype=np.uint8)
    np.save(tmp_path / "fog.npy", np.broadcast_to(values[:, None, None, None], (20, 32, 32, 3)))
    np.save(tmp_path / "labels.npy", np.tile(np.arange(4), 5))
    return tmp_path


@pytest.mark.parametrize("severity", range(1, 6))
def test_a_fifth_of_cifar10_c(cifar: Path, severity: int) -> None:
    dataset = load_dataset(f"cifar10-c:{cifar}#fog@{severity}")
    assert list(dataset.ids) == [f"test/{i}" for i in range(4)]
    assert [sample.image.max() for sample in map(dataset.__getitem__, range(4))] == [
        4 * (severity - 1) + i for i in range(4)
    ]
    assert dataset.classes[0] == "airplane"
    assert dataset.name == f"{cifar.name}-fog-{severity}"


def test_severities_have_digests_of_their_own(cifar: Path) -> None:
    assert len({load_dataset(f"{cifar}#fog@{severity}").digest() for severity in range(1, 6)}) == 5


def test_cifar100_c_has_the_same_layout(cifar: Path) -> None:
    np.save(cifar / "labels.npy", np.tile([0, 1, 2, 99], 5))
    assert len(load_dataset(f"{cifar}#fog@1").classes) == 100


@pytest.mark.parametrize("part", ["", "#fog", "#fog@6", "#fog@0", "#@3", "#fog@3@3"])
def test_the_part_must_be_named(cifar: Path, part: str) -> None:
    with pytest.raises(OptionError, match="#fog@3"):
        load_dataset(f"{cifar}{part}")


def test_missing_corruption_and_incomplete_array(cifar: Path) -> None:
    with pytest.raises(OptionError, match=r"snow\.npy not found.*--corruption fog"):
        load_dataset(f"{cifar}#snow@1")
    np.save(cifar / "fog.npy", np.zeros((19, 32, 32, 3), np.uint8))
    np.save(cifar / "labels.npy", np.zeros(19, int))
    with pytest.raises(ImageFileError, match=r"fog\.npy has 19"):
        load_dataset(f"{cifar}#fog@1")


def test_imagenet_c_has_the_ids_of_the_clean_folder(tmp_path: Path) -> None:
    for root in ("clean", "c/fog/3", "c/fog/4"):
        for name in ("n01/a.JPEG", "n02/b.JPEG"):
            path = tmp_path / root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (20, 20), len(root)).save(path)
    clean, corrupted = load_dataset(tmp_path / "clean"), load_dataset(f"{tmp_path}/c#fog@3")
    assert clean.ids == corrupted.ids == ["n01/a.JPEG", "n02/b.JPEG"]
    assert corrupted.name == "c-fog-3"
    with pytest.raises(OptionError, match="contains fog"):
        load_dataset(f"{tmp_path}/c#snow@3")
    with pytest.raises(OptionError, match="#fog@3"):
        load_dataset(tmp_path / "c")


def test_mnist_c(tmp_path: Path) -> None:
    (tmp_path / "fog").mkdir()
    for split, count in (("test", 2), ("train", 3)):
        np.save(tmp_path / "fog" / f"{split}_images.npy", np.zeros((count, 28, 28, 1), np.uint8))
        np.save(tmp_path / "fog" / f"{split}_labels.npy", np.arange(count))
    assert list(load_dataset(f"{tmp_path}#fog").ids) == ["test/0", "test/1"]
    assert len(load_dataset(f"mnist-c:{tmp_path}#fog/train")) == 3
    for part in ("", "#snow", "#fog/other", "#../fog"):
        with pytest.raises(OptionError, match="contains fog"):
            load_dataset(f"{tmp_path}{part}")


def test_arrays_of_different_lengths_are_both_named(tmp_path: Path) -> None:
    """The shorter file may be incomplete, whichever it is."""
    for length, count in ((5, 10), (10, 5)):
        np.save(tmp_path / "fog.npy", np.zeros((length, 32, 32, 3), np.uint8))
        np.save(tmp_path / "labels.npy", np.zeros(count, np.uint8))
        with pytest.raises(ImageFileError, match=rf"fog\.npy.*{length}.*labels\.npy.*{count}"):
            load_dataset(f"cifar10-c:{tmp_path}#fog@1")
    content = (tmp_path / "fog.npy").read_bytes()
    (tmp_path / "fog.npy").write_bytes(content[: len(content) // 2])
    with pytest.raises(ImageFileError, match=r"fog\.npy is truncated"):
        load_dataset(f"cifar10-c:{tmp_path}#fog@1")
