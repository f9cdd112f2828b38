"""Readers of published C-sets and P-sets: ImageNet-C, CIFAR-10-C, MNIST-C, ImageNet-P, CIFAR-10-P.

Each image has the id of its clean original, so that results can be paired. An image of a P-set is a strip:
the frames of one sequence, one below the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError, OptionError
from beaufort._core.validation import validate_choice
from beaufort.data._dataset import Dataset, numbered
from beaufort.data._digest import Content
from beaufort.data._files import Files, OnDisk
from beaufort.data._load import DatasetSpec, dataset_name, parse_spec
from beaufort.data._reader import reader, readers
from beaufort.data._rows import RowIds, Rows, validate_image_shape
from beaufort.data._url_copies import as_portable
from beaufort.data.folder import open_class_folders
from beaufort.data.images import MAX_PIXELS
from beaufort.data.labels import class_names
from beaufort.data.numpy_files import as_pixels, npy_array

_CIFAR = (class_names("cifar-10"), class_names("cifar-100"))
_SEVERITIES = 5
_MAGNITUDE = re.compile(r"\d+\.\d\d")
_C_SETS = (
    *("cifar10-c", "cifar10-c-bar", "cifar100-c", "imagenet-c", "imagenet-c-bar"),
    *("imagenet-3dcc", "mnist-c", "tiny-imagenet-c"),
)
_P_SETS = ("cifar10-p", "imagenet-p", "tiny-imagenet-p")
_CLEAN = "identity"
"""Name of the folder of clean digits in MNIST-C."""
_MAX_FRAMES = 1000


@dataclass(frozen=True)
class StoredSet:
    """A C-set or P-set in its published layout."""

    name: str
    kind: str
    location: str
    strict: bool = False

    @property
    def has_sequences(self) -> bool:
        """Whether this is a P-set."""
        return self.kind in _P_SETS

    def open(self, corruption: str, severity: int | float | None) -> Dataset:
        """Open the images of one condition of a C-set."""
        part = corruption if self.kind == "mnist-c" else f"{corruption}@{severity}"
        opened = as_portable(readers[self.kind].open(self.location, part), self.kind, self.location, part)
        return replace(opened, name=self.name, strict=self.strict)

    def open_sequence(self, sequence: str, frames: int, clean: Dataset | None = None) -> Dataset:
        """Open the strips of one sequence of a P-set.

        Args:
            sequence: name of its folder or file.
            frames: number of frames that each strip must have.
            clean: the clean images, which provide the ids, and the labels where the files have none.
        """
        if self.kind == "cifar10-p":
            opened = _open_strips(self.location, sequence, frames, clean)
        else:
            opened = _open_videos(self.location, sequence, frames)
            opened = opened if clean is None else _with_clean_ids(opened, clean)
        return replace(opened, name=self.name, strict=self.strict)

    def clean(self) -> Dataset | None:
        """Open the clean images, if the set has them."""
        if self.kind != "mnist-c" or not (Path(self.location) / _CLEAN).is_dir():
            return None
        return self.open(_CLEAN, None)


def stored_set(spec: str | DatasetSpec, *, strict: bool = False) -> StoredSet | None:
    """Return the complete C-set or P-set that a dataset spec names; None for other datasets and for parts."""
    found = parse_spec(spec)
    if found.kind not in (*_C_SETS, *_P_SETS) or found.part:
        return None
    return StoredSet(dataset_name(found.kind, found.location), found.kind, found.location, strict)


def is_one_condition(spec: str | DatasetSpec) -> bool:
    """Return whether a dataset spec names one condition of a C-set."""
    found = parse_spec(spec)
    return found.kind in _C_SETS and bool(found.part)


def check_same_images(datasets: Iterator[tuple[str, Dataset]]) -> list[Dataset]:
    """Return named datasets after checking that all have the same images and labels.

    To save memory they share one list of ids. They also share the class names of the last dataset.
    """
    opened: list[Dataset] = []
    first = ""
    for name, dataset in datasets:
        if not opened:
            first = name
        elif list(dataset.ids) != list(opened[0].ids) or not np.array_equal(dataset.labels, opened[0].labels):
            raise ImageFileError(
                f"{name} and {first} of {opened[0].name} do not have the same images and labels "
                f"({len(dataset):,} and {len(opened[0]):,} images); the set may be incomplete"
            )
        opened.append(dataset)
    classes, by_name = opened[-1].classes, opened[-1].by_name
    return [replace(one, ids=opened[0].ids, classes=classes, by_name=by_name) for one in opened]


def _corruption_and_severity(kind: str, location: str, part: str) -> tuple[str, int]:
    match = re.fullmatch(r"(\w+)@([1-5])", part)
    if match is None:
        raise OptionError(
            f"the part of {location} must be a corruption and a severity from 1 to 5, such as '#fog@3', got "
            f"{part!r}; `--suite {kind} --data {kind}:{location}` evaluates the complete set"
        )
    return match[1], int(match[2])


def _not_found(path: Path, root: str, available: Iterable[str]) -> OptionError:
    """Return the error for a missing condition of a C-set."""
    some = [one for one in available if one != "labels"]
    hint = f"; pass --corruption {','.join(some)} to evaluate only these" if some else ""
    return OptionError(f"{path} not found; {root} contains {', '.join(some) or 'no corruptions'}{hint}")


@reader(
    "imagenet-c",
    "folders corruption/severity/class with images",
    lambda path: any(_folders(path / sub / severity) for sub in _folders(path) for severity in "12345"),
    parts=None,
)
@reader("tiny-imagenet-c", "the same layout as imagenet-c", parts=None)
@reader("imagenet-c-bar", "the same layout, or with magnitudes instead of severities", parts=None)
@reader("imagenet-3dcc", "the same layout as imagenet-c, with near_focus, fog_3d, …", parts=None)
def open_imagenet_c(location: str, part: str) -> Dataset:
    """Open one corruption at one severity; ids are `class/file`."""
    name, severity = _corruption_and_severity("imagenet-c", location, part)
    cell = _condition_folder(Path(location), name, severity)
    if not cell.is_dir():
        raise _not_found(cell, location, _folders(Path(location)))
    return open_class_folders(cell, f"{Path(location).name}#{part}")


@reader(
    "cifar10-c",
    "a folder with labels.npy and one array per corruption (fog.npy, …)",
    lambda path: (path / "labels.npy").is_file() and not (path / "images.npy").is_file(),
    parts=None,
)
@reader("cifar100-c", "the same layout as cifar10-c", parts=None)
@reader("cifar10-c-bar", "the same layout as cifar10-c", parts=None)
def open_cifar10_c(location: str, part: str) -> Dataset:
    """Open one corruption at one severity, which is a fifth of the corruption's array."""
    name, severity = _corruption_and_severity("cifar10-c", location, part)
    file = Path(location) / f"{name}.npy"
    if not file.is_file():
        raise _not_found(file, location, _array_names(location))
    pixels, count = as_pixels(npy_array(file))
    labels = _labels_of(file, count)
    size, rest = divmod(count, _SEVERITIES)
    if rest:
        raise ImageFileError(f"{file} has {count} images, which is not a multiple of five severities")
    start = (severity - 1) * size
    assert isinstance(pixels, Rows)
    classes = next((some for some in _CIFAR if labels.max() < len(some)), None)
    return Dataset(
        f"{Path(location).name}#{part}",
        classes or numbered(labels),
        RowIds("test", size),
        labels[start : start + size],
        pixels.slice(start, start + size),
    )


