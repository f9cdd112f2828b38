"""MNIST and datasets of the same format: idx files, gzipped or not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError
from beaufort.data._checks import find_file
from beaufort.data._dataset import Dataset, Pixels, numbered
from beaufort.data._files import is_gzipped, read_decompressed
from beaufort.data._reader import reader
from beaufort.data._rows import InMemory, RowIds, Rows, validate_image_shape, validate_labels

_PREFIX = {"test": "t10k", "train": "train"}
_IMAGES, _LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
_IDX_START = b"\0\0\x08"
"""First bytes of an idx file of unsigned bytes; the number of axes follows."""


def _paths(folder: Path, split: str, *names: str) -> list[Path]:
    """Return the paths that a file may have."""
    plain = [f"{_PREFIX[split]}-{name}" for name in names]
    return [folder / form for one in plain for form in (one, f"{one}.gz", one.replace("-idx", ".idx"))]


def splits_in(folder: Path) -> list[str]:
    """Return the splits with at least one file, and the test split in any case."""
    train = any(path.is_file() for path in _paths(folder, "train", _IMAGES, _LABELS))
    return ["train", "test"] if train else ["test"]


def _detect(path: Path) -> bool:
    return any(one.is_file() for split in _PREFIX for one in _paths(path, split, _IMAGES))


@reader(
    "mnist",
    "a directory with t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, gzipped or not",
    _detect,
    parts=("test", "train"),
)
def open_mnist(location: str, part: str) -> Dataset:
    """Open one split, `test` by default; ids are `test/0` and so on."""
    split, folder = part or "test", Path(location)
    names = ((name, f"{_PREFIX[split]}-{name}") for name in (_IMAGES, _LABELS))
    images, labels = (find_file(folder, _paths(folder, split, name), what) for name, what in names)
    array = read_idx(images)
    shape = validate_image_shape(images, array.dtype, array.shape)
    pixels: Pixels = Rows(images, 16, shape)
    if is_gzipped(images):  # cannot be read in place
        pixels = InMemory(array.reshape(shape), images)
    numbers = validate_labels(f"labels of {labels}", read_idx(labels), shape[0])
    return Dataset(folder.name, numbered(numbers, at_least=10), RowIds(split, shape[0]), numbers, pixels)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Return the array in an idx file of bytes, gzipped or not."""
    content = read_decompressed(path)
    if content[:3] != _IDX_START or not 1 <= (axes := content[3] if len(content) > 3 else 0) <= 4:
        raise ImageFileError(f"{path} is not an idx file of bytes")
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4))
    if 0 in shape or len(content) != start + math.prod(shape):
        raise ImageFileError(
            f"{path} is truncated or damaged: its header declares {' × '.join(map(str, shape))} values, "
            f"but {max(0, len(content) - start)} follow"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
