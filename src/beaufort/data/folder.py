"""A folder a class, as ImageNet's validation set is usually kept."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from beaufort._core.errors import ImageFileError, OptionError
from beaufort._core.text import encodable
from beaufort.data._dataset import Dataset, Problem
from beaufort.data._files import Files
from beaufort.data._reader import reader
from beaufort.data.images import is_folder, is_image_name

_Above = frozenset[tuple[int, int]]


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


def open_class_folders(root: Path, name: str) -> Dataset:
    """Every picture below the class folders, sorted by path; its id is that path."""
    if not root.is_dir():
        raise OptionError(f"{root} is not a folder; give one that has a folder for each class")
    folders = sorted(_subfolders(root), key=lambda folder: os.fsencode(folder.name))
    problems = [
        Problem(path.name, "the picture lies beside the class folders, so it has no label")
        for path in root.iterdir()
        if is_image_name(path.name) and path.is_file()
    ]
    left_out: list[Problem] = []
    found: list[tuple[bytes, str, int]] = []
    here = root.stat()
    for label, folder in enumerate(folders):  # a link back to the root would give all pictures one label
        above = frozenset({(here.st_dev, here.st_ino)})
        for relative in _walk(folder, folder.name, above, problems, left_out):
            found.append((os.fsencode(relative), relative, label))
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
        _sorted(left_out),
        by_name=True,
    )


def check_class_folders(
    kind: str, found: Sequence[str], wanted: Sequence[str], *, alone: bool = True
) -> None:
    """Raise an error unless the class folders of a published set are there, alone or with others."""
    if lost := [name for name in wanted if name not in set(found)]:
        raise ImageFileError(
            f"{kind} must have {len(wanted):,} class folders, got {len(wanted) - len(lost):,} of them (first "
            f"missing: {lost[0]!r}); the download may be incomplete"
        )
    if alone and (other := [name for name in found if name not in set(wanted)]):
        raise ImageFileError(
            f"{kind} must have its {len(wanted):,} class folders alone, got {other[0]!r}, too"
        )


def _subfolders(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(Problem(encodable(path), message) for path, message in problems))


def _walk(
    folder: Path, relative: str, above: _Above, problems: list[Problem], left_out: list[Problem]
) -> Iterator[str]:
    """Relative paths of the pictures from here down; links are followed, a circle of them once."""
    try:
        here = folder.stat()
        identity = (here.st_dev, here.st_ino)
        if identity in above:
            return
        with os.scandir(folder) as scan:
            entries = [entry for entry in scan if not entry.name.startswith(".")]
    except OSError as error:
        problems.append(Problem(relative, f"the folder cannot be read ({error.strerror or error})"))
        return
    for entry in entries:
        path = f"{relative}/{entry.name}"
        if is_folder(entry):
            yield from _walk(folder / entry.name, path, above | {identity}, problems, left_out)
        elif is_image_name(entry.name):
            yield path
        else:
            left_out.append(Problem(path, "its name does not end like a picture's"))