@reader(
    "mnist-c",
    "a folder per corruption with test_images.npy and test_labels.npy",
    lambda path: any((path / sub / "test_images.npy").is_file() for sub in _folders(path)),
    parts=None,
)
def open_mnist_c(location: str, part: str) -> Dataset:
    """Open one corruption of the test split, or of the training split for `#fog/train`."""
    name, _, split = part.partition("/")
    folder, split = Path(location) / name, split or "test"
    if not name.isidentifier() or not folder.is_dir() or split not in ("test", "train"):
        raise OptionError(
            f"the part of {location} must be a corruption, such as '#fog' or '#fog/train', got {part!r}; "
            f"the folder contains {', '.join(_folders(Path(location))) or 'no corruptions'}"
        )
    pixels, count = as_pixels(npy_array(folder / f"{split}_images.npy"))
    labels = npy_array(folder / f"{split}_labels.npy").labels(count)
    return Dataset(
        f"{Path(location).name}#{part}", numbered(labels, at_least=10), RowIds(split, count), labels, pixels
    )


def _condition_folder(root: Path, name: str, severity: int) -> Path:
    """Return the folder of a corruption at a severity.

    The folder may lie below a folder of its group (`noise`). ImageNet-C-bar was first published with five
    increasing magnitudes, such as `2.35`, instead of severities.
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


def _array_names(location: str) -> list[str]:
    return sorted(path.stem for path in Path(location).glob("*.npy"))


def _labels_of(file: Path, count: int) -> NDArray[np.int64]:
    """Return the labels in `labels.npy` beside an array of images."""
    stored = npy_array(file.with_name("labels.npy"))
    if stored.shape[:1] != (count,):
        raise ImageFileError(
            f"{file} has {count:,} images, but {stored.where} has shape {stored.shape}; one of them may be "
            "incomplete"
        )
    return stored.labels(count)


@reader("cifar10-p", "a folder with an array (n, frames, 32, 32, 3) per sequence (rotate.npy, …)", parts=None)
def open_cifar10_p(location: str, part: str) -> Dataset:
    """Open one sequence as strips, with the labels of `labels.npy`."""
    return _open_strips(location, _sequence(location, part), None, None)


@reader("imagenet-p", "folders sequence/class with videos", parts=None)
@reader("tiny-imagenet-p", "the same layout as imagenet-p", parts=None)
def open_imagenet_p(location: str, part: str) -> Dataset:
    """Open one sequence as strips; ids are `class/file`."""
    return _open_videos(location, _sequence(location, part), None)


def _sequence(location: str, part: str) -> str:
    if not part.isidentifier():
        raise OptionError(
            f"the part of {location} must be a sequence, such as '#rotate', got {part!r}; a suite such as "
            "`--suite imagenet-p` evaluates all sequences"
        )
    return part


def _open_strips(location: str, sequence: str, frames: int | None, clean: Dataset | None) -> Dataset:
    path = (
        Path(location) / f"{validate_choice(f'sequence of {location}', sequence, _array_names(location))}.npy"
    )
    stored = npy_array(path)
    if len(stored.shape) != 5 or frames not in (None, stored.shape[1]):
        raise ImageFileError(
            f"{path} must have shape (n, {frames or 'frames'}, h, w, 3), got shape {stored.shape}"
        )
    count, length, height, *rest = stored.shape
    shape = validate_image_shape(path, stored.dtype, (count, length * height, *rest))
    labels_file = path.with_name("labels.npy")
    if clean is None and not labels_file.is_file():
        raise ImageFileError(f"labels not found: {labels_file}; pass the clean images with --config clean=…")
    labels = _labels_of(path, count) if labels_file.is_file() or clean is None else clean.labels
    classes = class_names("cifar-10") if labels.max() < 10 else numbered(labels)
    pixels = Rows(path, stored.offset, shape)
    return Dataset(f"{Path(location).name}#{sequence}", classes, RowIds("test", count), labels, pixels)


def _open_videos(location: str, sequence: str, frames: int | None) -> Dataset:
    root = Path(location) / validate_choice(f"sequence of {location}", sequence, _folders(Path(location)))
    found = open_class_folders(root, f"{Path(location).name}#{sequence}", lambda name: name.endswith(".mp4"))
    assert isinstance(found.pixels, Files)
    return replace(found, pixels=Videos(root, found.pixels.names, frames), problems=(), ignored=())


def _with_clean_ids(videos: Dataset, clean: Dataset) -> Dataset:
    """Give videos the ids of their clean images, which differ in the file extension only."""
    ours, theirs = ([str(PurePosixPath(id).with_suffix("")) for id in one.ids] for one in (videos, clean))
    if ours != theirs:
        differing = sorted(set(ours) ^ set(theirs)) or ours
        raise ImageFileError(
            f"{videos.name} must have one video for each of the {len(clean):,} clean images, got "
            f"{len(videos):,} videos (first difference: {differing[0]!r})"
        )
    return replace(videos, ids=clean.ids)


@dataclass(frozen=True)
class Videos:
    """Videos below a folder, each read as one strip."""

    root: Path
    names: Sequence[str]
    frames: int | None
    """Number of frames that each must have; None for any number."""

    def read(self, index: int) -> Bytes:
        path = self.root / self.names[index]
        frames = _decode_video(path)
        if not frames or self.frames not in (None, len(frames)):
            expected = f" of {self.frames}" if self.frames else ""
            raise ImageFileError(f"cannot decode {path}: {len(frames)}{expected} frames found")
        return np.concatenate(frames)

    def contents(self, count: int) -> Iterator[Content]:
        return (OnDisk(self.root / name).content() for name in self.names[:count])


def _decode_video(path: Path) -> list[Any]:
    """Return all frames of a video in RGB."""
    import cv2

    video = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    frames: list[Any] = []
    try:
        while len(frames) < _MAX_FRAMES:
            decoded, frame = video.read()
            if not decoded:
                break
            if frame.shape[0] * frame.shape[1] * (len(frames) + 1) > MAX_PIXELS:
                raise ImageFileError(f"{path} has more than {MAX_PIXELS:,} pixels in all its frames together")
            frames.append(frame[..., ::-1])
    finally:
        video.release()
    return frames
