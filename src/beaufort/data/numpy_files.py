"""Arrays in .npy and .npz files, read in place and never unpickled: a pickle can run any program."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data._checks import check_at_most, reading
from beaufort.data._dataset import Dataset, Pixels, numbered
from beaufort.data._digest import CHUNK
from beaufort.data._files import zip_members
from beaufort.data._reader import reader
from beaufort.data._rows import InMemory, RowIds, Rows, validate_image_shape, validate_labels

_MAX_COMPRESSED_BYTES = 1 << 30
_MAX_HEADER_BYTES = 1 << 16
_MAX_LABELS = 1 << 24
"""Labels are loaded into memory, where a small compressed file can expand to any size."""


@dataclass(frozen=True)
class StoredArray:
    """An array in a file that has not been read yet."""

    path: Path
    where: str
    """Name in error messages."""
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    packed_as: str = ""
    """Member of a zip that contains it in compressed form; '' if it can be read in place."""

    def load(self) -> NDArray[Any]:
        """Return the array, with one copy in memory."""
        with reading(self.where):
            if not self.packed_as:
                count = math.prod(self.shape)
                return np.fromfile(self.path, self.dtype, count=count, offset=self.offset).reshape(self.shape)
            loaded = np.empty(self.shape, self.dtype)
            with zipfile.ZipFile(self.path) as archive, archive.open(self.packed_as) as file:
                file.read(self.offset)
                _fill(loaded.reshape(-1).view(np.uint8), file)
            return loaded

    def labels(self, count: int) -> NDArray[np.int64]:
        """Return the array as the labels of `count` images."""
        if self.shape not in ((count,), (count, 1)) or self.dtype.kind not in "iu":  # before it is loaded
            raise ImageFileError(
                f"{self.where} must contain {count:,} integer labels, one for each image, got "
                f"{self.dtype!s:.40} of shape {self.shape}"
            )
        check_at_most(self.where, count, _MAX_LABELS, "labels")
        return validate_labels(f"labels of {self.where}", self.load().reshape(-1), count)


def npy_array(path: Path) -> StoredArray:
    """Return the array in a .npy file."""
    with reading(f"{path} as an array"):
        with path.open("rb") as file:
            shape, dtype, offset = _header(file)
        size = path.stat().st_size
    if size < offset + math.prod(shape) * dtype.itemsize:
        raise ImageFileError(f"{path} is truncated: its header declares {dtype} of shape {shape}")
    return StoredArray(path, str(path), offset, shape, dtype)


def npz_arrays(path: Path) -> dict[str, StoredArray]:
    """Return the arrays in an .npz file by name."""
    arrays = {}
    for member in zip_members(path).values():
        name = member.name.removesuffix(".npy")
        if name == member.name:
            continue
        where = f"{path}[{name}]"
        with (
            reading(f"{where} as an array"),
            zipfile.ZipFile(path) as archive,
            archive.open(member.name) as file,
        ):
            shape, dtype, inside = _header(file)
        if member.size != inside + math.prod(shape) * dtype.itemsize:
            raise ImageFileError(
                f"{where} is damaged: its header declares {dtype} of shape {shape}, but "
                f"{member.size - inside} bytes follow"
            )
        if member.method == zipfile.ZIP_STORED:
            arrays[name] = StoredArray(path, where, member.start() + inside, shape, dtype)
        else:
            arrays[name] = StoredArray(path, where, inside, shape, dtype, packed_as=member.name)
    return arrays


def as_pixels(stored: StoredArray) -> tuple[Pixels, int]:
    """Return the images in an array, and their number."""
    shape = validate_image_shape(stored.where, stored.dtype, stored.shape)
    if not stored.packed_as:
        return Rows(stored.path, stored.offset, shape), shape[0]
    if math.prod(shape) > _MAX_COMPRESSED_BYTES:
        raise ImageFileError(
            f"{stored.where} is compressed and too large to load at once ({math.prod(shape):,} bytes); save "
            "it with np.save or np.savez"
        )
    return InMemory(stored.load().reshape(shape), stored.path), shape[0]


def _fill(room: NDArray[np.uint8], file: IO[bytes]) -> None:
    place = 0
    while place < len(room):
        chunk = file.read(min(CHUNK, len(room) - place))
        if not chunk:
            raise EOFError("it is truncated")
        room[place : place + len(chunk)] = np.frombuffer(chunk, np.uint8)
        place += len(chunk)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return shape, dtype, and the offset of the values."""
    start = io.BytesIO(file.read(_MAX_HEADER_BYTES))  # NumPy would read any announced length
    version = np.lib.format.read_magic(start)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, fortran_order, dtype = read(start)
    except Exception as error:  # a damaged header may be any text, and NumPy parses it
        raise ValueError(f"its header is damaged: {error}") from None
    if min(shape, default=0) < 0:
        raise ValueError(f"its header is damaged: invalid shape {shape}")
    if dtype.hasobject:
        raise ValueError("it contains pickled Python objects")
    if fortran_order and len(shape) > 1:
        raise ValueError("it is in Fortran order; save np.ascontiguousarray(array)")
    return shape, dtype, start.tell()


