"""One directory per class, the usual layout of ImageNet's validation set."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from beaufort._core.errors import ImageFileError, OptionError
from beaufort._core.text import encodable
from beaufort._core.validation import validate_directory
from beaufort.data._checks import check_none_missing
from beaufort.data._dataset import Dataset, Problem
from beaufort.data._files import Files
from beaufort.data._reader import reader
from beaufort.data.images import is_folder, is_image_name


def _detect(path: Path) -> bool:
    return path.is_dir() and any(
        is_image_name(name)
        for folder in _subfolders(path)
        for _, _, names in os.walk(folder)
        for name in names
    )


@reader("folder", "a directory of directories with images, one per class", _detect)
def open_folder(location: str, part: str) -> Dataset:
    """Open images; labels are the indices of the class directories in sorted order, including empty ones."""
    return open_class_folders(Path(location), Path(location).name)


def open_class_folders(
    root: Path, name: str, is_sample: Callable[[str], bool] = is_image_name, *, skip: Sequence[str] = ()
) -> Dataset:
    """Return all images below the class directories, sorted by path, which is their id.

    Args:
        root: the directory of class directories.
        name: name of the dataset.
        is_sample: returns whether a file is an image, by its name.
        skip: names of directories that are not classes.
    """
    validate_directory("dataset", root, OptionError)
    folders = sorted(_subfolders(root, skip), key=lambda folder: os.fsencode(folder.name))
    problems = [
        Problem(path.name, "the image is not in a class directory, so it has no label")
        for path in root.iterdir()
        if is_image_name(path.name) and path.is_file()
    ]
    ignored: list[Problem] = []
    found: list[tuple[bytes, str, int]] = []
    for label, folder in enumerate(folders):
        for scanned in scan_folders(folder, is_sample, barred=[root]):  # a link to the root has no label
            inside = (PurePosixPath(folder.name) / scanned.relative).as_posix()
            found += [
                (os.fsencode(path), path, label) for path in (f"{inside}/{one}" for one in scanned.images)
            ]
            for other in scanned.others:
                ignored.append(Problem(f"{inside}/{other}", "the file name has no extension of an image"))
            if scanned.problem:
                problems.append(Problem(inside, scanned.problem))
    if not found:
        raise ImageFileError(
            f"no images found in {root}; it must contain a directory of images for each class"
        )
    found.sort()
    names = [relative for _, relative, _ in found]
    ids = [encodable(relative) for relative in names]
    if len(set(ids)) != len(ids):
        raise ImageFileError(f"{root} has two file names that differ only in invalid UTF-8; rename one")
    return Dataset(
        name,
        tuple(encodable(folder.name) for folder in folders),
        ids,
        np.array([label for _, _, label in found], np.int64),
        Files(root, names),
        _sorted(problems),
        _sorted(ignored),
        by_name=True,
    )


class ScannedFolder(NamedTuple):
    """A directory of a tree and the files directly in it."""

    relative: PurePosixPath
    images: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Files without the name of an image."""
    problem: str = ""
    """Why the directory cannot be read."""


def scan_folders(
    root: Path, is_sample: Callable[[str], bool] = is_image_name, barred: Iterable[Path] = ()
) -> Iterator[ScannedFolder]:
    """Yield all directories from `root` down, sorted, without hidden files.

    Links are followed. A directory that contains itself through a link is entered once, and those in `barred`
    never.
    """
    above = frozenset(_identity(path) for path in barred if path.is_dir())
    waiting: list[tuple[PurePosixPath, frozenset[tuple[int, int]]]] = [(PurePosixPath(), above)]
    while waiting:
        relative, above = waiting.pop()
        try:
            here = _identity(root / relative)
            if here in above:
                continue
            with os.scandir(root / relative) as scan:
                visible = [entry for entry in scan if not entry.name.startswith(".")]
        except OSError as error:
            yield ScannedFolder(relative, problem=f"cannot read the directory: {error.strerror or error}")
            continue
        below = {entry.name for entry in visible if is_folder(entry)}
        names = sorted(entry.name for entry in visible if entry.name not in below)
        waiting += [(relative / name, above | {here}) for name in sorted(below, reverse=True)]
        images = tuple(filter(is_sample, names))
        yield ScannedFolder(relative, images, tuple(name for name in names if not is_sample(name)))


def _identity(path: Path) -> tuple[int, int]:
    """Return device and inode, which identify a directory."""
    found = path.stat()
    return found.st_dev, found.st_ino


def check_class_folders(
    kind: str, found: Sequence[str], wanted: Sequence[str], *, alone: bool = True, root: Path | None = None
) -> None:
    """Raise an error unless a published set has its class directories, and no others if `alone`.

    Args:
        kind: name of the published set.
        found: class directories.
        wanted: published class directories.
        alone: reject other directories.
        root: where a nested copy of the set is looked for, as a hint.
    """
    missing = [name for name in wanted if name not in set(found)]
    if missing:
        inner = [path for path in _subfolders(root) if (path / missing[0]).is_dir()] if root else []
        hint = f"did you mean {inner[0]}?" if inner else "the download may be incomplete"
        check_none_missing(f"class directories of {kind}", missing, len(wanted), hint=f"; {hint}")
    if alone and (other := sorted(set(found) - set(wanted))):
        raise ImageFileError(f"{other[0]!r} is not one of the {len(wanted):,} class directories of {kind}")


def _subfolders(root: Path, skip: Sequence[str] = ()) -> list[Path]:
    return [
        path
        for path in root.iterdir()
        if path.is_dir() and not path.name.startswith(".") and path.name not in skip
    ]


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(Problem(encodable(path), message) for path, message in problems))
