"""Natural shifts in their published layouts: ImageNetV2, ObjectNet, ImageNet-A, -R, -Sketch and -D.

Incomplete downloads are rejected, because they would give other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort._core.text import counted
from beaufort.data._checks import check_none_missing
from beaufort.data._dataset import Dataset, Problem, TransformedPixels
from beaufort.data._reader import reader
from beaufort.data.folder import check_class_folders, open_class_folders
from beaufort.data.labels import class_ids, class_names, label_maps
from beaufort.data.mined import KIND_FOLDERS, open_kinds

_IMAGENET = "imagenet-1k"
_V2_CLASS_SIZE = 10
"""Number of images per class in each variant of ImageNetV2."""
_SIZES = {
    "imagenet-a": 7_500,
    "imagenet-r": 30_000,
    "imagenet-sketch": 50_889,
    "stylized-imagenet": 50_000,
    "objectnet": 18_574,
    "imagenet-d": 4_835,
}
"""Published numbers of images; for ObjectNet, those of the 113 classes that ImageNet has."""
_FRAME = 2
"""Width of the red frame around images of ObjectNet, in pixels."""
_ARCHIVE_FOLDERS = ("__MACOSX",)
"""Directories that archive programs add."""


@reader("imagenetv2", "directories 0 to 999 with ten images each")
def open_imagenet_v2(location: str, part: str) -> Dataset:
    """Open one variant. Directories are class numbers, whose sorted order as text is another one."""
    found = _open(location, "imagenetv2", tuple(map(str, range(1000))))
    labels = np.array([int(name) for name in found.classes], np.int64)[found.labels]
    counts = np.bincount(labels, minlength=1000)
    if (wrong := np.flatnonzero(counts != _V2_CLASS_SIZE)).size:
        raise ImageFileError(
            f"directories of imagenetv2 must contain {_V2_CLASS_SIZE} images, got {counts[wrong[0]]} in "
            f"'{wrong[0]}'; {len(wrong):,} directories differ"
        )
    return replace(found, classes=class_names(_IMAGENET), labels=labels, by_name=False)


def _open_wnids(location: str, part: str, kind: str) -> Dataset:
    wanted = label_maps[kind].classes if kind in label_maps else class_ids(_IMAGENET)
    return _with_size_notes(_open(location, kind, wanted), kind)


for _kind, _count in {
    "imagenet-a": "200",
    "imagenet-r": "200",
    "imagenet-sketch": "1,000",
    "stylized-imagenet": "1,000",
}.items():
    reader(_kind, f"its {_count} directories, named by WordNet id")(partial(_open_wnids, kind=_kind))


@reader("objectnet", "the directory images with 313 directories")
def open_objectnet(location: str, part: str) -> Dataset:
    """Open the 113 classes that ImageNet has, without the red frame; images of other classes are omitted."""
    root = Path(location)
    root = root / "images" if (root / "images").is_dir() else root
    wanted = label_maps["objectnet"].classes
    every = _open(root, "objectnet", wanted, alone=False)
    found = every.relabeled(wanted)
    found = replace(
        found,
        pixels=TransformedPixels(found.pixels, _without_frame, f"without a frame of {_FRAME}"),
        problems=tuple(one for one in every.problems if _is_of(one, wanted)),
        ignored=tuple(one for one in every.ignored if _is_of(one, wanted)),
    )
    return _with_size_notes(found, "objectnet")


@reader(
    "imagenet-d",
    "directories background, material and texture, with one directory per category",
    parts=KIND_FOLDERS,
)
def open_imagenet_d(location: str, part: str) -> Dataset:
    """Open all three subsets, or one of them: `#texture`."""
    root, subsets = Path(location), (part,) if part else KIND_FOLDERS
    missing = [subset for subset in subsets if not (root / subset).is_dir()]
    check_none_missing(f"directories of imagenet-d in {location}", missing, len(subsets))
    found = open_kinds(root, subsets, label_maps["imagenet-d"].classes)
    return found if part else _with_size_notes(found, "imagenet-d")


def _open(location: str | Path, kind: str, wanted: Sequence[str], *, alone: bool = True) -> Dataset:
    """Open the class directories of a published set, which must be complete."""
    root = Path(location)
    found = open_class_folders(root, root.name, skip=_ARCHIVE_FOLDERS)
    check_class_folders(kind, found.classes, wanted, alone=alone, root=root)
    return found


def _with_size_notes(dataset: Dataset, kind: str) -> Dataset:
    """Add notes about empty classes and a number of images that differs from the published one."""
    notes = []
    used = set(dataset.labels.tolist())
    if empty := [name for label, name in enumerate(dataset.classes) if label not in used]:
        number = counted(len(empty), "class directory of", "class directories of")
        notes.append(f"{number} {kind} without images (first: {empty[0]!r}); the download may be incomplete")
    if len(dataset) != _SIZES[kind]:
        notes.append(
            f"{kind} was published with {_SIZES[kind]:,} images; {dataset.name} has {len(dataset):,}"
        )
    return replace(dataset, notes=(*dataset.notes, *notes))


def _is_of(problem: Problem, classes: Sequence[str]) -> bool:
    """Return whether a file is in one of some class directories, or beside all of them."""
    folder, inside, _ = problem.id.partition("/")
    return not inside or folder in classes


def _without_frame(image: Bytes) -> Bytes:
    if min(image.shape[:2]) <= 2 * _FRAME:
        raise ImageFileError(f"an image with a frame must be larger than {2 * _FRAME} pixels on both sides")
    return np.ascontiguousarray(image[_FRAME:-_FRAME, _FRAME:-_FRAME])
