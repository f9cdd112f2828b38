"""A kind of dataset: how it is opened, and how it is recognized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple, TypeAlias

from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort.data._dataset import Dataset

_Open: TypeAlias = Callable[[str, str], Dataset]


class Reader(NamedTuple):
    """A kind of dataset."""

    kind: str
    open: _Open
    """Takes the location and the part of it that is meant; '' if none was named."""
    detect: Callable[[Path], bool]
    """Whether a path, which exists, is of this kind."""
    looks_like: str
    """What is looked for, in words."""


readers: Registry[Reader] = Registry("kind of dataset")
"""Every kind by its name."""


def _never(path: Path) -> bool:
    """For kinds that must be named: their folders look like those of others."""
    return False


def reader(
    kind: str,
    looks_like: str,
    detect: Callable[[Path], bool] | None = None,
    *,
    parts: Sequence[str] | None = (),
) -> Callable[[_Open], _Open]:
    """Register a function that opens datasets.

    Args:
        kind: the name of the kind.
        looks_like: what a dataset of this kind consists of.
        detect: whether a path is of this kind; a kind without must be named.
        parts: the parts that may be named; None if the function checks the part itself.
    """

    def register(function: _Open) -> _Open:
        def open_part(location: str, part: str) -> Dataset:
            if part and parts is not None and part not in parts:
                known = f"available: {', '.join(parts)}" if parts else f"{kind} has no parts"
                raise OptionError(f"unknown part {part!r} of {location}; {known}")
            return function(location, part)

        readers.register(kind, Reader(kind, open_part, detect or _never, looks_like))
        return function

    return register


def unsafe_path_reason(name: str) -> str | None:
    """Why a file name that was read from a list is refused; None if it stays in its folder.

    >>> unsafe_path_reason("a/b.png"), unsafe_path_reason("../b.png") is None
    (None, False)
    """
    path, windows = PurePosixPath(name), PureWindowsPath(name)
    if not name or "\0" in name:
        return "it has no file name"
    if path.is_absolute() or windows.drive or windows.root or ".." in (*path.parts, *windows.parts):
        return "its path leads out of the dataset; only files in it are read"
    return None
