"""Icons-50: emoji of 50 classes in the styles of 12 vendors, in the published layout.

The layout is `Icons-50/<class>/<style>_<version>_<subtype>.png`, such as `bird/apple_0_duck.png`, in a
directory, zip or tar; or an `.npz` file with images in `x`, labels in `y`, class names in `classes` and file
names in `fname`. Style, version and subtype become columns for protocols.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from beaufort._core.errors import ImageFileError
from beaufort.data._checks import check_none_missing
from beaufort.data._dataset import Dataset, Problem
from beaufort.data._files import Files, InMemoryFile, Member, Members, tar_contents, tar_members, zip_members
from beaufort.data._reader import reader
from beaufort.data.folder import check_class_folders, open_class_folders
from beaufort.data.labels import class_names
from beaufort.data.numpy_files import as_pixels, npz_arrays

ICONS = "icons-50"
_ARRAYS = "icons50_32.npz"
_KEYS = {"x", "y", "classes", "fname"}
_LISTED = ", ".join(sorted(_KEYS))
_NAME = re.compile(r"(?P<style>[a-z0-9-]+)_(?P<version>\d+)_(?P<subtype>\w+)\.\w+", re.ASCII)
_FORM = "STYLE_VERSION_SUBTYPE.png"


def _detect(path: Path) -> bool:
    if path.suffix == ".npz" and path.is_file():
        try:
            return set(npz_arrays(path)) >= _KEYS
        except ImageFileError:
            return False
    return path.is_dir() and (_is_root(path) or _is_root(path / "Icons-50") or (path / _ARRAYS).is_file())


def _is_root(path: Path) -> bool:
    return all((path / name).is_dir() for name in class_names(ICONS))


@reader(ICONS, f"its 50 class directories, a zip or tar of them, or an .npz file with {_LISTED}", _detect)
def open_icons(location: str, part: str) -> Dataset:
    """Open all icons at their stored size, sorted by path, with the columns style, version and subtype."""
    path = Path(location)
    if path.is_dir() and (path / _ARRAYS).is_file():
        path = path / _ARRAYS
    if path.suffix == ".npz":
        return _from_arrays(path)
    if path.is_file():
        return _from_archive(path)
    return _from_folder(path / "Icons-50" if (path / "Icons-50").is_dir() else path)


def icon_columns(ids: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the columns that the paths of icons encode.

    >>> icon_columns(["bird/apple_0_duck.png"])
    {'style': {'bird/apple_0_duck.png': 'apple'}, 'version': {'bird/apple_0_duck.png': '0'}, \
'subtype': {'bird/apple_0_duck.png': 'duck'}}
    """
    columns: dict[str, dict[str, str]] = {"style": {}, "version": {}, "subtype": {}}
    for id in ids:
        match = _NAME.fullmatch(id.rpartition("/")[2])
        if match is None:
            raise ImageFileError(f"names of icons must have the form {_FORM}, got {id!r}")
        for column, values in columns.items():
            values[id] = match[column]
        columns["version"][id] = str(int(match["version"]))  # some are called 00
    return columns


def _from_folder(root: Path) -> Dataset:
    found = open_class_folders(root, ICONS)
    assert isinstance(found.pixels, Files)
    if odd := [problem for problem in found.problems if "/" not in problem.id]:
        raise ImageFileError(f"images of {ICONS} must be in class directories, got {odd[0].id!r}")
    return _icons(found.ids, found.classes, found.pixels)


def _from_archive(path: Path) -> Dataset:
    """Open a zip or tar in place, or a compressed tar in memory."""
    members: Mapping[str, Member]
    if path.suffix.lower() == ".zip":
        members = zip_members(path)
    elif path.name.lower().endswith((".tar.gz", ".tgz")):
        members = {name: InMemoryFile(data) for name, data in tar_contents(path, _is_icon).items()}
    else:
        problems: list[Problem] = []
        members = dict(tar_members(path, problems))
        if problems:
            raise ImageFileError(f"cannot read {path} as an archive of {ICONS}: {problems[0].message}")
    names = {name: "/".join(PurePosixPath(name).parts[-2:]) for name in members if _is_icon(name)}
    ordered = sorted(names, key=lambda name: names[name].encode())
    ids = [names[name] for name in ordered]
    _check_unique(ids)
    return _icons(
        ids, sorted({id.partition("/")[0] for id in ids}), Members([members[name] for name in ordered])
    )


def _is_icon(name: str) -> bool:
    return name.lower().endswith(".png") and not PurePosixPath(name).name.startswith(".")


def _icons(ids: Sequence[str], classes: Sequence[str], pixels: Files | Members) -> Dataset:
    known = class_names(ICONS)
    check_class_folders(ICONS, classes, known)
    columns = icon_columns(ids)
    number = {name: label for label, name in enumerate(known)}
    names = [id.partition("/")[0] for id in ids]
    labels = np.array([number[name] for name in names], np.int64)
    check_none_missing(f"classes of {ICONS}", sorted(set(known) - set(names)), len(known))
    return Dataset(ICONS, known, ids, labels, pixels, by_name=True, columns=columns)


def _from_arrays(path: Path) -> Dataset:
    stored = npz_arrays(path)
    check_none_missing(f"arrays of {path}", sorted(_KEYS - stored.keys()), len(_KEYS))
    pixels, count = as_pixels(stored["x"])
    labels = stored["y"].labels(count)
    classes, names = (stored[key].load().tolist() for key in ("classes", "fname"))
    check_class_folders(ICONS, classes, class_names(ICONS))
    if len(names) != count or labels.max() >= len(classes):
        raise ImageFileError(f"{path} must have {count} file names and labels from 0 to 49")
    ids = [f"{classes[label]}/{name}" for label, name in zip(labels.tolist(), names, strict=True)]
    _check_unique(ids)
    found = Dataset(ICONS, class_names(ICONS), ids, labels, pixels, by_name=True, columns=icon_columns(ids))
    order = np.array(sorted(range(count), key=lambda place: ids[place].encode()), np.int64)
    return found if (np.diff(order) == 1).all() else found.select(order)


def _check_unique(ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        repeated = next(id for id, count in Counter(ids).items() if count > 1)
        raise ImageFileError(f"{ICONS} contains {repeated!r} more than once")
