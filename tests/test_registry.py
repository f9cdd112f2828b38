"""Names are taken once, and a miss is answered with what is near."""

from __future__ import annotations

import pickle

import pytest

from beaufort.corruptions import corruptions
from beaufort.errors import OptionError, UnknownNameError
from beaufort.registry import Registry, listed


def test_taken_once() -> None:
    registry = Registry[int]("thing")
    registry.register("a", 1)
    with pytest.raises(OptionError, match="already registered"):
        registry.register("a", 2)
    assert registry["a"] == 1


def test_near_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'fog'"):
        corruptions["fogg"]
    with pytest.raises(KeyError, match="gaussian_noise"):
        corruptions["gausian_noise"]
    with pytest.raises(UnknownNameError, match="known are"):
        corruptions["xyzzy"]


def test_mapping() -> None:
    assert len(corruptions) == 46
    assert "fog" in corruptions
    assert "dog" not in corruptions
    assert corruptions.get("dog") is None


def test_corruptions_pickle_by_name() -> None:
    assert pickle.loads(pickle.dumps(corruptions["fog"])) is corruptions["fog"]


def test_a_long_list_is_cut_off() -> None:
    assert listed(map(str, range(3))) == "0, 1, 2"
    assert listed(map(str, range(33))).endswith(", 28, 29 and 3 others")
