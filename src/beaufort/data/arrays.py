"""Pictures and labels in NumPy's files, or in memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data._dataset import Dataset, numbered
from beaufort.data._npy import Stored, in_npz, pixels_in, stored_in
from beaufort.data._reader import reader
from beaufort.data._rows import InMemory, RowIds, check_shape, whole_numbers


def from_arrays(
    name: str,
    images: ArrayLike,
    labels: ArrayLike,
    *,
    split: str = "test",
    classes: Iterable[str] = (),
) -> Dataset:
    """A data set of arrays in memory.

    >>> from_arrays("two", np.zeros((2, 28, 28), np.uint8), [3, 1]).ids[1]
    'test/1'
    """
    array = np.asarray(images)
    shape = check_shape(name, array.dtype, array.shape)
    numbers = whole_numbers(f"labels of {name}", np.asarray(labels), shape[0])
    pixels = InMemory(array.reshape(shape))
    named = _class_names(name, classes) or numbered(numbers)
    return Dataset(name, named, RowIds(split, shape[0]), numbers, pixels)


def _class_names(name: str, classes: Iterable[str]) -> tuple[str, ...]:
    """Names as a tuple; an error for what has no order, or is no text."""
    some = isinstance(classes, Iterable) and not isinstance(classes, str | bytes | set | frozenset)
    found = tuple(classes) if some else ()
    if not some or not all(isinstance(one, str) for one in found):
        raise OptionError(
            f"classes of {name} must be a list of names in the order of labels, got {classes!r:.60}"
        )
    return tuple(map(str, found))


@reader(
    "npy",
    "a folder with images.npy and labels.npy, or one .npy file with the other beside it",
    lambda path: path.suffix == ".npy" or (path / "images.npy").is_file(),
)
def open_npy(location: str, part: str) -> Dataset:
    """Rows in their order; with a part, as in `#train`, the files are train_images.npy and so on."""
    path, split = Path(location), part or "test"
    images = path if path.suffix == ".npy" else path / (f"{part}_images.npy" if part else "images.npy")
    labels = images.with_name(images.name.replace("images", "labels"))
    if labels == images:
        labels = images.with_name("labels.npy")
    return _dataset(path.stem, split, stored_in(images), stored_in(labels))


@reader(
    "npz", "an .npz file with the arrays images and labels, or x and y", lambda path: path.suffix == ".npz"
)
def open_npz(location: str, part: str) -> Dataset:
    """Rows in their order; with a part, as in `#train`, the arrays are train_images or x_train and so on."""
    path, split = Path(location), part or "test"
    arrays = in_npz(path)
    pairs = [(f"{part}_images", f"{part}_labels"), (f"x_{part}", f"y_{part}")]
    if not part:
        pairs = [("images", "labels"), ("x", "y"), ("test_images", "test_labels"), ("x_test", "y_test")]
    for images, labels in pairs:
        if images in arrays and labels in arrays:
            return _dataset(path.stem, split, arrays[images], arrays[labels])
    wanted = " or ".join(f"{images} and {labels}" for images, labels in pairs)
    raise ImageFileError(f"{path} must contain {wanted}, got {', '.join(arrays) or 'no arrays'}")


def _dataset(name: str, split: str, images: Stored, labels: Stored) -> Dataset:
    pixels, count = pixels_in(images)
    numbers = labels.labels(count)
    return Dataset(name, numbered(numbers), RowIds(split, count), numbers, pixels)
