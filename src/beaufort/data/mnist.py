"""MNIST and its relatives in their idx files, gzipped or not."""

from __future__ import annotations

from pathlib import Path

from beaufort._core.errors import ImageFileError
from beaufort.data._dataset import Dataset, Pixels, numbered
from beaufort.data._reader import reader
from beaufort.data._rows import InMemory, RowIds, Rows, validate_image_shape, validate_labels
from beaufort.data.images import is_gzipped, read_idx

_PREFIX = {"test": "t10k", "train": "train"}
_IMAGES, _LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"


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
    array = read_idx(images)
    shape = validate_image_shape(images, array.dtype, array.shape)
    pixels: Pixels = Rows(images, 16, shape)
    if is_gzipped(images):  # then it has to be in memory
        pixels = InMemory(array.reshape(shape), images)
    numbers = validate_labels(f"labels of {labels}", read_idx(labels), shape[0])
    return Dataset(folder.name, numbered(numbers, at_least=10), RowIds(split, shape[0]), numbers, pixels)
