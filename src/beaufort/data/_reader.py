"""Registry of dataset kinds: how each is opened and detected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort.data._dataset import Dataset

_Open: TypeAlias = Callable[[str, str], Dataset]


class Reader(NamedTuple):
    """A kind of dataset."""

    kind: str
    open: _Open
    """Takes the location and the part; '' for no part."""
    detect: Callable[[Path], bool]
    """Returns whether an existing path is of this kind."""
    looks_like: str
    """Description of the files."""


readers: Registry[Reader] = Registry("kind of dataset")
"""All kinds of datasets by name."""


def reader(
    kind: str,
    looks_like: str,
    detect: Callable[[Path], bool] | None = None,
    *,
    parts: Sequence[str] | None = (),
) -> Callable[[_Open], _Open]:
    """Register a function that opens datasets of a kind.

    Args:
        kind: name of the kind.
        looks_like: description of the files.
        detect: returns whether a path is of this kind; without it, paths need the prefix `kind:`.
        parts: valid parts; None if the function checks the part itself.
    """

    def register(function: _Open) -> _Open:
        def open_part(location: str, part: str) -> Dataset:
            if part and parts is not None and part not in parts:
                known = f"available: {', '.join(parts)}" if parts else f"{kind} has no parts"
                raise OptionError(f"unknown part {part!r} of {location}; {known}")
            return function(location, part)

        readers.register(kind, Reader(kind, open_part, detect or (lambda _: False), looks_like))
        return function

    return register
