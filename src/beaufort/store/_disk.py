"""The folder of a store: on a disk of this machine, or wherever fsspec reaches."""

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
    """Files by their paths below a root; nothing here knows what they hold.

    A file that is not there is a `FileNotFoundError`; one that is there and cannot be read just now is a
    `FaultyFileError` of the kind `unreadable`.
    """

    location: str

    @property
    def local(self) -> bool:
        """Whether files lie in a folder of this machine, and are renamed into place."""

    @property
    def at_once(self) -> int:
        """How many files are best read or copied at a time."""

    def full(self, path: str) -> str:
        """Where a file is, for whatever opens it."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder; a link that leads nowhere is none."""

    def is_empty(self) -> bool:
        """Whether the folder is not there, or has nothing in it."""

    def check_place(self) -> None:
        """Raise an error if a store cannot be here: on a file, in a bucket that does not exist."""

    def read(self, path: str) -> bytes:
        """A whole file."""

    def tail(self, path: str, size: int) -> bytes:
        """The last bytes of a file; all of it if it is smaller."""

    def files(self, folder: str) -> dict[str, str]:
        """The files below a folder, each with a word that changes when the file does; none is opened."""

    def write(self, path: str, content: bytes) -> None:
        """Put a file into place, whole or not at all."""

    def remove(self, path: str) -> None:
        """Delete a file; that it is gone already is fine."""

    def move(self, path: str, folder: str) -> str:
        """Move a file into a folder of the store, where it keeps its path; the new one."""


def open_disk(location: str) -> Disk:
    """The folder at a path or URL; it need not be there yet."""
    if is_url(location) and not location.startswith(("file://", "local://")):
        try:
            return RemoteDisk(location)
        except RemoteError as error:
            raise StoreError(f"the store {location!r} cannot be opened: {error}") from error
    return LocalDisk(location, str(LocalFileSystem._strip_protocol(location)).rstrip("/"))


def for_each(function: Callable[[A], B], things: Iterable[A], *disks: Disk) -> Iterator[B]:
    """As `map`, several at a time where a disk is far away."""
    at_once = max(disk.at_once for disk in disks)
    if at_once == 1:
        yield from map(function, things)
        return
    with ThreadPoolExecutor(at_once, thread_name_prefix="beaufort store") as pool:
        yield from pool.map(function, things)
