"""Datasets from the Hugging Face hub, or saved by its package `datasets`; requires the extra `hf`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.catalog import is_offline
from beaufort._core.errors import AssetError, ImageFileError, OptionError
from beaufort._core.optional import require
from beaufort._core.registry import unknown_message
from beaufort.data._checks import reading
from beaufort.data._dataset import Dataset, numbered
from beaufort.data._digest import Content, chunks_of
from beaufort.data._reader import reader
from beaufort.data._rows import RowIds, validate_labels
from beaufort.data.images import decode_file, decode_pixels


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of encoded images."""

    rows: Any
    name: str
    roots: tuple[Path, ...]
    """Directories that may contain the files of rows: that of the dataset, and the cache of the package."""

    def read(self, index: int) -> Bytes:
        stored = self.rows[index][self.name]
        if stored and stored.get("bytes"):
            return decode_pixels(stored["bytes"])
        if stored and stored.get("path"):
            return decode_file(self._inside(stored["path"]))
        raise ImageFileError("the row has no image")

    def _inside(self, name: str) -> Path:
        with reading(f"the file {name!r:.200}", (OSError, RuntimeError, ValueError)):
            path = Path(name).resolve()
        if not any(path.is_relative_to(root.resolve()) for root in self.roots):
            raise ImageFileError(f"the file {name!r:.200} is outside the dataset")
        return path

    def contents(self, count: int) -> Iterator[Content]:
        for index in range(count):
            yield Content(lambda index=index: self._chunks(index))  # type: ignore[misc]

    def _chunks(self, index: int) -> Iterator[bytes]:
        stored = self.rows[index][self.name] or {}
        if stored.get("bytes"):
            yield stored["bytes"]
        elif stored.get("path"):
            yield from chunks_of(self._inside(stored["path"]))


def _detect(path: Path) -> bool:
    return any((path / name).is_file() for name in ("dataset_dict.json", "state.json"))


@reader("hf", "a directory written by `save_to_disk` of Hugging Face datasets", _detect, parts=None)
def open_huggingface(location: str, part: str) -> Dataset:
    """Open one split, `test` by default; ids are `test/0` and so on."""
    split = part or "test"
    package = require("datasets", "hf", what="datasets of Hugging Face")
    rows = _rows(package, location, split)
    image = _feature(rows, package.Image, ("image", "img"), location)
    label = _feature(rows, package.ClassLabel, ("label", "labels"), location)
    labels = validate_labels(f"labels of {location}[{label}]", np.asarray(rows[label][:]), len(rows))
    names = getattr(rows.features[label], "names", None)
    return Dataset(
        f"{Path(location).name}#{split}",
        tuple(names) if names else numbered(labels),
        RowIds(split, len(rows)),
        labels,
        _Column(
            rows.cast_column(image, package.Image(decode=False)).select_columns([image]),
            image,
            (Path(location), Path(package.config.HF_CACHE_HOME)),
        ),
    )


def _rows(package: Any, location: str, split: str) -> Any:
    if not Path(location).exists():
        if is_offline():
            raise AssetError(f"{location} is not a local directory, and BEAUFORT_OFFLINE forbids downloads")
        try:
            return package.load_dataset(location, split=split)
        except Exception as error:  # the client has many kinds of errors
            raise AssetError(f"cannot load hf:{location}#{split}: {error}") from error
    with reading(f"{location} with Hugging Face datasets"):
        found = package.load_from_disk(location)
    if not isinstance(found, package.DatasetDict):
        return found
    if split not in found:
        raise OptionError(unknown_message(f"split of {location}", split, found))
    return found[split]


def _feature(rows: Any, kind: type, names: tuple[str, ...], where: str) -> str:
    """Return the name of the only column of a type, or of one with a usual name."""
    of_kind: list[str] = [name for name, feature in rows.features.items() if isinstance(feature, kind)]
    usual = [name for name in names if name in rows.features]
    if len(of_kind) == 1 or usual:
        return of_kind[0] if len(of_kind) == 1 else usual[0]
    raise ImageFileError(
        f"{where} must have one column of type {kind.__name__}, or one named {' or '.join(names)}, got "
        f"{', '.join(rows.features)}"
    )
