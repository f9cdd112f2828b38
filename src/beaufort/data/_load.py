"""From a text to a data set: a name of the catalog, a path or URL, or `kind:path#part`."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from beaufort._core.catalog import entries, pull
from beaufort._core.errors import BeaufortError, ImageFileError, OptionError
from beaufort._core.registry import near_names
from beaufort._core.remote import is_url
from beaufort._core.text import encodable
from beaufort.data._copies import local_copy, travelling
from beaufort.data._dataset import Dataset
from beaufort.data._reader import Reader, readers
from beaufort.data.images import is_image_name
from beaufort.data.labels import class_names

_TRIED = (
    "mnist",
    "cifar",
    "csv",
    "imagenet-val",
    "icons-50",
    "npz",
    "npy",
    "hf",
    "mnist-c",
    "cifar10-c",
    "imagenet-c",
    "wds",
)
"""What has marks of its own, in the order in which it is looked for; a folder of classes has none."""


def load_dataset(spec: str | Path, *, strict: bool = False, limit: int | None = None) -> Dataset:
    """Open a data set; nothing is decoded yet.

    Args:
        spec: a name of the catalog, as `mnist-test` (fetched if it is not in the cache); a path, whose kind
            is found out; or `kind:path`; the path may be a URL that fsspec knows, which is copied to the
            cache first. `#` and a part follow where a data set has parts:
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


def dataset_kind(spec: str | Path) -> str | None:
    """The kind that `load_dataset` would take a text for; None if it would refuse it.

    >>> dataset_kind("mnist-test"), dataset_kind("folder:pets"), dataset_kind("nowhere")
    ('mnist', 'folder', None)
    """
    text = str(spec)
    if text in entries:
        return entries[text].opens_as.partition("#")[0] or None
    kind, colon, _ = text.partition(":")
    if colon and kind in readers:
        return kind
    try:
        found = _find_reader(Path(_here(*_split(text))[0]))
    except (BeaufortError, OSError, ValueError):
        return None
    return found and found.kind


def _from_catalog(name: str) -> Dataset:
    entry = entries[name]
    if not entry.opens_as:
        raise OptionError(f"{name!r} must be a data set, and is another entry of the catalog; {NAMES}")
    folder = pull(name)[0].parent
    kind, _, part = entry.opens_as.partition("#")
    found = replace(readers[kind].open(str(folder), part), name=name)
    return replace(found, classes=class_names(entry.label_space)) if entry.label_space else found


def parse_spec(spec: str) -> tuple[Reader | None, str, str]:
    """What a text stands for: the reader, where it is, and the part; no reader if it is a name or nothing."""
    kind, colon, rest = spec.partition(":")
    known = bool(colon) and kind in readers
    if not _split(rest if known else spec)[0]:  # to Python, the working folder: a variable that was not set
        raise OptionError(unknown_name(spec, _opening()))
    if known:
        return readers[kind], *_here(*_split(rest))
    location, part = _here(*_split(spec))
    if spec in entries or not (_exists(location) or ("{" in location and location.endswith(".tar"))):
        return None, location, part
    found = _find_reader(Path(location))
    if found is None:
        raise OptionError(unknown_kind(Path(location)))
    return found, location, part


def _from_path(spec: str) -> Dataset:
    reader, location, part = parse_spec(spec)
    if reader is None:
        raise OptionError(unknown_name(spec, _opening()))
    opened = travelling(reader.open(location, part), reader.kind, location, part)
    return replace(opened, name=named(reader, location, part))


def named(reader: Reader, location: str, part: str) -> str:
    """A name that can stand in a condition and be a file's: `imagenet-c-fog-3`."""
    stem = Path(location).resolve().name.partition(".tar")[0] if _exists(location) else location
    name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{stem}-{part}" if part else stem).strip("-._")
    return name or reader.kind


def _split(text: str) -> tuple[str, str]:
    """Where it is, and the part; a path that has a # in its name and exists is a path."""
    if _exists(text) or "#" not in text:
        return text, ""
    location, _, part = text.rpartition("#")
    return location, part


