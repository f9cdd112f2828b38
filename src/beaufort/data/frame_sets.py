"""Sets of video frames: an anchor and its neighbors, as in ImageNet-Vid-Robust and YTBB-Robust.

A directory of frames, or its directory `metadata` or `misc`, has two lists: `pmsets.json`, the neighbors of
each anchor, and `labels.json`, the valid labels of each frame. Labels are class numbers in the two published
sets, and names in others.
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
from beaufort.data._checks import check_none_missing, find_file, unsafe_path_reason
from beaufort.data._dataset import Dataset
from beaufort.data._files import Files
from beaufort.data._reader import reader
from beaufort.data.labels import LabelSets, label_maps

_PLACES = ("", "metadata", "misc")
_NUMBER = re.compile(r"(\d+)(?!.*\d)")


@dataclass(frozen=True)
class FrameSets:
    """Anchors with their neighbors.

    >>> sets = FrameSets({"a/10.jpg": ("a/08.jpg", "a/11.jpg")})
    >>> list(sets.within("a/10.jpg", 1))
    ['a/10.jpg', 'a/11.jpg']
    """

    neighbors: Mapping[str, tuple[str, ...]]
    """By anchor; may be empty."""
    labels_of_anchors: bool = False
    """Whether neighbors have the labels of their anchor, as in YTBB-Robust."""

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """All frames, sorted."""
        return tuple(sorted({*self.neighbors, *(one for some in self.neighbors.values() for one in some)}))

    def within(self, anchor: str, k: int) -> Iterator[str]:
        """Yield the anchor and its neighbors at most `k` frames away."""
        yield anchor
        here = frame_number(anchor)
        yield from (one for one in self.neighbors[anchor] if abs(frame_number(one) - here) <= k)


def frame_number(name: str) -> int:
    """Return the number of a frame: the last one in its file name.

    >>> frame_number("val/ILSVRC2015_val_00000000/000442.JPEG"), frame_number("x_44666/frame-1117.jpg")
    (442, 1117)
    """
    match = _NUMBER.search(PurePosixPath(name).stem)
    if match is None:
        raise ImageFileError(f"the file name of a frame must contain its number, got {name!r}")
    return int(match[1])


def read_frame_sets(path: str | Path) -> FrameSets:
    """Read the sets of a directory, or of a file such as `pmsets.json`."""
    file = Path(path)
    file = file if file.is_file() else _find(file, "pmsets.json")
    found = _read_lists(file, (str,), "frames for each anchor")
    for name in (*found, *(one for some in found.values() for one in some)):
        if reason := unsafe_path_reason(name):
            raise ImageFileError(f"{file}: {name!r}: {reason}")
    return FrameSets(found)


def _read_lists(file: Path, types: tuple[type, ...], what: str) -> dict[str, tuple[Any, ...]]:
    """Read a JSON object of lists, without duplicates."""
    found = read_json(file, ImageFileError)
    valid = isinstance(found, dict) and all(
        isinstance(some, list) and all(type(one) in types for one in some) for some in found.values()
    )
    if not valid or not found:
        raise ImageFileError(f"{file} must contain lists of {what}")
    return {name: tuple(dict.fromkeys(some)) for name, some in found.items()}


def _open(location: str, part: str, kind: str) -> Dataset:
    root = Path(location)
    sets = read_frame_sets(root)
    frames = tuple(sorted(sets.neighbors)) if part else sets.frames
    file = _find(root, "labels.json")
    named = _labels(file, frames, sets, by_anchor=kind == "ytbb-robust")
    if kind not in label_maps:  # numbers are names too
        named = {frame: tuple(dict.fromkeys(map(str, labels))) for frame, labels in named.items()}
    missing = [name for name in frames if not (root / name).is_file()]
    check_none_missing(f"frames in {location}", missing, len(frames))
    every = sorted({label for some in named.values() for label in some}) if kind not in label_maps else ()
    classes = tuple(every) or label_maps[kind].classes
    numbers = {frame: _numbers(file, frame, labels, classes) for frame, labels in named.items()}
    first = np.array([numbers[frame][0] for frame in frames], np.int64)
    label_sets = LabelSets(kind, numbers, of_classes=True)
    pixels = Files(root, frames)
    return Dataset(root.name, classes, frames, first, pixels, by_name=True, label_sets=label_sets)


def _labels(
    file: Path, frames: tuple[str, ...], sets: FrameSets, *, by_anchor: bool
) -> dict[str, tuple[Any, ...]]:
    """Return the labels of each frame, or of its anchor."""
    found = _read_lists(file, (int, str), "labels for each frame")
    source = {frame: frame for frame in frames}
    if by_anchor:
        source |= {one: anchor for anchor, some in sets.neighbors.items() for one in some}
        source |= {anchor: anchor for anchor in sets.neighbors}
    missing = [source[frame] for frame in frames if not found.get(source[frame])]
    check_none_missing(f"lists of labels in {file}", missing, len(frames))
    return {frame: found[source[frame]] for frame in frames}


def _numbers(file: Path, frame: str, labels: tuple[Any, ...], classes: tuple[str, ...]) -> tuple[int, ...]:
    place = {name: number for number, name in enumerate(classes)}
    numbers = tuple(place.get(one, -1) if isinstance(one, str) else one for one in labels)
    if wrong := [one for one, number in zip(labels, numbers, strict=True) if not 0 <= number < len(classes)]:
        raise ImageFileError(f"{file}: unknown class {wrong[0]!r} of {frame!r}; {len(classes)} are valid")
    return numbers


def _find(root: Path, name: str) -> Path:
    return find_file(root, (root / place / name for place in _PLACES), name)


def _detect(path: Path) -> bool:
    return any((path / place / "pmsets.json").is_file() for place in _PLACES)


for _kind, _looks_like, _found in (
    ("frame-sets", "frames with pmsets.json and labels.json, in which labels are names", _detect),
    ("vid-robust", "the same for ImageNet-Vid-Robust, with numbers of 30 classes", None),
    ("ytbb-robust", "the same for YTBB-Robust, with numbers of 24 classes", None),
):
    reader(_kind, _looks_like, _found, parts=("anchors",))(partial(_open, kind=_kind))
