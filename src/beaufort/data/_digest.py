"""Digests of datasets, with a cache of file hashes.

The cache is a SQLite database in the cache directory. A file counts as unchanged while its size and change
times are the same. Files that changed in the last seconds are not cached, because a coarse clock could hide
the next change. If the database cannot be used, all files are read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from beaufort._core.catalog import cache_folder
from beaufort._core.errors import ImageFileError

CHUNK = 1 << 20
_FORMAT = "beaufort data set 1"  # part of every digest, so the spelling stays
_UNREADABLE = hashlib.sha256(b"unreadable").digest()
_SETTLED_NS = 2_000_000_000
_ROWS_AT_ONCE = 1000
_TIMEOUT_S = 5

_Stamp: TypeAlias = tuple[int, int, int]


class Content(NamedTuple):
    """The stored bytes of one or several images."""

    chunks: Callable[[], Iterable[bytes]]
    file: Path | None = None
    """The file that contains them; None if their hash cannot be cached."""
    part: str = ""
    """Identifies a part of the file; '' for the whole file."""


def digest_of(
    classes: Sequence[str],
    ids: Iterable[str],
    labels: NDArray[np.int64],
    contents: Iterable[Content],
    *,
    fresh: bool = False,
) -> str:
    """Return the sha256 of a dataset in hexadecimal digits."""
    whole = hashlib.sha256()
    whole.update(json.dumps([_FORMAT, list(classes)]).encode())
    for id, label in zip(ids, labels.tolist(), strict=True):
        name = id.encode("utf-8", "surrogateescape")
        whole.update(b"%d:%b=%d," % (len(name), name, label))
    with contextlib.closing(_HashCache()) as cache:
        for content in contents:
            whole.update(_sha256(content, cache, fresh))
    return whole.hexdigest()


def chunks_of(path: Path, start: int = 0, length: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file, or of a part of it, in chunks."""
    with path.open("rb") as file:
        file.seek(start)
        left = CHUNK if length is None else length
        while left and (chunk := file.read(min(CHUNK, left))):
            yield chunk
            left -= 0 if length is None else len(chunk)


def _sha256(content: Content, cache: _HashCache, fresh: bool) -> bytes:
    """Return the hash of one content; unreadable content has a special value."""
    try:
        stamp = _stamp(content.file) if content.file is not None else None
        if stamp is not None and not fresh and (known := cache.get(content, stamp)):
            return known
        found = hashlib.sha256()
        for chunk in content.chunks():
            found.update(chunk)
    except (OSError, ImageFileError):
        return _UNREADABLE
    if stamp is not None and time.time_ns() - max(stamp[1:]) > _SETTLED_NS:
        cache.put(content, stamp, found.digest())
    return found.digest()


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _HashCache:
    """Hashes of files by path, size and times; does nothing if the database cannot be used."""

    def __init__(self) -> None:
        self._new: list[tuple[bytes, str, int, int, int, bytes]] = []
        self._database: sqlite3.Connection | None = None
        with contextlib.suppress(OSError), self._disabled_on_error():
            folder = cache_folder()
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(folder / "digests.sqlite", timeout=_TIMEOUT_S)
            self._database.execute(
                "create table if not exists content (file blob, part text, size integer, mtime_ns integer, "
                "ctime_ns integer, sha256 blob, primary key (file, part)) without rowid"
            )

    def get(self, content: Content, stamp: _Stamp) -> bytes | None:
        if self._database is None:
            return None
        row = None
        with self._disabled_on_error():
            row = self._database.execute(
                "select sha256 from content where file = ? and part = ? "
                "and size = ? and mtime_ns = ? and ctime_ns = ?",
                (*_key(content), *stamp),
            ).fetchone()
        return bytes(row[0]) if row else None

    @contextlib.contextmanager
    def _disabled_on_error(self) -> Iterator[None]:
        """Stop using the database after an error: the next query would fail too, after a timeout."""
        try:
            yield
        except sqlite3.Error:
            if self._database is not None:
                self._database.close()
            self._database = None

    def put(self, content: Content, stamp: _Stamp, sha256: bytes) -> None:
        self._new.append((*_key(content), *stamp, sha256))
        if len(self._new) >= _ROWS_AT_ONCE:
            self._write()

    def close(self) -> None:
        self._write()
        if self._database is not None:
            self._database.close()

    def _write(self) -> None:
        if self._database is not None and self._new:
            with self._disabled_on_error(), self._database:
                self._database.executemany("insert or replace into content values (?,?,?,?,?,?)", self._new)
        self._new.clear()


def _key(content: Content) -> tuple[bytes, str]:
    assert content.file is not None
    return os.fsencode(content.file.resolve()), content.part
