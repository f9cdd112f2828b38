"""A kind of data set: how it is opened, and how it is told from the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort.data._dataset import Dataset


class Reader(NamedTuple):
    """A kind of data set."""

    kind: str
    open: Callable[[str, str], Dataset]
    """Takes where it is and which part of it is meant; '' if none was named."""
    detect: Callable[[Path], bool]
    """Whether a path, which exists, is of this kind."""
    looks_like: str
    """What is looked for, in words."""


readers: Registry[Reader] = Registry("kind of data set")
"""Every kind by its name."""


def reader(
    kind: str, looks_like: str, detect: Callable[[Path], bool]
) -> Callable[[Callable[[str, str], Dataset]], Callable[[str, str], Dataset]]:
    """Register a function that opens data sets."""

    def register(function: Callable[[str, str], Dataset]) -> Callable[[str, str], Dataset]:
        readers.register(kind, Reader(kind, function, detect, looks_like))
        return function

    return register


def corruption_and_severity(kind: str, location: str, part: str) -> tuple[str, int]:
    """Which cell of a published C-set is meant.

    >>> corruption_and_severity("cifar10-c", "CIFAR-10-C", "fog@3")
    ('fog', 3)
    """
    match = re.fullmatch(r"(\w+)@([1-5])", part)
    if match is None:
        raise OptionError(
            f"a part of {location} must be a corruption and a severity from 1 to 5, as '#fog@3', got "
            f"{part!r}; all of its pictures are evaluated with `--suite {kind} --data {kind}:{location}`"
        )
    return match[1], int(match[2])


def check_inside(name: str) -> str | None:
    """Why a file name that was read from a list is refused; None if it stays in its folder.

    >>> check_inside("a/b.png"), check_inside("../b.png") is None
    (None, False)
    """
    path, windows = PurePosixPath(name), PureWindowsPath(name)
    if not name or "\0" in name:
        return "it has no file name"
    if path.is_absolute() or windows.drive or windows.root or ".." in (*path.parts, *windows.parts):
        return "its path leads out of the data set; only files in it are read"
    return None
