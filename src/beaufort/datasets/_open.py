"""From a text to a data set: a name of the catalog, a path, or `kind:path#part`."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from beaufort.catalog import entries, pull
from beaufort.datasets._dataset import Dataset
from beaufort.datasets._reader import Reader, readers
from beaufort.errors import BeaufortError, ImageFileError, OptionError
from beaufort.labels import class_names

__all__ = ["open_dataset"]

_TRIED = ("mnist", "csv", "npz", "npy", "hf", "mnist-c", "cifar10-c", "imagenet-c", "wds")
"""What has marks of its own, in the order in which it is looked for; a folder of classes has none."""


def open_dataset(spec: str | Path, *, strict: bool = False, limit: int | None = None) -> Dataset:
    """Open a data set; nothing is decoded yet.

    Args:
        spec: a name of the catalog, as `mnist-test` (fetched if it is not in the cache); a path, whose kind
            is found out; or `kind:path`. `#` and a part follow where a data set has parts:
            `mnist:folder#train`, `imagenet-c:root#fog@3`.
        strict: the first picture that cannot be read is an error.
        limit: the first so many samples only.
    """
    try:
        found = _from_catalog(spec) if isinstance(spec, str) and spec in entries else _from_path(str(spec))
    except BeaufortError:
        raise
    except OSError as error:  # a folder that may not be read, a name that no file can have
        raise ImageFileError(f"{str(spec)!r:.200} cannot be opened ({error.strerror or error})") from None
    return replace(found, strict=strict).first(limit)


def _from_catalog(name: str) -> Dataset:
    entry = entries[name]
    if not entry.opens_as:
        raise OptionError(f"{name!r} is in the catalog, but is not a data set; {_names()}")
    folder = pull(name)[0].parent
    kind, _, part = entry.opens_as.partition("#")
    found = replace(readers[kind].open(str(folder), part), name=name)
    return replace(found, classes=class_names(entry.label_space)) if entry.label_space else found


def _from_path(spec: str) -> Dataset:
    kind, colon, rest = spec.partition(":")
    if colon and kind in readers:
        return _named(readers[kind], *_split(rest))
    location, part = _split(spec)
    if not _exists(location) and not ("{" in location and location.endswith(".tar")):
        near = get_close_matches(spec, _opening(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"{_names()}; kinds are {', '.join(readers)}"
        raise OptionError(
            f"unknown data set {spec!r}: neither a file or folder nor a name of the catalog; {hint}"
        )
    return _named(_reader_of(Path(location)), location, part)


def _named(reader: Reader, location: str, part: str) -> Dataset:
    """Open it, with a name that can stand in a condition and be a file's: `imagenet-c-fog-3`."""
    found = reader.open(location, part)
    stem = Path(location).resolve().name.partition(".tar")[0] if _exists(location) else location
    name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{stem}-{part}" if part else stem).strip("-._")
    return replace(found, name=name or reader.kind)


def _split(text: str) -> tuple[str, str]:
    """Where it is, and the part; a path that has a # in its name and exists is a path."""
    if _exists(text) or "#" not in text:
        return text, ""
    location, _, part = text.rpartition("#")
    return location, part


def _exists(location: str) -> bool:
    """Whether there is such a file or folder; a name that the system refuses is none."""
    try:
        return Path(location).exists()
    except (OSError, ValueError):
        return False


def _reader_of(path: Path) -> Reader:
    if "{" in path.name:
        return readers["wds"]
    for kind in dict.fromkeys([*_TRIED, *(kind for kind in readers if kind != "folder"), "folder"]):
        if readers[kind].detect(path):
            return readers[kind]
    sought = "; ".join(f"{reader.kind}: {reader.looks_like}" for reader in readers.values())
    raise OptionError(f"{path} is not a data set of a known kind; expected {sought}")


def _opening() -> list[str]:
    return [entry.name for entry in entries.values() if entry.opens_as]


def _names() -> str:
    return f"names are {', '.join(_opening())}"
