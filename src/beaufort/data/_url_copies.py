"""Local copies of datasets at URLs.

A copy is a directory in the cache, named by a hash of the URL and the remote listing (names, sizes, tags): a
change at the URL leads to a new copy. Files are written atomically: an interrupted copy is completed by the
next command. A dataset that is sent to another machine carries its URL and is copied there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from beaufort._core.arrays import Bytes
from beaufort._core.catalog import cache_folder
from beaufort._core.errors import BeaufortError, ImageFileError
from beaufort._core.files import draft, remove_leftovers, write_bytes
from beaufort._core.remote import AT_ONCE, GONE, Remote
from beaufort.data._checks import unsafe_path_reason
from beaufort.data._dataset import Dataset, Pixels
from beaufort.data._digest import Content
from beaufort.data._reader import readers

_FOLDER = "data"
_COMPLETE = "complete.json"
_STATE = ("size", "mtime", "created", "LastModified", "ETag", "etag", "md5Hash")


class _File(NamedTuple):
    """A file at a URL."""

    full: str
    path: str
    """Path relative to the URL; '' if the URL is a file."""
    size: int | None
    state: str


def local_copy(url: str) -> Path:
    """Return the local copy of the directory or file at a URL."""
    remote = Remote(url)
    try:
        files = _files(remote)
        folder = cache_folder() / _FOLDER / _digest(url, files)
        target = folder / Path(remote.root).name
        if not (folder / _COMPLETE).exists():
            _copy(remote, files, target)
            about = {"url": url, "files": len(files), "bytes": sum(file.size or 0 for file in files)}
            write_bytes(folder / _COMPLETE, json.dumps(about).encode())
    except BeaufortError as error:
        raise ImageFileError(f"cannot read {url}: {error}") from error
    except OSError as error:
        raise ImageFileError(f"cannot copy {url}: {error.strerror or error}") from error
    return target


def _files(remote: Remote) -> list[_File]:
    remote.fs.invalidate_cache()
    try:
        about = remote.call(lambda: remote.fs.info(remote.root))
    except GONE:
        raise ImageFileError("not found") from None
    if about["type"] == "file":
        return [_file(about, "")]
    found = remote.call(lambda: remote.find(remote.root))
    return [_file(facts, str(name)[len(remote.root) + 1 :]) for name, facts in sorted(found.items())]


def _file(facts: dict[str, Any], path: str) -> _File:
    if path and (reason := unsafe_path_reason(path)):
        raise ImageFileError(f"{path!r}: {reason}")
    state = " ".join(str(facts[key]) for key in _STATE if key in facts)
    return _File(str(facts["name"]), path, facts.get("size"), state)


def _digest(url: str, files: list[_File]) -> str:
    text = json.dumps([url, [(file.path, file.state) for file in files]])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _copy(remote: Remote, files: list[_File], target: Path) -> None:
    for folder in {(target / file.path).parent for file in files}:
        remove_leftovers(folder)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="beaufort copy") as pool:
        missing = [file for file in files if not (target / file.path).exists()]
        list(pool.map(lambda file: remote.call(lambda: _fetch(remote, file, target / file.path)), missing))


def _fetch(remote: Remote, file: _File, place: Path) -> None:
    with draft(place) as passing:
        remote.fs.get_file(file.full, passing.name)
        size = Path(passing.name).stat().st_size
        if file.size is not None and size != file.size:
            raise OSError(f"{file.path or place.name} has {size} instead of {file.size} bytes")


@dataclass(frozen=True)
class _Copied:
    """Images of a copy; when unpickled on another machine, the URL is copied there."""

    pixels: Pixels
    origin: tuple[str, str, str, str]
    """Kind of dataset, URL, part, and name of the directory of the copy."""

    def read(self, index: int) -> Bytes:
        return self.pixels.read(index)

    def contents(self, count: int) -> Iterator[Content]:
        return self.pixels.contents(count)

    def __reduce__(self) -> tuple[Any, tuple[str, str, str, str]]:
        return _reopened, self.origin


def _reopened(kind: str, url: str, part: str, copy: str) -> _Copied:
    place = local_copy(url)
    if place.parent.name != copy:
        raise ImageFileError(f"{url} changed after the run was planned; run the same command again")
    return _Copied(readers[kind].open(str(place), part).pixels, (kind, url, part, copy))


def as_portable(dataset: Dataset, kind: str, location: str, part: str) -> Dataset:
    """Make a dataset usable on other machines, if its location is a copy of a URL."""
    place = Path(location)
    if place.parent.parent != cache_folder() / _FOLDER:
        return dataset
    url = json.loads((place.parent / _COMPLETE).read_text())["url"]
    return replace(dataset, pixels=_Copied(dataset.pixels, (kind, url, part, place.parent.name)))
