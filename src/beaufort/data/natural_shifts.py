"""Natural shifts in their published layouts: ImageNetV2, ObjectNet, ImageNet-A, -R and -Sketch, ImageNet-D.

Each has classes of ImageNet, or of its own with a label map. What a published set must have is checked when
it is opened: a partial download gives an error, not another number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort.data._dataset import Dataset, Pixels, Problem
from beaufort.data._digest import Content
from beaufort.data._files import Files
from beaufort.data._reader import reader
from beaufort.data.folder import open_class_folders
from beaufort.data.labels import class_ids, class_names, label_maps
from beaufort.data.mined import KIND_FOLDERS, open_kinds

_IMAGENET = "imagenet-1k"
_EACH = 10
"""Images of a class in each variant of ImageNetV2."""
_FRAME = 2
"""Pixels of the red frame around pictures of ObjectNet."""


@reader("imagenetv2", "folders 0 to 999 with ten pictures each")
def open_imagenet_v2(location: str, part: str) -> Dataset:
    """One variant. Folders are numbers of classes, and not in the order in which their names are sorted."""
    found = open_class_folders(Path(location), Path(location).name)
    _check_folders("imagenetv2", found.classes, tuple(map(str, range(1000))))
    labels = np.array([int(name) for name in found.classes], np.int64)[found.labels]
    counts = np.bincount(labels, minlength=1000)
    if (counts != _EACH).any():
        wrong = int(np.flatnonzero(counts != _EACH)[0])
        raise ImageFileError(
            f"imagenetv2 must have {_EACH} pictures in each class folder, got {counts[wrong]} in '{wrong}'; "
            f"{int((counts != _EACH).sum())} folders differ"
        )
    return replace(found, classes=class_names(_IMAGENET), labels=labels, by_name=False)


def _wnid_reader(kind: str, looks_like: str) -> None:
    """Register a data set that has a folder for each of some classes of ImageNet, called by WordNet id."""

    @reader(kind, looks_like)
    def open_wnids(location: str, part: str) -> Dataset:
        found = open_class_folders(Path(location), Path(location).name)
        wanted = label_maps[kind].classes if kind in label_maps else class_ids(_IMAGENET)
        _check_folders(kind, found.classes, wanted)
        return found


_wnid_reader("imagenet-a", "its 200 folders, called by WordNet id")
_wnid_reader("imagenet-r", "its 200 folders, called by WordNet id")
_wnid_reader("imagenet-sketch", "1,000 folders, called by WordNet id")
_wnid_reader("stylized-imagenet", "1,000 folders, called by WordNet id")


@reader("objectnet", "the folder images with 313 folders")
def open_objectnet(location: str, part: str) -> Dataset:
    """The 113 classes that ImageNet has, without the red frame; images of the others are left out."""
    root = Path(location)
    root = root / "images" if (root / "images").is_dir() else root
    every = open_class_folders(root, root.name)
    wanted = label_maps["objectnet"].classes
    if lost := [name for name in wanted if name not in every.classes]:
        raise ImageFileError(
            f"objectnet must have a folder for each of its {len(wanted)} classes that are in ImageNet, got "
            f"none for {len(lost)} (first: {lost[0]!r})"
        )
    place = {name: label for label, name in enumerate(wanted)}
    found = _relabeled(every, place, wanted)
    return replace(found, pixels=_Cropped(found.pixels, _FRAME))


@reader(
    "imagenet-d",
    "folders background, material and texture, with a folder for each category",
    parts=KIND_FOLDERS,
)
def open_imagenet_d(location: str, part: str) -> Dataset:
    """All three subsets together, or one of them: `#texture`."""
    root, subsets = Path(location), (part,) if part else KIND_FOLDERS
    if absent := [subset for subset in subsets if not (root / subset).is_dir()]:
        raise ImageFileError(f"imagenet-d must have a folder {absent[0]!r}, got none in {location}")
    return open_kinds(root, subsets, label_maps["imagenet-d"].classes)


def _check_folders(kind: str, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Exactly the class folders that the published set has."""
    if lost := [name for name in wanted if name not in set(found)]:
        raise ImageFileError(
            f"{kind} must have {len(wanted):,} class folders, got {len(wanted) - len(lost):,} of them (first "
            f"missing: {lost[0]!r}); the download may be incomplete"
        )
    if other := [name for name in found if name not in set(wanted)]:
        raise ImageFileError(
            f"{kind} must have its {len(wanted):,} class folders alone, got {other[0]!r}, too"
        )


def _relabeled(every: Dataset, place: dict[str, int], classes: tuple[str, ...]) -> Dataset:
    """The images of some classes, in another order of classes."""
    kept = [i for i, label in enumerate(every.labels.tolist()) if every.classes[label] in place]
    assert isinstance(every.pixels, Files)
    return replace(
        every,
        classes=classes,
        ids=[every.ids[i] for i in kept],
        labels=np.array([place[every.classes[every.labels[i]]] for i in kept], np.int64),
        pixels=Files(every.pixels.root, [every.pixels.names[i] for i in kept]),
        problems=tuple(one for one in every.problems if _is_of(one, place)),
        left_out=tuple(one for one in every.left_out if _is_of(one, place)),
    )


def _is_of(problem: Problem, classes: Mapping[str, int]) -> bool:
    """Whether something lies in the folder of one of some classes, or beside all folders."""
    folder, inside, _ = problem.id.partition("/")
    return not inside or folder in classes


@dataclass(frozen=True)
class _Cropped:
    """Pictures without a frame."""

    pixels: Pixels
    frame: int
    """Pixels on each side."""

    def read(self, index: int) -> Bytes:
        image, frame = self.pixels.read(index), self.frame
        if min(image.shape[:2]) <= 2 * frame:
            raise ImageFileError(f"a picture with a frame must have more than {2 * frame} pixels a side")
        return np.ascontiguousarray(image[frame:-frame, frame:-frame])

    def contents(self, count: int) -> Iterator[Content]:
        yield Content(lambda: [f"without a frame of {self.frame}\n".encode()])
        yield from self.pixels.contents(count)
