"""What the catalog has: files by name, and what people ask for, which has several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from beaufort._core.catalog._sources import Source, Unpack
from beaufort._core.registry import Registry


@dataclass(frozen=True)
class Asset:
    """A file by its name, what it must be, and where it can be had."""

    name: str
    sha256: str
    license: str
    origin: str
    sources: Sequence[Source]
    mirrored_as: str = ""
    """Another name and form in which a mirror may have it, anywhere below the folder."""
    unpack: Unpack = bytes
    """What makes the file of that other form."""
    size: int = 0
    """In bytes; 0 if not known."""


@dataclass(frozen=True)
class Entry:
    """What people ask for by name: the files that belong together, and whose they are."""

    name: str
    about: str
    license: str
    origin: str
    homepage: str
    files: tuple[str, ...]
    """Names of assets."""
    opens_as: str = ""
    """For a data set, the reader and the part of it, as in `mnist#test`."""
    label_space: str = ""
    """What its labels are numbers in, as `imagenet-1k`, where the files do not name every class."""

    @property
    def size(self) -> int:
        """Of all files, in bytes."""
        return sum(assets[name].size for name in self.files)


assets: Registry[Asset] = Registry("asset")
"""Every file of the catalog by its name."""

entries: Registry[Entry] = Registry("catalog entry")
"""What can be asked for by name; `beaufort ls files` lists it."""
