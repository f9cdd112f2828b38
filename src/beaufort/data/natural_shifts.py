"""Natural shifts in their published layouts: ImageNetV2, ObjectNet, ImageNet-A, -R and -Sketch, ImageNet-D.

Each has classes of ImageNet, or of its own with a label map. What a published set must have is checked when
it is opened: a partial download gives an error, not another number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort.data._dataset import Dataset, Problem, TransformedPixels
from beaufort.data._reader import reader
from beaufort.data.folder import check_class_folders, open_class_folders
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
    check_class_folders("imagenetv2", found.classes, tuple(map(str, range(1000))))
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
        check_class_folders(kind, found.classes, wanted)
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
    check_class_folders("objectnet", every.classes, wanted, alone=False)
    found = every.relabeled(wanted)
    return replace(
        found,
        pixels=TransformedPixels(found.pixels, _without_frame, f"without a frame of {_FRAME}"),
        problems=tuple(one for one in every.problems if _is_of(one, wanted)),
        ignored=tuple(one for one in every.ignored if _is_of(one, wanted)),
    )


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


def _is_of(problem: Problem, classes: Sequence[str]) -> bool:
    """Whether something lies in the folder of one of some classes, or beside all folders."""
    folder, inside, _ = problem.id.partition("/")
    return not inside or folder in classes


def _without_frame(image: Bytes) -> Bytes:
    if min(image.shape[:2]) <= 2 * _FRAME:
        raise ImageFileError(f"a picture with a frame must have more than {2 * _FRAME} pixels a side")
    return np.ascontiguousarray(image[_FRAME:-_FRAME, _FRAME:-_FRAME])
