"""Data sets of the Hugging Face hub, or saved by its package `datasets`; an extra."""

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
from beaufort.data._dataset import Dataset, numbered
from beaufort.data._digest import Content, chunks_of
from beaufort.data._files import decode, decode_file
from beaufort.data._reader import reader
from beaufort.data._rows import RowIds, validate_labels


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of encoded pictures."""

    rows: Any
    name: str
    roots: tuple[Path, ...]
    """Folders that rows may name files in: that of the data set, and the package's cache."""

    def read(self, index: int) -> Bytes:
        stored = self.rows[index][self.name]
        if stored and stored.get("bytes"):
            return decode(stored["bytes"])
        if stored and stored.get("path"):
            return decode_file(self._inside(stored["path"]))
        raise ImageFileError("the row has no picture")

    def _inside(self, name: str) -> Path:
        try:
            path = Path(name).resolve()
        except (OSError, RuntimeError, ValueError):
            raise ImageFileError(f"the row must name a file, got {name!r:.200}") from None
        if not any(path.is_relative_to(root.resolve()) for root in self.roots):
            raise ImageFileError(f"the row must name a file inside the data set, got {name!r:.200}")
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


@reader("hf", "a folder that `save_to_disk` of Hugging Face datasets wrote", _detect, parts=None)
def open_huggingface(location: str, part: str) -> Dataset:
    """One split, `test` if none is named; ids are `test/0` and so on."""
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
            raise AssetError(
                f"hf:{location} is not a local folder, and BEAUFORT_OFFLINE forbids downloads from the hub"
            )
        try:
            return package.load_dataset(location, split=split)
        except Exception as error:  # the hub's client has many kinds
            raise AssetError(f"hf:{location}#{split} could not be loaded ({error})") from error
    try:
        found = package.load_from_disk(location)
    except Exception as error:
        raise ImageFileError(f"{location} cannot be read by datasets ({error})") from error
    if not isinstance(found, package.DatasetDict):
        return found
    if split not in found:
        raise OptionError(f"the split of {location} must be one of {', '.join(found)}, got {split!r}")
    return found[split]


def _feature(rows: Any, kind: type, names: tuple[str, ...], where: str) -> str:
    """The one column of a kind, or one with a usual name."""
    of_kind: list[str] = [name for name, feature in rows.features.items() if isinstance(feature, kind)]
    usual = [name for name in names if name in rows.features]
    if len(of_kind) == 1 or usual:
        return of_kind[0] if len(of_kind) == 1 else usual[0]
    raise ImageFileError(
        f"{where} must have one column of type {kind.__name__}, or one named {' or '.join(names)}, got "
        f"{', '.join(rows.features)}"
    )
