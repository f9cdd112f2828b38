"""Opening datasets by catalog name, path, URL, or `kind:path#part`."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from beaufort._core.catalog import entries, pull
from beaufort._core.errors import BeaufortError, ImageFileError, OptionError
from beaufort._core.registry import similar_names
from beaufort._core.remote import is_url
from beaufort._core.text import encodable
from beaufort.data._dataset import Dataset
from beaufort.data._reader import Reader, readers
from beaufort.data._url_copies import as_portable, local_copy
from beaufort.data.images import is_image_name
from beaufort.data.labels import class_names

_DETECTED = (
    *("mnist", "cifar", "csv", "imagenet-val", "icons-50", "npz", "npy"),
    *("hf", "mnist-c", "cifar10-c", "imagenet-c", "wds"),
)
"""Kinds with distinctive files, in the order of detection; directories of classes come last."""
_LISTED = "`beaufort ls datasets` lists the names and kinds"
_MAX_SCANNED = 1000
_MAX_GUESSES = 3
_LIKELY_KINDS = {
    "npz": ("npz",),
    "npy": ("npy", "cifar10-c"),
    "tar": ("wds",),
    "arrow": ("hf",),
    "bin": ("cifar",),
    "gz": ("mnist", "cifar"),
    "zip": ("csv",),
    "image": ("folder", "csv", "imagenet-val"),
    "folder": ("folder", "imagenet-c"),
    "csv": ("csv", "cifar"),
    "txt": ("imagenet-val", "csv"),
}
"""Likely kinds by the type of a file; the most distinctive types come first."""


class DatasetSpec(NamedTuple):
    """A parsed dataset spec; `load_dataset` accepts it, so that the kind is detected once."""

    text: str
    kind: str
    """Name of the reader; '' for catalog names and missing paths."""
    location: str
    """A local path; URLs are copied to the cache."""
    part: str


def load_dataset(
    spec: str | Path | DatasetSpec, *, strict: bool = False, limit: int | None = None
) -> Dataset:
    """Open a dataset; no image is decoded yet.

    Args:
        spec: a catalog name such as `mnist-test`, which is downloaded if it is not in the cache; a path,
            whose kind is detected; or `kind:path`. The path may be a URL that fsspec supports, which is
            copied to the cache. A part follows after `#`: `mnist:folder#train`, `imagenet-c:root#fog@3`.
        strict: raise an error for unreadable images and ignored files.
        limit: number of samples; all by default.
    """
    text = spec.text if isinstance(spec, DatasetSpec) else str(spec)
    with _os_errors_of(text):
        found = _from_catalog(text) if text in entries else _from_path(parse_spec(spec))
    return replace(found, strict=strict).first(limit)


@contextlib.contextmanager
def _os_errors_of(text: str) -> Iterator[None]:
    """Name the dataset in errors about unreadable directories and invalid file names."""
    try:
        yield
    except BeaufortError:
        raise
    except OSError as error:
        raise ImageFileError(f"cannot open {text!r:.200}: {error.strerror or error}") from None


def dataset_kind(spec: str | Path) -> str | None:
    """Return the kind of dataset that `load_dataset` would open; None if there is none.

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
        found = _find_reader(Path(_locate(text)[0]))
    except (BeaufortError, OSError, ValueError):
        return None
    return found and found.kind


def parse_spec(spec: str | Path | DatasetSpec) -> DatasetSpec:
    """Parse a dataset spec: detect its kind and copy URLs to the cache."""
    if isinstance(spec, DatasetSpec):
        return spec
    text = str(spec)
    kind, colon, rest = text.partition(":")
    known = bool(colon) and kind in readers
    if not _split(rest if known else text)[0]:  # an unset variable; Python would open the working directory
        raise OptionError(_unknown_name(text))
    if known:
        return DatasetSpec(text, kind, *_locate(rest))
    location, part = _locate(text)
    if text in entries or not (_exists(location) or ("{" in location and location.endswith(".tar"))):
        return DatasetSpec(text, "", location, part)
    with _os_errors_of(text):
        found = _find_reader(Path(location))
        if found is None:
            raise OptionError(_unknown_kind(Path(location)))
    return DatasetSpec(text, found.kind, location, part)


