"""Published C-sets as a whole: corrupted pictures that lie on a disk, for every condition of a suite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from beaufort._core.errors import ImageFileError
from beaufort.data._copies import travelling
from beaufort.data._dataset import Dataset
from beaufort.data._open import named, parse_spec
from beaufort.data._reader import readers

_KINDS = (
    "cifar10-c",
    "cifar10-c-bar",
    "cifar100-c",
    "imagenet-c",
    "imagenet-c-bar",
    "mnist-c",
    "tiny-imagenet-c",
)
_CLEAN = "identity"
"""What MNIST-C calls its clean digits."""


@dataclass(frozen=True)
class StoredSet:
    """A C-set in its published layout."""

    name: str
    kind: str
    location: str
    strict: bool = False

    def open(self, corruption: str, severity: int | float | None) -> Dataset:
        """The pictures of one condition."""
        part = corruption if self.kind == "mnist-c" else f"{corruption}@{severity}"
        opened = readers[self.kind].open(self.location, part)
        found = travelling(opened, self.kind, self.location, part)
        return replace(found, name=self.name, strict=self.strict)

    def clean(self) -> Dataset | None:
        """The clean pictures, if it has some."""
        if self.kind != "mnist-c" or not (Path(self.location) / _CLEAN).is_dir():
            return None
        return self.open(_CLEAN, None)


def stored_set(spec: str, *, strict: bool = False) -> StoredSet | None:
    """The C-set that a text stands for, as a whole; None if it stands for something else."""
    reader, location, part = parse_spec(spec)
    if reader is None or reader.kind not in _KINDS or part:
        return None
    return StoredSet(named(reader, location, ""), reader.kind, location, strict)


def corrupted_part(spec: str) -> bool:
    """Whether a text stands for one condition of a C-set."""
    reader, _, part = parse_spec(spec)
    return reader is not None and reader.kind in _KINDS and bool(part)


def check_same_images(sets: Iterator[tuple[str, Dataset]]) -> list[Dataset]:
    """Data sets that must have the same images and labels, called by what each of them shows.

    They share one list of ids, of which there may be many, and the names of classes that the last one has.
    """
    found: list[Dataset] = []
    first = ""
    for name, dataset in sets:
        if not found:
            first = name
        elif list(dataset.ids) != list(found[0].ids) or not np.array_equal(dataset.labels, found[0].labels):
            raise ImageFileError(
                f"{name} of {found[0].name} must have the same images and labels as {first}, got "
                f"{len(dataset):,} and {len(found[0]):,} of which some differ; it may be incomplete"
            )
        found.append(dataset)
    classes, by_name = found[-1].classes, found[-1].by_name
    return [replace(one, ids=found[0].ids, classes=classes, by_name=by_name) for one in found]
