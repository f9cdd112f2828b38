"""The published P-sets: CIFAR-10-P's arrays and ImageNet-P's videos.

A picture of one of their sequences is a strip, all frames below each other, and has the id of the clean
picture that it was made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data._dataset import Dataset, numbered
from beaufort.data._digest import Content
from beaufort.data._files import Files, OnDisk
from beaufort.data._load import DatasetSpec, dataset_name, parse_spec
from beaufort.data._reader import reader
from beaufort.data._rows import RowIds, Rows, validate_image_shape
from beaufort.data.folder import open_class_folders
from beaufort.data.images import MAX_PIXELS
from beaufort.data.labels import class_names
from beaufort.data.numpy_files import stored_in

_KINDS = ("cifar10-p", "imagenet-p", "tiny-imagenet-p")
_MOST_FRAMES = 1000


@dataclass(frozen=True)
class StoredSequences:
    """A P-set in its published layout."""

    name: str
    kind: str
    location: str
    strict: bool = False

    def open(self, sequence: str, frames: int, clean: Dataset | None = None) -> Dataset:
        """The strips of one sequence.

        Args:
            sequence: by the name of its folder or file.
            frames: how many a strip must have.
            clean: the clean pictures, if they are at hand: their ids are taken, and their labels where the
                files have none.
        """
        if self.kind == "cifar10-p":
            found = _arrays(self.location, sequence, frames, clean)
        else:
            found = _videos(self.location, sequence, frames)
            found = found if clean is None else _called_as(found, clean)
        return replace(found, name=self.name, strict=self.strict)


def stored_sequences(spec: str | DatasetSpec, *, strict: bool = False) -> StoredSequences | None:
    """Return the whole P-set that a text stands for; None if it stands for something else."""
    found = parse_spec(spec)
    if found.kind not in _KINDS or found.part:
        return None
    return StoredSequences(dataset_name(found.kind, found.location), found.kind, found.location, strict)


@reader("cifar10-p", "a folder with rotate.npy and so on, (n, frames, 32, 32, 3)", parts=None)
def open_cifar10_p(location: str, part: str) -> Dataset:
    """One sequence, as strips; labels are those of `labels.npy`."""
    return _arrays(location, _sequence(location, part), None, None)


@reader("imagenet-p", "folders sequence/class with videos", parts=None)
@reader("tiny-imagenet-p", "the same", parts=None)
def open_imagenet_p(location: str, part: str) -> Dataset:
    """One sequence, as strips; ids are `class/file`."""
    return _videos(location, _sequence(location, part), None)


def _sequence(location: str, part: str) -> str:
    if not part.isidentifier():
        raise OptionError(
            f"a part of {location} must be a sequence, as '#rotate', got {part!r}; all of them are evaluated "
            "with a suite, as `--suite imagenet-p`"
        )
    return part


def _arrays(location: str, sequence: str, frames: int | None, clean: Dataset | None) -> Dataset:
    root = Path(location)
    path = root / f"{sequence}.npy"
    if not path.is_file():
        there = ", ".join(sorted(file.stem for file in root.glob("*.npy")))
        raise OptionError(f"{path} does not exist; {location} has {there or 'no arrays'}")
    stored = stored_in(path)
    if len(stored.shape) != 5 or frames not in (None, stored.shape[1]):
        wanted = "frames" if frames is None else str(frames)
        raise ImageFileError(
            f"{path} must be uint8 of shape (n, {wanted}, h, w, 3), got {stored.dtype} of shape "
            f"{stored.shape}"
        )
    count, length, height, *rest = stored.shape
    shape = validate_image_shape(path, stored.dtype, (count, length * height, *rest))
    labels = root / "labels.npy"
    if labels.is_file():
        truth = stored_in(labels).labels(count)
    elif clean is not None:
        truth = clean.labels
    else:
        raise ImageFileError(
            f"{location} must have labels.npy, got none; give the clean pictures, whose labels these are, as "
            "--clean"
        )
    classes = class_names("cifar-10") if truth.max() < 10 else numbered(truth)
    return Dataset(
        f"{root.name}#{sequence}", classes, RowIds("test", count), truth, Rows(path, stored.offset, shape)
    )


def _videos(location: str, sequence: str, frames: int | None) -> Dataset:
    root = Path(location) / sequence
    if not root.is_dir():
        others = sorted(sub.name for sub in Path(location).iterdir() if sub.is_dir())
        raise OptionError(f"{root} does not exist; {location} has {', '.join(others) or 'no folders'}")
    found = open_class_folders(root, f"{Path(location).name}#{sequence}", _is_video)
    assert isinstance(found.pixels, Files)
    return replace(found, pixels=Videos(root, found.pixels.names, frames), problems=(), left_out=())


def _is_video(name: str) -> bool:
    return name.endswith(".mp4")


def _called_as(films: Dataset, clean: Dataset) -> Dataset:
    """Videos by the ids of the pictures that they were made from, which differ in how the name ends."""
    ours, theirs = ([str(PurePosixPath(id).with_suffix("")) for id in one.ids] for one in (films, clean))
    if ours != theirs:
        lacks = next((id for id in theirs if id not in set(ours)), None) or next(iter(ours))
        raise ImageFileError(
            f"{films.name} must have a video for each of the {len(clean):,} clean pictures and no other, got "
            f"{len(films):,}; the first that is in one of them only is {lacks!r}"
        )
    return replace(films, ids=clean.ids)


@dataclass(frozen=True)
class Videos:
    """Videos below a folder, each read as one strip."""

    root: Path
    names: Sequence[str]
    frames: int | None
    """How many each must have; any number if None."""

    def read(self, index: int) -> Bytes:
        path = self.root / self.names[index]
        frames = _decoded(path)
        if not frames or self.frames not in (None, len(frames)):
            wanted = "" if self.frames is None else f" of {self.frames} frames"
            raise ImageFileError(f"{path} must be a video{wanted}, got {len(frames)} that can be decoded")
        return np.concatenate(frames)

    def contents(self, count: int) -> Iterator[Content]:
        return (OnDisk(self.root / name).content() for name in self.names[:count])


def _decoded(path: Path) -> list[Any]:
    """All frames of a video, in RGB."""
    import cv2

    video = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    frames: list[Any] = []
    try:
        while len(frames) < _MOST_FRAMES:
            there, frame = video.read()
            if not there:
                break
            if frame.shape[0] * frame.shape[1] * (len(frames) + 1) > MAX_PIXELS:
                raise ImageFileError(f"{path} must have at most {MAX_PIXELS:,} pixels in all frames together")
            frames.append(frame[..., ::-1])
    finally:
        video.release()
    return frames
