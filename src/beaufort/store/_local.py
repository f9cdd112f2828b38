"""The root folder of a store on a local disk.

Files are written under a temporary name, synced to the disk and renamed. A missing file is a
`FileNotFoundError`, and one that cannot be read at the moment a `FaultyFileError` of the kind `unreadable`;
neither is treated as damage.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from beaufort._core.files import remove_leftovers, sync_folder, unused, write_bytes
from beaufort.store.findings import StoreError, unreadable

T = TypeVar("T")

_GONE = (FileNotFoundError, NotADirectoryError)
_TRIES = 3
_PAUSE_S = 0.05
_DEEPEST = 4
"""Maximum depth of folders; a link to a parent folder would never end."""
_READINGS = 5
_SETTLED_NS = 100_000_000
"""A folder that changed more recently may change again without a new time stamp."""


class LocalDisk:
    """Files by their paths below a folder."""

    local = True
    at_once = 1

    def __init__(self, location: str, root: str) -> None:
        self.location = location
        self._root = root
        self._written = False
        self._cleaned: set[Path] = set()

    def full(self, path: str) -> str:
        return f"{self._root}/{path}"

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.full(path))

    def is_folder(self, path: str) -> bool:
        return Path(self.full(path)).is_dir()

    def is_empty(self) -> bool:
        self.check_place()
        return not Path(self._root).exists() or not any(Path(self._root).iterdir())

    def check_place(self) -> None:
        if os.path.lexists(self._root) and not Path(self._root).is_dir():
            raise StoreError(f"a store must be a folder, but {self.location} is a file or a broken link")

    # Reading

    def read(self, path: str) -> bytes:
        return self._tried(path, self._read)

    def tail(self, path: str, size: int) -> bytes:
        return self._tried(path, lambda full: self._tail(full, size))

    def _read(self, full: str) -> bytes:
        return Path(full).read_bytes()

    def _tail(self, full: str, size: int) -> bytes:
        with Path(full).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read()

    def _tried(self, path: str, read: Callable[[str], bytes]) -> bytes:
        """Read a file; retry after a transient error."""
        for left in reversed(range(_TRIES)):
            try:
                return read(self.full(path))
            except _GONE:
                raise FileNotFoundError(path) from None
            except PermissionError as error:
                raise unreadable(self.location, path, error) from error
            except Exception as error:
                if not left:
                    raise unreadable(self.location, path, error) from error
                time.sleep(_PAUSE_S)
        raise AssertionError

    # Listing

    def files(self, folder: str) -> dict[str, str]:
        return self._listed(lambda: dict(self._walk(folder)))

    def entries(self, folder: str) -> dict[str, str | None]:
        return self._listed(lambda: self._scan(folder))

    def _listed(self, read: Callable[[], dict[str, T]]) -> dict[str, T]:
        try:
            return read()
        except _GONE:
            return {}
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(f"cannot list {self.location}: {error}") from error

    def _walk(self, folder: str) -> Iterator[tuple[str, str]]:
        folders = [folder]
        while folders:
            here = folders.pop()
            for name, state in self._scan(here).items():
                if state is not None:
                    yield f"{here}/{name}", state
                elif here.count("/") < _DEEPEST:
                    folders.append(f"{here}/{name}")

    def _scan(self, folder: str) -> dict[str, str | None]:
        """Return the files of one folder with their states, and its folders with None.

        A file that is renamed while a folder is read may be missed under both names. A folder that is being
        changed is therefore read again, until it has not changed for a while or several readings have shown
        no new file (partial files do not count). Files seen by any reading are returned; a removed one is
        noticed when it is opened.
        """
        seen: dict[str, str | None] = {}
        nothing_new = 0
        while nothing_new < _READINGS:
            try:
                now, rested = self._read_folder(self.full(folder))
            except _GONE:
                return {}
            if rested:
                return now
            new = (name for name in now.keys() - seen.keys() if not name.startswith("."))
            nothing_new = 0 if any(new) else nothing_new + 1
            seen |= now
        return seen

    def _read_folder(self, full: str) -> tuple[dict[str, str | None], bool]:
        """Return the entries of a folder, and whether it was certainly unchanged while it was read."""
        now: dict[str, str | None] = {}
        before = os.stat(full).st_mtime_ns  # noqa: PTH116  faster than a path object
        with os.scandir(full) as entries:
            for entry in entries:
                with contextlib.suppress(*_GONE):
                    now[entry.name] = _state(entry)
        after = os.stat(full).st_mtime_ns  # noqa: PTH116
        return now, before == after < time.time_ns() - _SETTLED_NS

    # Changing

    def write(self, path: str, content: bytes) -> None:
        try:
            self.check_place()
            if self._written and not Path(self._root).is_dir():
                raise StoreError(f"cannot write {path}: the store {self.location} was removed during the run")
            file = Path(self.full(path))
            self._remove_partial_files(file.parent)
            write_bytes(file, content)
            self._written = True
        except StoreError:
            raise
        except Exception as error:
            reason = getattr(error, "strerror", None) or error  # without the temporary name
            raise StoreError(f"cannot write {path} to {self.location}: {reason}") from error

    def _remove_partial_files(self, folder: Path) -> None:
        """Remove partial files of killed writers from a folder, before the first file is written to it."""
        if folder in self._cleaned:
            return
        self._cleaned.add(folder)
        with contextlib.suppress(OSError):
            remove_leftovers(folder)

    def remove(self, path: str) -> None:
        self._changed(path, Path(self.full(path)).unlink)

    def move(self, path: str, folder: str) -> str:
        target = unused(f"{folder}/{path}", self.exists)
        self._changed(path, lambda: self._move(path, target))
        return target

    def _move(self, path: str, target: str) -> None:
        place = Path(self.full(target))
        place.parent.mkdir(parents=True, exist_ok=True)
        Path(self.full(path)).replace(place)
        sync_folder(place.parent)

    def _changed(self, path: str, change: Callable[[], object]) -> None:
        try:
            change()
        except _GONE:
            return
        except Exception as error:
            raise StoreError(f"cannot move or delete {path} of {self.location}: {error}") from error


def _state(entry: os.DirEntry[str]) -> str | None:
    """Return the state of a file, `?` if it is unknown; None for a folder."""
    try:
        if entry.is_dir():
            return None
        state = entry.stat()
    except _GONE:
        raise
    except OSError:
        return "?"
    return f"{state.st_size} {state.st_mtime_ns}"
