"""Sets of frames of a video: an anchor and its neighbors, as in ImageNet-Vid-Robust and YTBB-Robust.

A folder of frames has two lists in it, or in its folder `metadata` or `misc`: `pmsets.json`, the neighbors
of each anchor, and `labels.json`, the labels of each frame, of which any is right. Labels are numbers of
classes in the two published sets, and names in one's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from beaufort._core.errors import ImageFileError
from beaufort._core.files import read_json
from beaufort.data._dataset import Dataset
from beaufort.data._files import Files
from beaufort.data._reader import reader, unsafe_path_reason
from beaufort.data.labels import LabelSets, label_maps

_NUMBER = re.compile(r"(\d+)(?!.*\d)")


@dataclass(frozen=True)
class FrameSets:
    """Anchors with their neighbors.

    >>> sets = FrameSets({"a/10.jpg": ("a/08.jpg", "a/11.jpg")})
    >>> list(sets.within("a/10.jpg", 1))
    ['a/10.jpg', 'a/11.jpg']
    """

    neighbors: Mapping[str, tuple[str, ...]]
    """By anchor; maybe none."""
    labels_of_anchors: bool = False
    """Whether the labels of an anchor are those of its neighbors, as in YTBB-Robust."""

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """Every frame once, sorted."""
        return tuple(sorted({*self.neighbors, *(one for some in self.neighbors.values() for one in some)}))

    def within(self, anchor: str, k: int) -> Iterator[str]:
        """The anchor, and its neighbors at most `k` frames away."""
        yield anchor
        here = frame_number(anchor)
        yield from (one for one in self.neighbors[anchor] if abs(frame_number(one) - here) <= k)


def frame_number(name: str) -> int:
    """The number of a frame: the last one in its file's name.

    >>> frame_number("val/ILSVRC2015_val_00000000/000442.JPEG"), frame_number("x_44666/frame-1117.jpg")
    (442, 1117)
    """
    match = _NUMBER.search(PurePosixPath(name).stem)
    if match is None:
        raise ImageFileError(f"a frame's file name must have its number, got {name!r}")
    return int(match[1])


def read_frame_sets(path: str | Path) -> FrameSets:
    """The sets of a folder, or of a file like `pmsets.json`."""
    file = Path(path)
    file = file if file.is_file() else _beside(file, "pmsets.json")
    found = read_json(file, ImageFileError)
    good = isinstance(found, dict) and all(
        isinstance(some, list) and all(isinstance(one, str) for one in some) for some in found.values()
    )
    if not good or not found:
        raise ImageFileError(f"{file} must have a list of frames for each anchor, got something else")
    for name in (*found, *(one for some in found.values() for one in some)):
        if why := unsafe_path_reason(name):
            raise ImageFileError(f"{file}: {name!r} is refused: {why}")
    return FrameSets({anchor: tuple(dict.fromkeys(some)) for anchor, some in found.items()})


def _open(location: str, part: str, kind: str) -> Dataset:
    root = Path(location)
    sets = read_frame_sets(root)
    frames = tuple(sorted(sets.neighbors)) if part else sets.frames
    file = _beside(root, "labels.json")
    named = _labels(file, frames, sets, by_anchor=kind == "ytbb-robust")
    if kind not in label_maps:  # a number is a name, too, and no place in the sorted names
        named = {frame: tuple(dict.fromkeys(map(str, labels))) for frame, labels in named.items()}
    if lost := [name for name in frames if not (root / name).is_file()]:
        raise ImageFileError(
            f"{location} must have every frame of its sets, got none for {len(lost):,} of {len(frames):,} "
            f"(first: {lost[0]!r})"
        )
    every = sorted({label for some in named.values() for label in some}) if kind not in label_maps else ()
    classes = tuple(every) or label_maps[kind].classes
    numbers = {frame: _numbers(file, frame, labels, classes) for frame, labels in named.items()}
    first = np.array([numbers[frame][0] for frame in frames], np.int64)
    sets_of_labels = LabelSets(kind, numbers, of_classes=True)
    pixels = Files(root, frames)
    return Dataset(root.name, classes, frames, first, pixels, by_name=True, label_sets=sets_of_labels)


def _labels(
    file: Path, frames: tuple[str, ...], sets: FrameSets, *, by_anchor: bool
) -> dict[str, tuple[Any, ...]]:
    """The labels of each frame; where anchors decide, a neighbour has those of its anchor."""
    found = read_json(file, ImageFileError)
    good = isinstance(found, dict) and all(
        isinstance(some, list) and some and all(type(one) in (int, str) for one in some)
        for some in found.values()
    )
    if not good:
        raise ImageFileError(f"{file} must have a list of labels for each frame, got something else")
    source = {frame: frame for frame in frames}
    if by_anchor:
        source |= {one: anchor for anchor, some in sets.neighbors.items() for one in some}
        source |= {anchor: anchor for anchor in sets.neighbors}
    if lost := [frame for frame in frames if source[frame] not in found]:
        raise ImageFileError(
            f"{file} must have labels for every frame, got none for {len(lost):,} (first: "
            f"{source[lost[0]]!r})"
        )
    return {frame: tuple(dict.fromkeys(found[source[frame]])) for frame in frames}


def _numbers(file: Path, frame: str, labels: tuple[Any, ...], classes: tuple[str, ...]) -> tuple[int, ...]:
    place = {name: number for number, name in enumerate(classes)}
    numbers = tuple(place.get(one, -1) if isinstance(one, str) else one for one in labels)
    if wrong := [one for one, number in zip(labels, numbers, strict=True) if not 0 <= number < len(classes)]:
        raise ImageFileError(
            f"{file}: labels must be one of {len(classes)} classes, got {wrong[0]!r} for {frame!r}"
        )
    return numbers


def _beside(root: Path, name: str) -> Path:
    places = [root / name, root / "metadata" / name, root / "misc" / name]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ImageFileError(f"a folder of frame sets must have {name}, got none in {root}")
    return found


def _detect(path: Path) -> bool:
    return any((path / place / "pmsets.json").is_file() for place in ("", "metadata", "misc"))


for _kind, _looks_like, _found in (
    ("frame-sets", "frames with pmsets.json and labels.json, in which labels are names", _detect),
    ("vid-robust", "the same for ImageNet-Vid-Robust, with numbers of 30 classes", None),
    ("ytbb-robust", "the same for YTBB-Robust, with numbers of 24 classes", None),
):
    reader(_kind, _looks_like, _found, parts=("anchors",))(partial(_open, kind=_kind))
