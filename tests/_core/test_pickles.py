"""Pickles are read, and nothing in them is run."""

from __future__ import annotations

import collections
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from beaufort._core.pickles import Inert, PickleError, bytes_in, read_pickle

PLAIN = {"a": [1, -2, 3_000_000_000], b"b": (None, True, 2.5, "é"), 3: [[], {}, ()], "long": 1 << 70}
PROTOCOLS = pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))


@PROTOCOLS
def test_plain_values_come_back(protocol: int) -> None:
    assert read_pickle(pickle.dumps(PLAIN, protocol=protocol)) == PLAIN


@PROTOCOLS
def test_an_array_is_its_bytes(protocol: int) -> None:
    array = np.random.default_rng(0).integers(0, 256, (5, 40), np.uint8)
    found = read_pickle(pickle.dumps({"data": array}, protocol=protocol))
    assert isinstance(found["data"], Inert)
    assert bytes_in(found["data"]) == array.tobytes()


class Trap:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


@PROTOCOLS
def test_nothing_is_called(tmp_path: Path, protocol: int) -> None:
    content = pickle.dumps([Trap(tmp_path / "sprung"), 7], protocol=protocol)
    trap, seven = read_pickle(content)
    assert isinstance(trap, Inert)
    assert seven == 7
    assert not (tmp_path / "sprung").exists()
    pickle.loads(content)
    assert (tmp_path / "sprung").exists()  # so it was a trap


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        b"\x80\x02.",
        b"\x80\x02)).",
        b"\x80\x02(K\x01e.",
        b"\x80\x02K\x01K\x02s.",
        b"\x80\x02h\x05.",
        b"\x80\x02t.",
        b"\x80\x02R.",
        pickle.dumps(PLAIN)[:-3],
        pickle.dumps(collections.OrderedDict(a=1), protocol=0)[:40],
        b"\x80\x02P5\n.",
    ],
)
def test_junk_is_rejected(content: bytes) -> None:
    with pytest.raises(PickleError):
        read_pickle(content)


def test_a_pickle_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beaufort._core.pickles._MOST_STEPS", 50)
    with pytest.raises(PickleError, match="more than 50 instructions"):
        read_pickle(b"\x80\x02]" + b"K\x01a" * 100 + b".")