def _here(location: str, part: str) -> tuple[str, str]:
    """A location on this machine, and the part."""
    return (str(local_copy(location)) if is_url(location) else location), part


def _exists(location: str) -> bool:
    """Whether there is such a file or folder; a name that the system refuses is none."""
    try:
        return Path(location).exists()
    except (OSError, ValueError):
        return False


def _find_reader(path: Path) -> Reader | None:
    """The first kind that knows the path, or many tars by one name; None if none does."""
    if "{" in path.name and path.name.endswith(".tar"):
        return readers["wds"]
    if not _exists(str(path)):
        return None
    order = dict.fromkeys([*_TRIED, *(kind for kind in readers if kind != "folder"), "folder"])
    return next((readers[kind] for kind in order if readers[kind].detect(path)), None)


def _opening() -> list[str]:
    return [entry.name for entry in entries.values() if entry.opens_as]


NAMES = "`beaufort ls datasets` lists the names and kinds"
_MOST_ENTRIES = 1000
_GUESSES = 3
_SIGNS = {
    "npz": ("npz",),
    "npy": ("npy", "cifar10-c"),
    "tar": ("wds",),
    "arrow": ("hf",),
    "bin": ("cifar",),
    "gz": ("mnist", "cifar"),
    "zip": ("csv",),
    "pictures": ("folder", "csv", "imagenet-val"),
    "folders": ("folder", "imagenet-c"),
    "csv": ("csv", "cifar"),
    "txt": ("imagenet-val", "csv"),
}
"""The kinds that are likely meant where such files are; those that say most come first."""


def unknown_name(spec: str, names: Sequence[str]) -> str:
    """The sentence about a text that is neither a path that exists nor a name."""
    kind = [f"{spec}:PATH"] if spec in readers else []
    near = near_names(spec, names) + kind or _prefixed(spec)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else NAMES
    return f"data must be a path that exists, kind:path or a name, got {spec!r:.200}; {hint}"


def _prefixed(spec: str) -> list[str]:
    """`kind:path` for a kind that was mistyped."""
    kind, colon, rest = spec.partition(":")
    return [f"{near}:{rest}" for near in near_names(kind, readers)] if colon else []


def unknown_kind(path: Path) -> str:
    """The sentence about a file or folder that is of no known kind: what it has, and what would do."""
    found = _signs(path)
    kinds = dict.fromkeys(kind for sign, near in _SIGNS.items() if sign in found for kind in near)
    guesses = list(kinds)[:_GUESSES] or ["folder", "csv", "npz"]
    told = "".join(f"\n  {kind}: {readers[kind].looks_like}" for kind in guesses)
    return f"{path} must be a data set of a known kind, got {_what(path, found)}; nearest are{told}\n{NAMES}"


def _signs(path: Path) -> Counter[str]:
    """How many pictures, folders and files of other endings there are, of the first so many."""
    if path.is_file():
        return Counter([_sign(path.name, is_folder=False)])
    with os.scandir(path) as entries:
        return Counter(
            _sign(entry.name, is_folder=entry.is_dir()) for entry in islice(entries, _MOST_ENTRIES)
        )


def _sign(name: str, *, is_folder: bool) -> str:
    if is_folder:
        return "folders"
    return "pictures" if is_image_name(name) else Path(name).suffix.lower().lstrip(".") or "files"


def _what(path: Path, found: Counter[str]) -> str:
    if path.is_file():
        return f"a file whose name ends in {encodable(path.suffix)}" if path.suffix else "a file"
    parts = [_counted(sign, count) for sign, count in found.most_common(3)]
    return f"a folder with {', '.join(parts)}" if parts else "an empty folder"


def _counted(sign: str, count: int) -> str:
    plain = sign in ("pictures", "folders", "files")
    many = sign if plain else f".{encodable(sign):.20} files"
    return f"{count} {many if count > 1 else many.removesuffix('s')}"
