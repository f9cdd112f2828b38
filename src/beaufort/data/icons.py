"""Icons-50: emoji of 50 classes in the styles of 12 vendors, in its published layout.

`Icons-50/<class>/<style>_<version>_<subtype>.png`, as `bird/apple_0_duck.png`: a folder, a zip or a tar; or
an `.npz` file with the pictures in `x`, class numbers in `y`, class names in `classes` and file names in
`fname`. Style, version and subtype become columns, which protocols go by.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort.data._dataset import Dataset
from beaufort.data._digest import Content
from beaufort.data._files import Files, Member, Members, decode, tar_contents, tar_members, zip_members
from beaufort.data._reader import reader
from beaufort.data.folder import check_class_folders, open_class_folders
from beaufort.data.labels import class_names
from beaufort.data.numpy_files import as_pixels, npz_arrays

ICONS = "icons-50"
_ARRAYS = "icons50_32.npz"
_KEYS = {"x", "y", "classes", "fname"}
_NAME = re.compile(r"(?P<style>[a-z0-9-]+)_(?P<version>\d+)_(?P<subtype>\w+)\.\w+", re.ASCII)
_FORM = "STYLE_VERSION_SUBTYPE.png, as apple_0_duck.png"


def _detect(path: Path) -> bool:
    if path.suffix == ".npz" and path.is_file():
        try:
            return set(npz_arrays(path)) >= _KEYS
        except ImageFileError:
            return False
    return path.is_dir() and (_is_root(path) or _is_root(path / "Icons-50") or (path / _ARRAYS).is_file())


def _is_root(path: Path) -> bool:
    return all((path / name).is_dir() for name in class_names(ICONS))


@reader(ICONS, f"its 50 class folders, a zip or tar of them, or an .npz file with {sorted(_KEYS)}", _detect)
def open_icons(location: str, part: str) -> Dataset:
    """Every icon at its stored size, sorted by its path, with the columns style, version and subtype."""
    path = Path(location)
    if path.is_dir() and (path / _ARRAYS).is_file():
        path = path / _ARRAYS
    if path.suffix == ".npz":
        return _from_arrays(path)
    if path.is_file():
        return _from_archive(path)
    return _from_folder(path / "Icons-50" if (path / "Icons-50").is_dir() else path)


def icon_columns(ids: Iterable[str]) -> dict[str, dict[str, str]]:
    """What the path of each icon says about it, by column.

    >>> icon_columns(["bird/apple_0_duck.png"])
    {'style': {'bird/apple_0_duck.png': 'apple'}, 'version': {'bird/apple_0_duck.png': '0'}, \
'subtype': {'bird/apple_0_duck.png': 'duck'}}
    """
    columns: dict[str, dict[str, str]] = {"style": {}, "version": {}, "subtype": {}}
    for id in ids:
        folder, _, name = id.rpartition("/")
        match = _NAME.fullmatch(name)
        if match is None:
            raise ImageFileError(f"pictures of class folder {folder!r} must be called {_FORM}, got {name!r}")
        for column, values in columns.items():
            values[id] = match[column]
        columns["version"][id] = str(int(match["version"]))  # some are called 00
    return columns


def _from_folder(root: Path) -> Dataset:
    found = open_class_folders(root, ICONS)
    assert isinstance(found.pixels, Files)
    if odd := [problem for problem in found.problems if "/" not in problem.id]:
        raise ImageFileError(f"pictures of {ICONS} must lie in class folders, got {odd[0].id!r} beside them")
    return _icons(found.ids, found.classes, found.pixels)


def _from_archive(path: Path) -> Dataset:
    """The members of a zip or tar, read in place; of a compressed tar, read into memory."""
    members: Mapping[str, Member]
    if path.suffix.lower() == ".zip":
        members = zip_members(path)
    elif path.name.lower().endswith((".tar.gz", ".tgz")):
        members = {name: _InMemoryFile(data) for name, data in tar_contents(path, _is_icon).items()}
    else:
        problems: list[tuple[str, str]] = []
        members = dict(tar_members(path, problems))  # type: ignore[arg-type]
        if problems:
            raise ImageFileError(f"{path} cannot be read as an archive of {ICONS}: {problems[0][1]}")
    names = [name for name in members if _is_icon(name)]
    icons = {_id(name): members[name] for name in names}
    _check_once([_id(name) for name in names])
    ids = sorted(icons, key=str.encode)
    classes = sorted({id.partition("/")[0] for id in ids})
    return _icons(ids, classes, Members([icons[id] for id in ids]))


def _is_icon(name: str) -> bool:
    return name.lower().endswith(".png") and not PurePosixPath(name).name.startswith(".")


def _id(name: str) -> str:
    """The class and the file, whatever folders of an archive they lie in."""
    return "/".join(PurePosixPath(name).parts[-2:])


@dataclass(frozen=True)
class _InMemoryFile:
    """A file that was unpacked into memory."""

    data: bytes

    def pixels(self) -> Bytes:
        return decode(self.data)

    def content(self) -> Content:
        return Content(lambda: [self.data])


def _icons(ids: Sequence[str], classes: Sequence[str], pixels: Files | Members) -> Dataset:
    check_class_folders(ICONS, classes, class_names(ICONS))
    columns = icon_columns(ids)
    place = {name: label for label, name in enumerate(class_names(ICONS))}
    labels = np.array([place[id.partition("/")[0]] for id in ids], np.int64)
    if empty := [name for name, label in place.items() if label not in set(labels.tolist())]:
        raise ImageFileError(f"class folder {empty[0]!r} must have pictures called {_FORM}, got none")
    return Dataset(ICONS, class_names(ICONS), ids, labels, pixels, by_name=True, columns=columns)


def _from_arrays(path: Path) -> Dataset:
    stored = npz_arrays(path)
    if lost := _KEYS - stored.keys():
        raise ImageFileError(f"{path} must have the arrays {sorted(_KEYS)}, got none for {sorted(lost)}")
    pixels, count = as_pixels(stored["x"])
    labels = stored["y"].labels(count)
    classes, names = (stored[key].load().tolist() for key in ("classes", "fname"))
    check_class_folders(ICONS, classes, class_names(ICONS))
    if len(names) != count or labels.max() >= len(classes):
        raise ImageFileError(
            f"{path} must have a file name and a class from 0 to 49 for each of its pictures"
        )
    ids = [f"{classes[label]}/{name}" for label, name in zip(labels.tolist(), names, strict=True)]
    _check_once(ids)
    found = Dataset(ICONS, class_names(ICONS), ids, labels, pixels, by_name=True, columns=icon_columns(ids))
    order = np.array(sorted(range(count), key=lambda place: ids[place].encode()), np.int64)
    return found if (np.diff(order) == 1).all() else found.select(order)


def _check_once(ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        twice = next(id for id, count in Counter(ids).items() if count > 1)
        raise ImageFileError(f"{ICONS} must have each picture once, got {twice!r} more often")
