"""Icons-50: counts as in the released files, for all rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beaufort._core.errors import UnknownNameError
from beaufort.data import Dataset, load_dataset
from beaufort.data.protocols import leave_one_out, protocols


@pytest.fixture(scope="session")
def icons(shared: Path) -> Dataset:
    return load_dataset(f"icons-50:{shared / 'data' / 'icons'}")


@pytest.mark.parametrize(
    ("name", "train", "test", "untrained", "subtypes"),
    [
        ("icons-50-style", 8735, 1265, 0, 530),
        ("icons-50-subtype", 8845, 1155, 0, 62),
        ("icons-50-subtype-released", 8514, 1486, 342, 79),
        ("icons-50-traditional", 9169, 831, 0, 436),
        ("icons-50-traditional-released", 8951, 1049, 0, 437),
    ],
)
def test_counts(icons: Dataset, name: str, train: int, test: int, untrained: int, subtypes: int) -> None:
    split = protocols[name].split(icons)
    assert (len(split.train), len(split.test), split.untrained) == (train, test, untrained)
    assert len(set(icons.select(split.test).column("subtype"))) == subtypes


def test_the_released_rule_removes_two_classes_from_training(icons: Dataset) -> None:
    split = protocols["icons-50-subtype-released"].split(icons)
    lost = set(icons.classes) - set(icons.select(split.train).column("class"))
    assert lost == {"books", "monkey"}
    assert split.cap == pytest.approx(0.7699, abs=1e-4)
    clean = protocols["icons-50-subtype"].split(icons)
    assert np.isin(clean.test, split.test).all()
    held = np.bincount(icons.labels[clean.test], minlength=50)
    assert np.count_nonzero(held) == 41
    assert (held / np.bincount(icons.labels)).max() < 0.3


def test_every_style_can_be_held_out(icons: Dataset) -> None:
    splits = leave_one_out(icons, "style")
    counts = "apple 1046 emoji-one 1582 emojidex 524 facebook 1046 google 1270 htc 293 lg 409 microsoft 1265 "
    counts += "mozilla 276 samsung 987 twitter 785 whatsapp 517"
    assert " ".join(f"{value} {len(split.test)}" for value, split in splits.items()) == counts
    split = protocols["icons-50-style"].split(icons, held_out="apple")
    assert split.test.tolist() == splits["apple"].test.tolist()
    with pytest.raises(UnknownNameError, match=r"'aple'.*'apple'"):
        protocols["icons-50-style"].split(icons, held_out="aple")
