"""Images that are rows of an array, in a file or in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort.data._checks import reading
from beaufort.data._dataset import MAX_CLASSES
from beaufort.data._digest import CHUNK, Content, chunks_of
from beaufort.data.images import MAX_PIXELS, MAX_SIDE

_READ_BYTES = 1 << 18
"""Number of bytes of consecutive images that are read at a time; a single image may be larger."""


@dataclass(frozen=True)
class RowIds(Sequence[str]):
    """The ids `split/0`, `split/1` and so on, generated on access."""

    split: str
    size: int

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        numbers = range(self.size)[index]
        if isinstance(numbers, int):
            return f"{self.split}/{numbers}"
        if numbers == range(len(numbers)):
            return RowIds(self.split, len(numbers))
        return [f"{self.split}/{number}" for number in numbers]

    def __iter__(self) -> Iterator[str]:
        return (f"{self.split}/{number}" for number in range(self.size))


@dataclass(frozen=True)
class Rows:
    """Rows of a uint8 array in a file, read on access."""

    path: Path
    offset: int
    """Offset of the first row, in bytes."""
    shape: tuple[int, int, int, int]
    """`(n, h, w, c)`."""

    def slice(self, start: int, stop: int) -> Rows:
        return Rows(self.path, self.offset + start * self.row_size, (stop - start, *self.shape[1:]))

    @property
    def row_size(self) -> int:
        """Size of an image in bytes."""
        return math.prod(self.shape[1:])

    def read(self, index: int) -> Bytes:
        return next(self.read_many([index]))

    @property
    def chunk_size(self) -> int:
        return _chunk_size(self.row_size)

    def read_many(self, indices: Sequence[int]) -> Iterator[Bytes]:
        """Yield images, opening the file once and reading small consecutive images together."""
        consecutive = isinstance(indices, range) and indices.step == 1
        step = max(1, _READ_BYTES // self.row_size) if consecutive else 1
        with reading(self.path, (OSError, ValueError, OverflowError)), self.path.open("rb") as file:
            for start in range(0, len(indices), step):
                some = indices[start : start + step]
                yield from self._rows(file, some[0], len(some))

    def _rows(self, file: BufferedReader, first: int, count: int) -> Iterator[Bytes]:
        rows = np.empty((count, *self.shape[1:]), np.uint8)
        file.seek(self.offset + first * self.row_size)
        whole = file.readinto(rows.data) // self.row_size
        yield from rows[:whole]
        if whole < count:
            raise ImageFileError(f"{self.path} is truncated: image {first + whole} is missing")

    def contents(self, count: int) -> Iterator[Content]:
        length = count * self.row_size

        def chunks() -> Iterator[bytes]:
            yield _head(self.shape)
            yield from chunks_of(self.path, self.offset, length)

        yield Content(chunks, self.path, f"{self.offset}+{count}×{self.shape[1:]}")


@dataclass(frozen=True, eq=False)
class InMemory:
    """Rows of a uint8 array `(n, h, w, c)` in memory."""

    images: Bytes
    file: Path | None = None
    """The file they were read from, if any."""

    @property
    def chunk_size(self) -> int:
        return _chunk_size(math.prod(self.images.shape[1:]))

    def read(self, index: int) -> Bytes:
        image: Bytes = self.images[index].copy()
        return image

    def read_many(self, indices: Sequence[int]) -> Iterator[Bytes]:
        """Yield read-only images, without a copy where an image is contiguous in memory."""
        rows = self.images.view()
        rows.flags.writeable = False
        return (np.ascontiguousarray(rows[index]) for index in indices)

    def contents(self, count: int) -> Iterator[Content]:
        step = max(1, CHUNK // max(1, math.prod(self.images.shape[1:])))

        def chunks() -> Iterator[bytes]:
            yield _head(self.images.shape)
            for start in range(0, count, step):
                yield self.images[start : min(start + step, count)].tobytes()

        yield Content(chunks, self.file, f"{count}×{self.images.shape[1:]}")


def _chunk_size(row_size: int) -> int:
    """Return the size of a task for a thread: handing one over takes longer than a small read."""
    return min(max(8, _READ_BYTES // row_size), 128)


def validate_image_shape(
    where: object, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> tuple[int, int, int, int]:
    """Return the shape of an array of images as `(n, h, w, c)`; raise an error for other arrays."""
    whole = (*shape, 1) if len(shape) == 3 else shape
    if dtype != np.uint8 or len(whole) != 4 or whole[-1] not in (1, 3) or 0 in whole:
        raise ImageFileError(
            f"{where} must be uint8 of shape (n, h, w), (n, h, w, 1) or (n, h, w, 3) with n at least 1, got "
            f"{dtype} of shape {shape}"
        )
    if whole[1] * whole[2] > MAX_PIXELS or max(whole[1:3]) > MAX_SIDE:
        raise ImageFileError(f"images of {where} are too large: {whole[1]} × {whole[2]} pixels")
    return whole


def validate_labels(where: object, labels: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return labels as int64; raise an error, which names `where`, unless there is one for each image."""
    if labels.dtype.kind not in "iu" or labels.shape != (count,):
        raise ImageFileError(
            f"{where} must be {count:,} integers, one for each image, got {labels.dtype} of shape "
            f"{labels.shape}"
        )
    if count and (labels.min() < 0 or labels.max() >= MAX_CLASSES):
        raise ImageFileError(
            f"{where} must be from 0 to {MAX_CLASSES - 1:,}, got {labels.min()} to {labels.max()}"
        )
    return labels.astype(np.int64)


def _head(shape: tuple[int, ...]) -> bytes:
    return f"uint8 {tuple(int(side) for side in shape[1:])}\n".encode()
