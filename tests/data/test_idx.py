"""Idx files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from beaufort._core.errors import ImageFileError
from beaufort.data.mnist import read_idx

RNG = np.random.default_rng(5)
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
def test_damaged_idx_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ImageFileError):
        read_idx(tmp_path / "a")
