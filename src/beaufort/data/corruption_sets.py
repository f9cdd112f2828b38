"""Published sets of corrupted images: ImageNet-C's tree, CIFAR-10-C's and MNIST-C's arrays.

An image has the id of its clean original, so that results can be paired.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data._dataset import Dataset, numbered
from beaufort.data._load import DatasetSpec, dataset_name, parse_spec
from beaufort.data._reader import reader, readers
from beaufort.data._rows import RowIds, Rows
from beaufort.data._url_copies import as_portable
from beaufort.data.folder import open_class_folders
from beaufort.data.labels import class_names
from beaufort.data.numpy_files import pixels_in, stored_in

_CIFAR = (class_names("cifar-10"), class_names("cifar-100"))
_SEVERITIES = 5
_MAGNITUDE = re.compile(r"\d+\.\d\d")
_KINDS = (
    *("cifar10-c", "cifar10-c-bar", "cifar100-c", "imagenet-c", "imagenet-c-bar"),
    *("mnist-c", "tiny-imagenet-c"),
)
_CLEAN = "identity"
"""What MNIST-C calls its clean digits."""


def _corruption_and_severity(kind: str, location: str, part: str) -> tuple[str, int]:
    """The cell that a part stands for, as `fog@3`."""
    match = re.fullmatch(r"(\w+)@([1-5])", part)
    if match is None:
        raise OptionError(
            f"a part of {location} must be a corruption and a severity from 1 to 5, as '#fog@3', got "
            f"{part!r}; `--suite {kind} --data {kind}:{location}` evaluates all of it"
        )
    return match[1], int(match[2])


@reader(
    "imagenet-c",
    "folders corruption/severity/class with pictures",
    lambda path: any(_folders(path / sub / severity) for sub in _folders(path) for severity in "12345"),
    parts=None,
)
@reader("tiny-imagenet-c", "the same", parts=None)
@reader("imagenet-c-bar", "the same, or with magnitudes for severities", parts=None)
def open_imagenet_c(location: str, part: str) -> Dataset:
    """One corruption at one severity; ids are `class/file`."""
    name, severity = _corruption_and_severity("imagenet-c", location, part)
    cell = _cell(Path(location), name, severity)
    if not cell.is_dir():
        raise OptionError(
            f"{cell} does not exist; {location} has {', '.join(_folders(Path(location))) or 'no folders'}"
        )
    return open_class_folders(cell, f"{Path(location).name}#{part}")


@reader(
    "cifar10-c",
    "a folder with labels.npy and fog.npy and so on",
    lambda path: (path / "labels.npy").is_file() and not (path / "images.npy").is_file(),
    parts=None,
)
@reader("cifar100-c", "the same", parts=None)
@reader("cifar10-c-bar", "the same", parts=None)
def open_cifar10_c(location: str, part: str) -> Dataset:
    """One corruption at one severity: a fifth of its array. CIFAR-100-C has the same layout."""
    name, severity = _corruption_and_severity("cifar10-c", location, part)
    root = Path(location)
    file = root / f"{name}.npy"
    if not file.is_file():
        there = ", ".join(sorted(path.stem for path in root.glob("*.npy")))
        raise OptionError(f"{file} does not exist; {location} has {there or 'no arrays'}")
    pixels, count = pixels_in(stored_in(file))
    labels = stored_in(root / "labels.npy").labels(count)
    size, rest = divmod(count, _SEVERITIES)
    if rest:
        raise ImageFileError(f"{file} must have as many images for each of five severities, got {count}")
    start = (severity - 1) * size
    assert isinstance(pixels, Rows)
    classes = next((some for some in _CIFAR if labels.max() < len(some)), None)
    return Dataset(
        f"{root.name}#{part}",
        classes or numbered(labels),
        RowIds("test", size),
        labels[start : start + size],
        pixels.slice(start, start + size),
    )


@reader(
    "mnist-c",
    "folders with test_images.npy and test_labels.npy, one a corruption",
    lambda path: any((path / sub / "test_images.npy").is_file() for sub in _folders(path)),
    parts=None,
)
def open_mnist_c(location: str, part: str) -> Dataset:
    """One corruption, of the test set unless `#fog/train` asks for the other."""
    name, _, split = part.partition("/")
    folder, split = Path(location) / name, split or "test"
    if not name.isidentifier() or not folder.is_dir() or split not in ("test", "train"):
        there = ", ".join(_folders(Path(location)))
        raise OptionError(
            f"the part of {location} must be a corruption, as in 'mnist-c:{location}#fog' or '#fog/train', "
            f"got {part!r}; it has {there or 'none'}"
        )
    pixels, count = pixels_in(stored_in(folder / f"{split}_images.npy"))
    labels = stored_in(folder / f"{split}_labels.npy").labels(count)
    return Dataset(
        f"{Path(location).name}#{part}", numbered(labels, at_least=10), RowIds(split, count), labels, pixels
    )


def _cell(root: Path, name: str, severity: int) -> Path:
    """The folder of a corruption and severity, also where the published groups (`noise`) are folders, too.

    ImageNet-C-bar was first published with five magnitudes for severities, `2.35` to `9.15`, which rise.
    """
    magnitudes = sorted((one for one in _folders(root / name) if _MAGNITUDE.fullmatch(one)), key=float)
    if len(magnitudes) == _SEVERITIES:
        return root / name / magnitudes[severity - 1]
    cell = root / name / str(severity)
    if cell.is_dir():
        return cell
    grouped = [root / group / name / str(severity) for group in _folders(root)]
    return next((folder for folder in grouped if folder.is_dir()), cell)


def _folders(path: Path) -> list[str]:
    if not path.is_dir():
        return []
    return sorted(sub.name for sub in path.iterdir() if sub.is_dir() and not sub.name.startswith("."))


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
        found = as_portable(opened, self.kind, self.location, part)
        return replace(found, name=self.name, strict=self.strict)

    def clean(self) -> Dataset | None:
        """The clean pictures, if it has some."""
        if self.kind != "mnist-c" or not (Path(self.location) / _CLEAN).is_dir():
            return None
        return self.open(_CLEAN, None)


def stored_set(spec: str | DatasetSpec, *, strict: bool = False) -> StoredSet | None:
    """Return the whole C-set that a text stands for; None if it stands for something else."""
    found = parse_spec(spec)
    if found.kind not in _KINDS or found.part:
        return None
    return StoredSet(dataset_name(found.kind, found.location), found.kind, found.location, strict)


def is_one_condition(spec: str | DatasetSpec) -> bool:
    """Whether a text stands for one condition of a C-set."""
    found = parse_spec(spec)
    return found.kind in _KINDS and bool(found.part)


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
