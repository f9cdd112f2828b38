"""The pictures of a folder tree, folder by folder, in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from beaufort._core.errors import OptionError
from beaufort.data.images import is_folder, is_picture_name
from beaufort.data.writers.outcome import Failure

_Identity = tuple[int, int]
"""Device and inode: what a folder is, whatever the way to it is called."""


@dataclass(frozen=True)
class Folder:
    """A folder of the source and the pictures directly in it."""

    relative: PurePosixPath
    pictures: tuple[str, ...] = ()
    ignored: int = 0
    failure: Failure | None = None


def check_apart(source: Path, output: Path, *, deep: bool = True) -> None:
    """Refuse an output that lies in the source: what is in it would be taken for sources.

    Args:
        source: a picture, or a folder.
        output: where to write.
        deep: whether folders below the source are part of it.
    """
    if not source.exists():
        raise OptionError(f"source {source} does not exist; give a picture or a folder of pictures")
    try:
        place, target = source.resolve(), output.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a link that leads to itself, a NUL in the name
        raise OptionError(f"the output {output} cannot be written to ({error}); use another folder") from None
    if source.is_dir() and (target.is_relative_to(place) if deep else target == place):
        raise OptionError(f"output must lie outside of the source {source}, got {output}")


def picture_folders(source: Path, output: Path) -> Iterator[Folder]:
    """Every folder from `source` down, sorted; of a file, its folder with that picture alone.

    Links are followed; a folder that contains itself this way is entered once, and `output` never.
    """
    if not source.is_dir():
        yield Folder(PurePosixPath(), (source.name,))
        return
    barred = frozenset(_identity(path) for path in (output,) if path.is_dir())
    waiting: list[tuple[PurePosixPath, frozenset[_Identity]]] = [(PurePosixPath(), barred)]
    while waiting:
        relative, above = waiting.pop()
        try:
            here = _identity(source / relative)
            if here in above:
                continue
            folder, below = _look(source / relative, relative)
        except OSError as error:
            failure = Failure(relative.as_posix(), f"the folder cannot be read ({error.strerror or error})")
            yield Folder(relative, failure=failure)
            continue
        waiting += [(relative / name, above | {here}) for name in sorted(below, reverse=True)]
        yield folder


def _look(path: Path, relative: PurePosixPath) -> tuple[Folder, list[str]]:
    pictures, folders, ignored = [], [], 0
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if is_folder(entry):
                folders.append(entry.name)
            elif is_picture_name(entry.name):
                pictures.append(entry.name)
            else:
                ignored += 1
    return Folder(relative, tuple(sorted(pictures)), ignored), folders


def _identity(path: Path) -> _Identity:
    found = path.stat()
    return found.st_dev, found.st_ino
