"""A folder a class, as ImageNet's validation set is usually kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from beaufort._core.errors import ImageFileError, OptionError
from beaufort._core.text import encodable
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


@reader("folder", "a folder of folders with pictures, one a class", _detect)
def open_folder(location: str, part: str) -> Dataset:
    """Labels are the places of the class folders in their sorted order; empty ones count."""
    return open_class_folders(Path(location), Path(location).name)


def open_class_folders(root: Path, name: str, is_sample: Callable[[str], bool] = is_image_name) -> Dataset:
    """Every image below the class folders, sorted by path; its id is that path."""
    if not root.is_dir():
        raise OptionError(f"{root} is not a folder; give one that has a folder for each class")
    folders = sorted(_subfolders(root), key=lambda folder: os.fsencode(folder.name))
    problems = [
        Problem(path.name, "the picture lies beside the class folders, so it has no label")
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
                ignored.append(Problem(f"{inside}/{other}", "its name does not end like a picture's"))
            if scanned.problem:
                problems.append(Problem(inside, scanned.problem))
    if not found:
        raise ImageFileError(f"{root} must contain a folder of pictures for each class, got none")
    found.sort()
    names = [relative for _, relative, _ in found]
    ids = [encodable(relative) for relative in names]
    if len(set(ids)) != len(ids):
        raise ImageFileError(
            f"{root} has two files whose names differ only in bytes that are not valid UTF-8; rename one"
        )
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
    """A folder of a tree and what lies directly in it."""

    relative: PurePosixPath
    images: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Files that are not called like images."""
    problem: str = ""
    """Why the folder cannot be read."""


def scan_folders(
    root: Path, is_sample: Callable[[str], bool] = is_image_name, barred: Iterable[Path] = ()
) -> Iterator[ScannedFolder]:
    """Every folder from `root` down, sorted, without hidden files.

    Links are followed; a folder that contains itself this way is entered once, and those in `barred` never.
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
            yield ScannedFolder(relative, problem=f"the folder cannot be read ({error.strerror or error})")
            continue
        below = {entry.name for entry in visible if is_folder(entry)}
        names = sorted(entry.name for entry in visible if entry.name not in below)
        waiting += [(relative / name, above | {here}) for name in sorted(below, reverse=True)]
        images = tuple(filter(is_sample, names))
        yield ScannedFolder(relative, images, tuple(name for name in names if not is_sample(name)))


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode: what a folder is, whatever the way to it is called."""
    found = path.stat()
    return found.st_dev, found.st_ino


def check_class_folders(
    kind: str, found: Sequence[str], wanted: Sequence[str], *, alone: bool = True
) -> None:
    """Raise an error unless the class folders of a published set are there, alone or with others."""
    there, asked = set(found), set(wanted)
    if lost := [name for name in wanted if name not in there]:
        raise ImageFileError(
            f"{kind} must have {len(wanted):,} class folders, got {len(wanted) - len(lost):,} of them (first "
            f"missing: {lost[0]!r}); the download may be incomplete"
        )
    if alone and (other := [name for name in found if name not in asked]):
        raise ImageFileError(
            f"{kind} must have its {len(wanted):,} class folders alone, got {other[0]!r}, too"
        )


def _subfolders(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(Problem(encodable(path), message) for path, message in problems))
