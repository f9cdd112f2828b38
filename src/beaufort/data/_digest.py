"""A hash of everything in a data set, and a memory of the files that were hashed before.

The memory is a small database in the cache folder. A file counts as unchanged while its size and the times
of its last changes are the same; one that changed in the last seconds is not remembered, because a clock
that is coarse could hide the next change. Without a memory, everything is read again; one that another
process holds locked is waited for once.
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
_FORMAT = "beaufort data set 1"
_UNREADABLE = hashlib.sha256(b"unreadable").digest()
_SETTLED_NS = 2_000_000_000
_ROWS_AT_ONCE = 1000
_LONGEST_WAIT_S = 5

_Stamp: TypeAlias = tuple[int, int, int]


class Content(NamedTuple):
    """Bytes that a picture, or many, are made from."""

    chunks: Callable[[], Iterable[bytes]]
    file: Path | None = None
    """The file that they are in; None if there is none to remember them by."""
    part: str = ""
    """Which part of the file, if not all."""


def digest_of(
    classes: Sequence[str],
    ids: Iterable[str],
    labels: NDArray[np.int64],
    contents: Iterable[Content],
    *,
    fresh: bool = False,
) -> str:
    """The sha256 of a data set, in hexadecimal digits."""
    whole = hashlib.sha256()
    whole.update(json.dumps([_FORMAT, list(classes)]).encode())
    for id, label in zip(ids, labels.tolist(), strict=True):
        name = id.encode("utf-8", "surrogateescape")
        whole.update(b"%d:%b=%d," % (len(name), name, label))
    with contextlib.closing(_Memory()) as memory:
        for content in contents:
            whole.update(_sha256(content, memory, fresh))
    return whole.hexdigest()


def chunks_of(path: Path, start: int = 0, length: int | None = None) -> Iterator[bytes]:
    """The bytes of a file, or of a part of it, a chunk at a time."""
    with path.open("rb") as file:
        file.seek(start)
        left = CHUNK if length is None else length
        while left and (chunk := file.read(min(CHUNK, left))):
            yield chunk
            left -= 0 if length is None else len(chunk)


def _sha256(content: Content, memory: _Memory, fresh: bool) -> bytes:
    """Of one content; what cannot be read has a value of its own."""
    try:
        stamp = _stamp(content.file) if content.file is not None else None
        if stamp is not None and not fresh and (known := memory.recall(content, stamp)):
            return known
        found = hashlib.sha256()
        for chunk in content.chunks():
            found.update(chunk)
    except (OSError, ImageFileError):
        return _UNREADABLE
    if stamp is not None and time.time_ns() - max(stamp[1:]) > _SETTLED_NS:
        memory.keep(content, stamp, found.digest())
    return found.digest()


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _Memory:
    """What files held, by their path and stamp; forgets everything where it cannot be kept."""

    def __init__(self) -> None:
        self._new: list[tuple[bytes, str, int, int, int, bytes]] = []
        self._database: sqlite3.Connection | None = None
        with contextlib.suppress(OSError), self._or_none():
            folder = cache_folder()
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(folder / "digests.sqlite", timeout=_LONGEST_WAIT_S)
            self._database.execute(
                "create table if not exists content (file blob, part text, size integer, mtime_ns integer, "
                "ctime_ns integer, sha256 blob, primary key (file, part)) without rowid"
            )

    def recall(self, content: Content, stamp: _Stamp) -> bytes | None:
        if self._database is None:
            return None
        row = None
        with self._or_none():
            row = self._database.execute(
                "select sha256 from content where file = ? and part = ? "
                "and size = ? and mtime_ns = ? and ctime_ns = ?",
                (*_key(content), *stamp),
            ).fetchone()
        return bytes(row[0]) if row else None

    @contextlib.contextmanager
    def _or_none(self) -> Iterator[None]:
        """Go on without a memory once it fails: the next question would fail too, and be waited for."""
        try:
            yield
        except sqlite3.Error:
            if self._database is not None:
                self._database.close()
            self._database = None

    def keep(self, content: Content, stamp: _Stamp, sha256: bytes) -> None:
        self._new.append((*_key(content), *stamp, sha256))
        if len(self._new) >= _ROWS_AT_ONCE:
            self._write()

    def close(self) -> None:
        self._write()
        if self._database is not None:
            self._database.close()

    def _write(self) -> None:
        if self._database is not None and self._new:
            with self._or_none(), self._database:
                self._database.executemany("insert or replace into content values (?,?,?,?,?,?)", self._new)
        self._new.clear()


def _key(content: Content) -> tuple[bytes, str]:
    assert content.file is not None
    return os.fsencode(content.file.resolve()), content.part
