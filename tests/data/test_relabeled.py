"""Superclasses of CIFAR-100 and ImageNet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import ImageFileError, OptionError, UnknownNameError
from beaufort.data import load_dataset
from beaufort.data.labels import class_names, superclasses
from beaufort.data.protocols import protocols


@pytest.fixture
def cifar100(tmp_path: Path) -> Path:
    """Two images of each class in each split, in the binary version."""
    for split in ("train", "test"):
        records = bytearray()
        for number in range(200):
            records += bytes([0, number % 100]) + bytes([number]) * 3072
        (tmp_path / f"{split}.bin").write_bytes(records)
    return tmp_path


def test_labels_are_broad_and_classes_a_column(cifar100: Path) -> None:
    found = load_dataset(f"cifar-100-coarse:{cifar100}#train")
    assert found.classes == class_names("cifar-100-coarse")
    assert len(found) == 200
    assert np.bincount(found.labels).tolist() == [10] * 20
    place = found.column("subtype").index("seal")
    assert found.column("class")[place] == "aquatic_mammals"
    assert found[3].image[0, 0, 0] == 3


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_first_classes_are_held_out(cifar100: Path, count: int) -> None:
    found = load_dataset(f"cifar-100-coarse:{cifar100}")
    split = protocols[f"cifar-100-coarse-{count}"].split(found)
    assert (len(split.train), len(split.test), split.untrained) == (200 - 40 * count, 40 * count, 0)
    held = set(found.select(split.test).column("subtype"))
    assert {"seal", "shark", "streetcar"} <= held
    assert ("beaver" in held) == (count > 1)
    assert not {"otter", "tank"} & held


def test_cifar_10_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "test_batch.bin").write_bytes(bytes(3073))
    with pytest.raises(ImageFileError, match="cifar-100-coarse requires CIFAR-100"):
        load_dataset(f"cifar-100-coarse:{tmp_path}")


def test_synsets_of_imagenet(tmp_path: Path) -> None:
    broad = {one.name: one for one in superclasses("imagenet-25")}
    wanted = [broad["dog"].members[0], broad["dog"].others[1], broad["bear"].members[0], "n99999999"]
    for wnid in wanted:
        (tmp_path / wnid).mkdir()
        Image.new("RGB", (16, 16)).save(tmp_path / wnid / "1.png")
    found = load_dataset(f"imagenet-25:{tmp_path}")
    assert sorted(found.column("class")) == ["bear", "dog", "dog"]
    split = protocols["imagenet-25"].split(found)
    assert found.select(split.test).column("subtype") == [wanted[1]]
    assert found.select(split.train).column("part") == ["seen", "seen"]
    with pytest.raises(OptionError, match="unknown part 'val'"):
        load_dataset(f"imagenet-25:{tmp_path}#val")


def test_folders_of_other_classes(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    Image.new("RGB", (16, 16)).save(tmp_path / "cat" / "1.png")
    with pytest.raises(ImageFileError, match="imagenet-25"):
        load_dataset(f"imagenet-25:{tmp_path}")


def test_lists_of_broad_classes() -> None:
    for name, count in (("cifar-100-coarse", 20), ("imagenet-25", 25)):
        assert tuple(one.name for one in superclasses(name)) == class_names(name)
        assert len(class_names(name)) == count
    members = [fine for one in superclasses("cifar-100-coarse") for fine in one.members]
    assert sorted(members) == sorted(class_names("cifar-100"))
    ids = [wnid for one in superclasses("imagenet-25") for wnid in one.members + one.others]
    assert len(ids) == len(set(ids)) == 542 + 5017
    with pytest.raises(UnknownNameError, match="'imagenet-26'"):
        superclasses("imagenet-26")
