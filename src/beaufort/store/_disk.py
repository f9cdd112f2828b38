"""The root folder of a store, on a local disk or at a URL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from fsspec.implementations.local import LocalFileSystem

from beaufort._core.remote import RemoteError, is_url
from beaufort.store._local import LocalDisk
from beaufort.store._remote import RemoteDisk
from beaufort.store.findings import StoreError

A = TypeVar("A")
B = TypeVar("B")


class Disk(Protocol):
    """Files by their paths below a root.

    A missing file raises a `FileNotFoundError`; one that exists and cannot be read at the moment raises a
    `FaultyFileError` of the kind `unreadable`.
    """

    location: str

    @property
    def local(self) -> bool:
        """Whether files are in a local folder and are renamed into place."""

    @property
    def at_once(self) -> int:
        """Number of files to read or copy concurrently."""

    def full(self, path: str) -> str:
        """Return the full path of a file."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""

    def is_folder(self, path: str) -> bool:
        """Return whether a folder exists; a broken link is not a folder."""

    def is_empty(self) -> bool:
        """Return whether the root is missing or empty."""

    def check_place(self) -> None:
        """Raise an error if the root is a file or in a missing bucket."""

    def read(self, path: str) -> bytes:
        """Return the content of a file."""

    def tail(self, path: str, size: int) -> bytes:
        """Return the last bytes of a file; all of it if it is smaller."""

    def files(self, folder: str) -> dict[str, str]:
        """List the files below a folder with a tag that changes with the file, without opening any."""

    def entries(self, folder: str) -> dict[str, str | None]:
        """List the files of one folder with their tags, and its folders with None; empty if it is missing."""

    def write(self, path: str, content: bytes) -> None:
        """Write a file, completely or not at all."""

    def remove(self, path: str) -> None:
        """Delete a file if it exists."""

    def move(self, path: str, folder: str) -> str:
        """Move a file to its path below a folder of the store, and return the new path."""


def open_disk(location: str) -> Disk:
    """Return the root at a path or URL, which may not exist yet."""
    if is_url(location) and not location.startswith(("file://", "local://")):
        try:
            return RemoteDisk(location)
        except RemoteError as error:
            raise StoreError(f"cannot open the store {location!r}: {error}") from error
    return LocalDisk(location, str(LocalFileSystem._strip_protocol(location)).rstrip("/"))


def for_each(function: Callable[[A], B], things: Iterable[A], *disks: Disk) -> Iterator[B]:
    """As `map`, with threads if a disk is remote."""
    at_once = max(disk.at_once for disk in disks)
    if at_once == 1:
        yield from map(function, things)
        return
    with ThreadPoolExecutor(at_once, thread_name_prefix="beaufort store") as pool:
        yield from pool.map(function, things)