def dataset_name(kind: str, location: str, part: str = "") -> str:
    """Return a name that is valid in conditions and file names, such as `imagenet-c-fog-3`."""
    stem = Path(location).resolve().name.partition(".tar")[0] if _exists(location) else location
    name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{stem}-{part}" if part else stem).strip("-._")
    return name or kind


def _from_catalog(name: str) -> Dataset:
    entry = entries[name]
    if not entry.opens_as:
        raise OptionError(f"the catalog entry {name!r} is not a dataset; {_LISTED}")
    folder = pull(name)[0].parent
    kind, _, part = entry.opens_as.partition("#")
    found = replace(readers[kind].open(str(folder), part), name=name)
    return replace(found, classes=class_names(entry.label_space)) if entry.label_space else found


def _from_path(spec: DatasetSpec) -> Dataset:
    if not spec.kind:
        raise OptionError(_unknown_name(spec.text))
    opened = readers[spec.kind].open(spec.location, spec.part)
    return replace(as_portable(opened, *spec[1:]), name=dataset_name(*spec[1:]))


def _split(text: str) -> tuple[str, str]:
    """Return location and part; an existing path may contain `#`."""
    if _exists(text) or "#" not in text:
        return text, ""
    location, _, part = text.rpartition("#")
    return location, part


def _locate(text: str) -> tuple[str, str]:
    """Return a local location and the part."""
    location, part = _split(text)
    return (str(local_copy(location)) if is_url(location) else location), part


def _exists(location: str) -> bool:
    """Return whether a path exists; False for names that the system rejects."""
    try:
        return Path(location).exists()
    except (OSError, ValueError):
        return False


def _find_reader(path: Path) -> Reader | None:
    """Return the first kind that recognizes a path or a pattern of tars; None if none does."""
    if "{" in path.name and path.name.endswith(".tar"):
        return readers["wds"]
    if not _exists(str(path)):
        return None
    order = dict.fromkeys([*_DETECTED, *(kind for kind in readers if kind != "folder"), "folder"])
    return next((readers[kind] for kind in order if readers[kind].detect(path)), None)


def _unknown_name(text: str) -> str:
    """Return the message for a text that is neither an existing path nor a name."""
    kind, colon, rest = text.partition(":")
    near = similar_names(text, [entry.name for entry in entries.values() if entry.opens_as])
    near += [f"{text}:PATH"] if text in readers else []
    if not near and colon:
        near = [f"{one}:{rest}" for one in similar_names(kind, readers)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else _LISTED
    return f"dataset not found: {text!r:.200}; {hint}"


def _unknown_kind(path: Path) -> str:
    """Return the message for a path of no known kind: what it contains, and the likely kinds."""
    if path.is_file():
        content = f"a {encodable(path.suffix)} file" if path.suffix else "a file"
        found = Counter([_file_type(path.name)])
    else:
        with os.scandir(path) as scan:
            some = islice(scan, _MAX_SCANNED)
            found = Counter("folder" if entry.is_dir() else _file_type(entry.name) for entry in some)
        listed = ", ".join(f"{count} × {encodable(kind):.20}" for kind, count in found.most_common(3))
        content = f"a directory with {listed}" if listed else "an empty directory"
    kinds = dict.fromkeys(kind for sign, near in _LIKELY_KINDS.items() if sign in found for kind in near)
    likely = list(kinds)[:_MAX_GUESSES] or ["folder", "csv", "npz"]
    described = "".join(f"\n  {kind}: {readers[kind].looks_like}" for kind in likely)
    return f"{path} is {content}, not a dataset of a known kind; similar kinds:{described}\n{_LISTED}"


def _file_type(name: str) -> str:
    return "image" if is_image_name(name) else Path(name).suffix.lower().lstrip(".") or "file"
