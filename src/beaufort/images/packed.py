"""Many small pictures in one file: MNIST's idx files, CIFAR-10's binary batch, arrays, a grid.

Nothing here unpickles: a pickle can run any program.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes
from beaufort.errors import ImageFileError
from beaufort.images.read import read_image

__all__ = ["Labeled", "read_cifar", "read_idx"]

_CIFAR_SIDE = 32
_CIFAR_RECORD = 1 + 3 * _CIFAR_SIDE**2
_IDX_UINT8 = 0x08
_IDX_AXES = 4
_CHUNK = 1 << 20
_MOST_BYTES = 1 << 30

CIFAR_ACCEPTED = (
    "give the binary version (test_batch.bin, or the folder that holds it), a folder with images.npy "
    "and labels.npy, or one with a PNG grid of 32×32 tiles and labels.csv"
)


@dataclass(frozen=True)
class Labeled:
    """Pictures `(n, h, w, c)` and their labels `(n,)`, both uint8."""

    images: Bytes
    labels: NDArray[np.uint8]

    def first(self, count: int | None) -> Labeled:
        """The first `count` of them; all if it is None."""
        return Labeled(self.images[:count], self.labels[:count])


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array in an idx file of bytes, gzipped or not."""
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _IDX_UINT8:
        raise ImageFileError(
            f"{path} is not an idx file of bytes; MNIST's are called train-images-idx3-ubyte and so on"
        )
    axes = content[3]
    if not 1 <= axes <= _IDX_AXES:
        raise ImageFileError(
            f"{path} must have 1 to {_IDX_AXES} axes, got {axes}; it is damaged: fetch it again"
        )
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes))
    if 0 in shape or len(content) != start + math.prod(shape):
        raise ImageFileError(
            f"{path} is cut short or damaged: its header says {' × '.join(map(str, shape))} values, got "
            f"{max(0, len(content) - start)}; fetch it again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _content(path: Path) -> bytearray:
    """What a file holds, unpacked; read by and by, so that memory holds it once."""
    content = bytearray()
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            while len(content) <= _MOST_BYTES and (chunk := file.read(_CHUNK)):
                content += chunk
    except (OSError, EOFError, zlib.error) as error:
        raise ImageFileError(f"{path} cannot be read ({error})") from None
    if len(content) > _MOST_BYTES:
        raise ImageFileError(f"{path} must have at most {_MOST_BYTES:,} bytes, uncompressed")
    return content


def read_cifar(source: Path) -> Labeled:
    """The CIFAR-10 test set, in its order, from any supported form."""
    if source.is_file():
        return _binary(source)
    for batch in (source / "test_batch.bin", source / "cifar-10-batches-bin" / "test_batch.bin"):
        if batch.is_file():
            return _binary(batch)
    if (source / "images.npy").is_file() and (source / "labels.npy").is_file():
        return _arrays(source / "images.npy", source / "labels.npy")
    grids = sorted(source.glob("*.png"))
    if len(grids) == 1 and (source / "labels.csv").is_file():
        return _grid(grids[0], source / "labels.csv")
    if any((folder / "test_batch").is_file() for folder in (source, source / "cifar-10-batches-py")):
        raise ImageFileError(
            f"{source} is the Python version of CIFAR-10, a pickle, which is not opened because it could run "
            "arbitrary code; use the binary version (cifar-10-binary.tar.gz)"
        )
    raise ImageFileError(f"{source} is not a CIFAR-10 test set; {CIFAR_ACCEPTED}")


def _binary(path: Path) -> Labeled:
    content = _content(path)
    if not content or len(content) % _CIFAR_RECORD:
        raise ImageFileError(
            f"{path} must have {_CIFAR_RECORD} bytes per picture (a label and 3×32×32 values), got "
            f"{len(content)} bytes"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, _CIFAR_RECORD)
    images = records[:, 1:].reshape(-1, 3, _CIFAR_SIDE, _CIFAR_SIDE).transpose(0, 2, 3, 1)
    return _checked(np.ascontiguousarray(images), records[:, 0].copy(), path)


def _arrays(images: Path, labels: Path) -> Labeled:
    return _checked(_array(images), _array(labels), images)


def _array(path: Path) -> NDArray[Any]:
    """The array in a .npy file, left on the disk until its dtype and shape are looked at."""
    try:
        loaded: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header may be any text, and NumPy parses it
        raise ImageFileError(f"{path} cannot be read as an array ({error})") from None
    return loaded


def _grid(path: Path, labels: Path) -> Labeled:
    grid = np.asarray(read_image(path).convert("RGB"))
    rows, columns = grid.shape[0] // _CIFAR_SIDE, grid.shape[1] // _CIFAR_SIDE
    if grid.shape[:2] != (rows * _CIFAR_SIDE, columns * _CIFAR_SIDE):
        raise ImageFileError(
            f"{path} must be a grid of 32 × 32 tiles, got {grid.shape[0]} × {grid.shape[1]} pixels"
        )
    tiles = grid.reshape(rows, _CIFAR_SIDE, columns, _CIFAR_SIDE, 3).transpose(0, 2, 1, 3, 4)
    numbers = _label_column(labels)
    images = np.ascontiguousarray(tiles.reshape(-1, _CIFAR_SIDE, _CIFAR_SIDE, 3)[: len(numbers)])
    return _checked(images, numbers, path)


def _label_column(path: Path) -> NDArray[np.int64]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return np.array([int(row["label"]) for row in csv.DictReader(file)], np.int64)
    except (OSError, KeyError, TypeError, ValueError, OverflowError, csv.Error) as error:
        raise ImageFileError(f"{path} must have a column `label` of integers ({error})") from None


def _checked(images: NDArray[Any], labels: NDArray[Any], path: Path) -> Labeled:
    if images.dtype != np.uint8 or images.shape[1:] != (_CIFAR_SIDE, _CIFAR_SIDE, 3):
        raise ImageFileError(
            f"{path} must be uint8 of shape (n, 32, 32, 3), got {images.dtype} of shape {images.shape}"
        )
    if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu":
        raise ImageFileError(
            f"labels must be integers of shape ({len(images)},), got {labels.dtype} of shape {labels.shape}"
        )
    if len(labels) == 0 or labels.min() < 0 or labels.max() > 9:
        raise ImageFileError(f"the labels of {path} must be from 0 to 9, at least one; is this CIFAR-10?")
    return Labeled(images, labels.astype(np.uint8))
