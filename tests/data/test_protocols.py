"""Splits by any column, and errors for invalid columns."""

from __future__ import annotations

import numpy as np
import pytest

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.data import Dataset, from_arrays
from beaufort.data.protocols import HoldOutProtocol, hold_out, leave_one_out


def photos(cameras: list[str], labels: list[int]) -> Dataset:
    images = np.arange(len(labels), dtype=np.uint8)[:, None, None, None] + np.zeros((1, 8, 8, 3), np.uint8)
    found = from_arrays("photos", images, np.array(labels))
    columns = {"camera": dict(zip(found.ids, cameras, strict=True))}
    return Dataset(found.name, found.classes, found.ids, found.labels, found.pixels, columns=columns)


def test_images_of_a_value_are_held_out() -> None:
    table = photos(["a", "b", "a", "c", "b"], [0, 1, 1, 0, 1])
    split = hold_out(table, "camera", "b")
    assert split.name == "camera=b"
    assert split.train.tolist() == [0, 2, 3]
    assert split.test.tolist() == [1, 4]
    assert split.cap == 1


def test_untrained_classes_limit_the_accuracy() -> None:
    table = photos(["a", "b", "b", "b", "a"], [0, 1, 0, 1, 0])
    split = hold_out(table, "camera", ["b"])
    assert split.has_trained_class.tolist() == [False, True, False]
    assert split.untrained == 2
    assert split.cap == pytest.approx(1 / 3)


def test_every_value_is_left_out_once() -> None:
    table = photos(["b", "a", "c", "a"], [0, 0, 1, 1])
    splits = leave_one_out(table, "camera")
    assert list(splits) == ["a", "b", "c"]
    every = np.concatenate([split.test for split in splits.values()])
    assert sorted(every.tolist()) == [0, 1, 2, 3]
    for split in splits.values():
        assert sorted([*split.train.tolist(), *split.test.tolist()]) == [0, 1, 2, 3]


def test_the_class_is_a_column() -> None:
    assert hold_out(photos(["a", "b"], [0, 1]), "class", "1").untrained == 1


def test_errors_contain_the_exact_cause() -> None:
    table = photos(["nikon", "canon", ""], [0, 1, 1])
    with pytest.raises(UnknownNameError, match=r"'camra'.*'camera'\?$"):
        hold_out(table, "camra", "nikon")
    with pytest.raises(OptionError, match=r"1 of \d values.*\(first: "):
        hold_out(table, "camera", "nikon")
    table = photos(["nikon", "canon"], [0, 1])
    with pytest.raises(UnknownNameError, match=r"'nikkon'.*'nikon'\?$"):
        hold_out(table, "camera", "nikkon")
    with pytest.raises(OptionError, match=r"camera=canon,nikon .*no images of photos"):
        hold_out(table, "camera", ("canon", "nikon"))
    table = photos(["nikon", "nikon"], [0, 1])
    with pytest.raises(OptionError, match=r"must.*only 'nikon'"):
        leave_one_out(table, "camera")


def test_held_out_requires_a_protocol_with_one_value() -> None:
    two = HoldOutProtocol("two", "camera", ("a", "b"))
    with pytest.raises(OptionError, match=r"held_out.*2"):
        two.split(photos(["a", "c"], [0, 0]), held_out="c")
    with pytest.raises(UnknownNameError, match="unknown camera of photos 'a'"):
        two.split(photos(["c", "d"], [0, 0]))


def test_unmatched_names_select_the_values_that_contain_them() -> None:
    table = photos(["cat", "wildcat", "dog", "hotdog stand"], [0, 0, 0, 0])
    assert HoldOutProtocol("x", "camera", ("cat", "dog"), "named").split(table).test.tolist() == [0, 2]
    assert HoldOutProtocol("x", "camera", ("dog", "wild"), "named").split(table).test.tolist() == [1, 2]
