"""The files of a store as a database sees them: checked, and without the rows that are there twice.

DuckDB checks no checksums and reads whole files. So it is given a file system that exists for it alone: its
paths are those of the slices that are read, and what it opens has been read and checked to the last byte.
It cannot write, and knows no other path.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from threading import Lock
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractFileSystem

from beaufort.store._footer import read_content
from beaufort.store._format import decode, encode, is_sealed
from beaufort.store.findings import FaultyFileError
from beaufort.store.pieces import Slice

if TYPE_CHECKING:
    from beaufort.store.files import FileStore

PROTOCOL = "beaufort"

_ROOM = 256 << 20
"""Bytes of files that are kept in memory, because a database opens a file several times."""


class Served(AbstractFileSystem):  # type: ignore[misc]
    """Slices of a store as files that can be read."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, store: FileStore) -> None:
        super().__init__()
        self._store = store
        self._slices: Mapping[str, Slice] = {}
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()
        self.fault: Exception | None = None
        """What went wrong first; the database only says that something did."""
        self.first_fault: Exception | None = None
        """What went wrong with the file that the view of predictions takes its columns from."""

    @classmethod
    def of(cls, store: FileStore, slices: Mapping[str, Slice]) -> Served:
        """The slices of a store by their paths.

        They are no argument of the file system: fsspec makes a text of each, and there may be very many.
        """
        served = cls(store)
        served._slices = slices
        return served

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BytesIO:
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        return io.BytesIO(self._content(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return {"name": path, "size": len(self._content(path)), "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        return self._strip_protocol(path) in self._slices

    def glob(self, path: str, **_: Any) -> list[str]:
        pattern = self._strip_protocol(path)
        if pattern == "*":
            return list(self._slices)
        return [one for one in self._slices if fnmatchcase(one, pattern)]

    def modified(self, path: str) -> datetime:  # noqa: ARG002
        return datetime.fromtimestamp(0, UTC)

    def _content(self, path: str) -> bytes:
        with self._lock:
            if path in self._kept:
                self._kept.move_to_end(path)
                return self._kept[path]
        if path not in self._slices:
            raise FileNotFoundError(path)
        try:
            content = self._read(self._slices[path])
        except (FileNotFoundError, FaultyFileError) as error:
            self.fault = self.fault or error
            raise
        with self._lock:
            self._kept[path] = content
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > _ROOM:
                self._kept.popitem(last=False)
        return content

    def _read(self, one: Slice) -> bytes:
        """The bytes of a file; new ones for a part of it, and where nothing vouches for all of its footer."""
        content = read_content(self._store.disk, one.piece)
        if not one.skip and is_sealed(content):
            return content
        return encode(decode(content)[0].slice(one.skip), {})
