"""Names are taken once, and a miss is answered with what is near."""

from __future__ import annotations

import pickle

import pytest

from beaufort.corruptions import corruptions
from beaufort.errors import OptionError, UnknownNameError
from beaufort.registry import Registry


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
    assert len(corruptions) == 31
    assert "fog" in corruptions
    assert "dog" not in corruptions
    assert corruptions.get("dog") is None


def test_corruptions_pickle_by_name() -> None:
    assert pickle.loads(pickle.dumps(corruptions["fog"])) is corruptions["fog"]