def from_arrays(
    name: str,
    images: ArrayLike,
    labels: ArrayLike,
    *,
    split: str = "test",
    classes: Iterable[str] = (),
) -> Dataset:
    """Return a dataset of arrays in memory.

    >>> from_arrays("two", np.zeros((2, 28, 28), np.uint8), [3, 1]).ids[1]
    'test/1'
    """
    array = np.asarray(images)
    shape = validate_image_shape(name, array.dtype, array.shape)
    numbers = validate_labels(f"labels of {name}", np.asarray(labels), shape[0])
    pixels = InMemory(array.reshape(shape))
    if isinstance(classes, str | set | frozenset):  # their order is not that of the labels
        raise OptionError(f"classes of {name} must be a list of names, got {classes!r:.60}")
    return Dataset(
        name, tuple(map(str, classes)) or numbered(numbers), RowIds(split, shape[0]), numbers, pixels
    )


@reader(
    "npy",
    "a directory with images.npy and labels.npy, or one .npy file with the other beside it",
    lambda path: path.suffix == ".npy" or (path / "images.npy").is_file(),
    parts=None,
)
def open_npy(location: str, part: str) -> Dataset:
    """Open rows in their order; `#train` stands for train_images.npy and train_labels.npy."""
    path, split = Path(location), part or "test"
    images = path if path.suffix == ".npy" else path / (f"{part}_images.npy" if part else "images.npy")
    labels = images.with_name(images.name.replace("images", "labels"))
    if labels == images:
        labels = images.with_name("labels.npy")
    return _dataset(path.stem, split, npy_array(images), npy_array(labels))


@reader(
    "npz",
    "an .npz file with the arrays images and labels, or x and y",
    lambda path: path.suffix == ".npz",
    parts=None,
)
def open_npz(location: str, part: str) -> Dataset:
    """Open rows in their order; `#train` stands for train_images and train_labels, or x_train and y_train."""
    path, split = Path(location), part or "test"
    arrays = npz_arrays(path)
    pairs = [(f"{part}_images", f"{part}_labels"), (f"x_{part}", f"y_{part}")]
    if not part:
        pairs = [("images", "labels"), ("x", "y"), ("test_images", "test_labels"), ("x_test", "y_test")]
    for images, labels in pairs:
        if images in arrays and labels in arrays:
            return _dataset(path.stem, split, arrays[images], arrays[labels])
    wanted = " or ".join(f"{images} and {labels}" for images, labels in pairs)
    raise ImageFileError(f"{path} must contain {wanted}, got {', '.join(arrays) or 'no arrays'}")


def _dataset(name: str, split: str, images: StoredArray, labels: StoredArray) -> Dataset:
    pixels, count = as_pixels(images)
    numbers = labels.labels(count)
    return Dataset(name, numbered(numbers), RowIds(split, count), numbers, pixels)
