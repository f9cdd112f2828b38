"""Writing files atomically and durably.

A file is written under a temporary name next to its target, synced, and renamed when it is complete; then the
directory is synced, because it holds the name. The temporary name contains the host and process, so that
leftovers of a killed process can be distinguished from files that are being written.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import itertools
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, BinaryIO
from zlib import crc32

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.validation import validate_unique


def _host() -> str:
    """Return an id of the host or container, within which process ids are unique."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    with contextlib.suppress(OSError):
        name += str(Path("/proc/self/ns/pid").readlink())
    return f"{crc32(name.encode()):08x}"


_HOST = _host()
_TOKEN = os.urandom(4).hex()
_NAME = re.compile(
    r"\.beaufort-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-(?P<token>[0-9a-f]{8})-\d+\.part"
    r"|\.draft-\d+-[0-9a-f]{8}"  # of the first stores
)
_count = itertools.count()

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems that cannot sync a directory."""

_ABANDONED_S = 3600
"""Age after which a draft of another machine counts as a leftover."""


@contextlib.contextmanager
def draft(path: Path) -> Iterator[BinaryIO]:
    """Open a file that becomes `path` when the block ends and is deleted if the block fails.

    Missing directories are created. After the block, the file and its name are on the disk. An existing
    device or pipe, such as /dev/stdout, is written to directly.
    """
    if _is_special(path):
        with path.open("wb") as file:
            yield file
        return
    passing = path.with_name(f".beaufort-{_HOST}-{os.getpid()}-{_TOKEN}-{next(_count)}.part")
    try:
        with _create(passing) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        passing.replace(path)
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            passing.unlink()
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with draft(path) as file:
        file.write(content)


def write_output(path: Path, content: bytes) -> None:
    """Write a file named by the user, and delete leftovers of killed processes next to it."""
    if path.is_dir():
        raise OptionError(f"output must be a file, got the directory {path}")
    remove_leftovers(path.parent)
    try:
        write_bytes(path, content)
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None


def read_json(path: Path, error_class: type[BeaufortError] = OptionError) -> Any:
    """Return the content of a JSON file; raise `error_class` if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise error_class(f"cannot read {path} as JSON: {error!s:.80}") from None


def read_csv(
    path: Path, required: Sequence[str], error_class: type[BeaufortError] = OptionError
) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV file in UTF-8 by column, each with its line number.

    Args:
        path: the file.
        required: columns that it must have.
        error_class: class of the error if it cannot be read.
    """
    try:
        reader = csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""), strict=True)
        header = [name.strip() for name in next(reader, [])]
        rows = [(reader.line_num, row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise error_class(f"cannot read {path} as a CSV file in UTF-8: {error}") from None
    if missing := [name for name in required if name not in header]:
        raise error_class(
            f"{path} has no column {missing[0]!r}; its columns are {', '.join(header) or 'none'}"
        )
    validate_unique(f"columns of {path}", header, error_class)
    for line, row in rows:
        if len(row) != len(header):
            raise error_class(f"{path}, line {line}: expected {len(header)} values, got {len(row)}")
    return [(line, dict(zip(header, row, strict=True))) for line, row in rows]


def put_in_place(passing: Path, path: Path) -> None:
    """Sync a complete file and rename it to `path`."""
    with passing.open("rb") as file:
        os.fsync(file.fileno())
    passing.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync a directory, if the system can."""
    if os.name == "nt":  # directories cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def unused(name: str, taken: Callable[[str], bool]) -> str:
    """Return `name`, or the first of `name.1`, `name.2` … that is not taken.

    >>> unused("a", {"a", "a.1"}.__contains__)
    'a.2'
    """
    free, more = name, 0
    while taken(free):
        free = f"{name}.{(more := more + 1)}"
    return free


def is_leftover(name: str) -> bool:
    """Return whether a file name is that of a draft, abandoned or not."""
    return _NAME.fullmatch(name) is not None


def is_in_use(path: Path) -> bool:
    """Return whether a process may still be writing a draft."""
    match = _NAME.fullmatch(path.name)
    if match is None or match["host"] != _HOST:
        return _is_young(path)
    if int(match["pid"]) == os.getpid():
        return match["token"] == _TOKEN
    return _alive(int(match["pid"]))


def remove_leftover(path: Path) -> bool:
    """Delete a draft unless a process may still be writing it; return whether it was deleted."""
    if not is_leftover(path.name) or is_in_use(path):
        return False
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return True


def remove_leftovers(folder: Path) -> None:
    """Delete the abandoned drafts directly in a directory."""
    with contextlib.suppress(OSError):  # leftovers do no harm
        for path in list(folder.iterdir()):
            remove_leftover(path)


def _is_special(path: Path) -> bool:
    """Return whether `path` is a device, a pipe or the like."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _create(path: Path) -> BinaryIO:
    try:
        return path.open("xb")
    except FileNotFoundError:
        _make_folder(path.parent)
        return path.open("xb")


def _make_folder(folder: Path) -> None:
    new = list(itertools.takewhile(lambda one: not one.exists(), (folder, *folder.parents)))
    folder.mkdir(parents=True, exist_ok=True)
    for one in reversed(new):
        sync_folder(one.parent)


def _is_young(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < _ABANDONED_S
    except OSError:
        return False


def _alive(pid: int) -> bool:
    if os.name == "nt":  # there, os.kill ends the process
        return _alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


_QUERY_LIMITED_INFORMATION, _STILL_ACTIVE, _ACCESS_DENIED = 0x1000, 259, 5


def _alive_on_windows(pid: int) -> bool:
    import ctypes

    kernel: Any = getattr(ctypes, "WinDLL")("kernel32", use_last_error=True)  # noqa: B009  absent elsewhere
    last_error: Any = getattr(ctypes, "get_last_error")  # noqa: B009
    handle = kernel.OpenProcess(_QUERY_LIMITED_INFORMATION, False, pid)
    if not handle:
        return bool(last_error() == _ACCESS_DENIED)
    code = ctypes.c_ulong()
    known = kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return not known or code.value == _STILL_ACTIVE


def lock_file(file: IO[Any], *, wait: bool) -> None:
    """Lock an open file until it is closed; an `OSError` if another process has it, or files have no locks.

    Windows waits ten seconds at most.
    """
    try:
        import fcntl
    except ImportError:
        windows: Any = import_module("msvcrt")
        file.seek(0)
        windows.locking(file.fileno(), windows.LK_LOCK if wait else windows.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
