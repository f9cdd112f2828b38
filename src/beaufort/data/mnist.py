"""MNIST and its relatives in their idx files, gzipped or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from beaufort._core.errors import ImageFileError
from beaufort.data._dataset import Dataset, Pixels, numbered
from beaufort.data._reader import reader
from beaufort.data._rows import InMemory, RowIds, Rows, validate_image_shape, validate_labels
from beaufort.data.images import read_idx

_PREFIX = {"test": "t10k", "train": "train"}
_IMAGES, _LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
_MAGIC = bytes([0, 0, 8, 3])


def _find(folder: Path, split: str, name: str) -> Path | None:
    plain = f"{_PREFIX[split]}-{name}"
    forms = (plain, f"{plain}.gz", plain.replace("-idx", ".idx"))
    return next((folder / form for form in forms if (folder / form).is_file()), None)


def splits_in(folder: Path) -> list[str]:
    """The splits of which at least one file is there; the test split always, for its error."""
    return [
        s for s in ("train", "test") if s == "test" or any(_find(folder, s, n) for n in (_IMAGES, _LABELS))
    ]


def _detect(path: Path) -> bool:
    return any(_find(path, split, _IMAGES) for split in _PREFIX)


@reader(
    "mnist",
    "a folder with t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, gzipped or not",
    _detect,
    parts=("test", "train"),
)
def open_mnist(location: str, part: str) -> Dataset:
    """One split, `test` if none is named; ids are `test/0` and so on."""
    split, folder = part or "test", Path(location)
    images, labels = (_find(folder, split, name) for name in (_IMAGES, _LABELS))
    if images is None or labels is None:
        missing = _IMAGES if images is None else _LABELS
        raise ImageFileError(f"{location} must contain {_PREFIX[split]}-{missing}, gzipped or not")
    pixels, count = _pixels(images)
    numbers = validate_labels(f"labels of {labels}", read_idx(labels), count)
    return Dataset(folder.name, numbered(numbers, at_least=10), RowIds(split, count), numbers, pixels)


def _pixels(path: Path) -> tuple[Pixels, int]:
    """A plain file is read row by row; a gzipped one has to be in memory."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise ImageFileError(f"{path} cannot be read ({error.strerror or error})") from None
    if head[:2] == b"\x1f\x8b":
        images = read_idx(path)
        shape = validate_image_shape(path, images.dtype, images.shape)
        return InMemory(images.reshape(shape), path), shape[0]
    sides = tuple(int.from_bytes(head[at : at + 4], "big") for at in (4, 8, 12))
    if len(head) < 16 or head[:4] != _MAGIC:
        raise ImageFileError(
            f"{path} is not an idx file of pictures; its first bytes are {head[:4].hex(' ')}"
        )
    shape = validate_image_shape(path, np.dtype(np.uint8), sides)
    if path.stat().st_size != 16 + shape[0] * shape[1] * shape[2]:
        raise ImageFileError(
            f"{path} is cut short or damaged: its header says {' × '.join(map(str, sides))} values, got "
            f"{path.stat().st_size - 16}; fetch it again"
        )
    return Rows(path, 16, shape), shape[0]
