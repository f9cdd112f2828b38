"""Mined sets: directories of categories, within one directory per kind of nuisance or alone.

`beaufort mine export` writes them with a list of all files, `manifest.sha256`. The directory of
`beaufort mine generate` has the same layout without the list and is opened as `mined:FOLDER`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from beaufort._core.errors import ImageFileError
from beaufort._core.text import encodable
from beaufort._core.validation import validate_directory
from beaufort.data._checks import check_none_missing, reading, unsafe_path_reason
from beaufort.data._dataset import Dataset, Problem
from beaufort.data._files import Files
from beaufort.data._reader import reader
from beaufort.data.folder import open_class_folders

KIND_FOLDERS = ("background", "material", "texture")
"""The directories of ImageNet-D."""
SET_FILE = "set.json"
MANIFEST = "manifest.sha256"


def _detect(path: Path) -> bool:
    return (path / SET_FILE).is_file() and (path / MANIFEST).is_file()


@reader(
    "mined",
    f"a directory with {SET_FILE} and {MANIFEST}, as written by `beaufort mine export`",
    _detect,
    parts=None,
)
def open_mined(location: str, part: str) -> Dataset:
    """Open all images, or those of one kind of nuisance: `#texture`."""
    root = validate_directory("mined set", location, ImageFileError)
    classes, present = _read_export(root) if _detect(root) else (None, _generated_kinds(root))
    if part and part not in present:
        raise ImageFileError(
            f"directory {part!r} not found in {root}; available: {', '.join(present) or 'none'}"
        )
    if present:
        return open_kinds(root, (part,) if part else present, classes)
    if classes is None:
        raise ImageFileError(
            f"{root} is not a mined set: it contains no images in KIND/CATEGORY/, such as in texture/cup/"
        )
    found = open_class_folders(root, root.name)
    _check_categories(root, found.classes, classes)
    return found.relabeled(classes)


def open_kinds(root: Path, kinds: Sequence[str], classes: Sequence[str] | None = None) -> Dataset:
    """Open the images of some kinds; by default, the classes are all categories in sorted order."""
    found = {kind: open_class_folders(root / kind, kind) for kind in kinds}
    wanted = tuple(classes or sorted({name for some in found.values() for name in some.classes}))
    place = {name: label for label, name in enumerate(wanted)}
    names: list[str] = []
    labels: list[int] = []
    problems: list[Problem] = []
    ignored: list[Problem] = []
    for kind, some in found.items():
        _check_categories(root / kind, some.classes, wanted)
        assert isinstance(some.pixels, Files)
        names += [f"{kind}/{name}" for name in some.pixels.names]
        labels += [place[some.classes[label]] for label in some.labels]
        problems += [Problem(f"{kind}/{one.id}", one.message) for one in some.problems]
        ignored += [Problem(f"{kind}/{one.id}", one.message) for one in some.ignored]
    return Dataset(
        root.name,
        wanted,
        list(map(encodable, names)),
        np.array(labels, np.int64),
        Files(root, names),
        tuple(problems),
        tuple(ignored),
        by_name=True,
    )


def _check_categories(root: Path, found: Sequence[str], categories: Sequence[str]) -> None:
    if other := [name for name in found if name not in categories]:
        raise ImageFileError(f"{other[0]!r} in {root} is not one of its {len(categories)} categories")


def _generated_kinds(root: Path) -> list[str]:
    """Return the directories of kinds in a directory of generated images."""
    return sorted(one.name for one in root.glob("[!.]*/") if next(one.glob("[!.]*/[!.]*"), None))


def _read_export(root: Path) -> tuple[tuple[str, ...], list[str]]:
    """Return the categories of a complete exported set, and the directories of its kinds."""
    with reading(f"{SET_FILE} and {MANIFEST} of {root}"):
        about = json.loads((root / SET_FILE).read_text(encoding="utf-8"))
        categories, by_kind = tuple(map(str, about["categories"])), about["layout"] != "image-folder"
        lines = (root / MANIFEST).read_text(encoding="utf-8").splitlines()
        listed = [line.split("  ", 1)[1] for line in lines]
    missing = [name for name in listed if unsafe_path_reason(name) or not (root / name).is_file()]
    check_none_missing(f"files of {root}", missing, len(listed), hint="; copy or export the set again")
    kinds = {name.partition("/")[0] for name in listed if by_kind and name.count("/") == 2}
    return categories, sorted(kinds)
