"""Files that are whole or absent, and stay so when the power fails.

A file is written under a passing name beside its target, forced to the disk, and takes its real name when it
is complete; then the folder is forced to the disk too, because a name lives there. The passing name tells
whose it is, so that what a killed process left behind can be told from what another one is writing right now.
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
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.validation import validate_unique


def _machine() -> str:
    """Where process numbers mean the same: a host, or a container on it."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    with contextlib.suppress(OSError):
        name += str(Path("/proc/self/ns/pid").readlink())
    return f"{crc32(name.encode()):08x}"


_HOST = _machine()
_TOKEN = os.urandom(4).hex()
_NAME = re.compile(
    r"\.beaufort-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-(?P<token>[0-9a-f]{8})-\d+\.part"
    r"|\.draft-\d+-[0-9a-f]{8}"  # as stores were written at first
)
_count = itertools.count()

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""What a file system says that does not know how to force a folder to the disk."""

_ABANDONED_S = 3600
"""Age after which a draft of another machine, which cannot be asked, counts as left behind."""


@contextlib.contextmanager
def draft(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that becomes `path` when the block ends, and vanishes if it fails.

    Folders that are missing on the way are made. After the block, the file and its name are on the disk. A
    device or a pipe, as /dev/stdout, is written to: a file must not take its place.
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
    """Put a file into place, whole or not at all."""
    with draft(path) as file:
        file.write(content)


def write_output(path: Path, content: bytes) -> None:
    """Put a file that somebody named into place, and delete what killed processes left beside it."""
    if path.is_dir():
        raise OptionError(f"output must be a file, got the folder {path}")
    remove_leftovers(path.parent)
    try:
        write_bytes(path, content)
    except OSError as error:
        raise OptionError(f"{path} cannot be written ({error.strerror or error})") from None


def read_json(path: Path, error_class: type[BeaufortError] = OptionError) -> Any:
    """What a JSON file holds; an error of a class if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise error_class(f"{path} cannot be read as JSON ({error!s:.80})") from None


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
            raise error_class(f"{path}, line {line} must have {len(header)} values, got {len(row)}")
    return [(line, dict(zip(header, row, strict=True))) for line, row in rows]


def put_in_place(passing: Path, path: Path) -> None:
    """Give a file that is complete its real name; both are on the disk when this returns."""
    with passing.open("rb") as file:
        os.fsync(file.fileno())
    passing.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk, where the system can."""
    if os.name == "nt":  # a folder cannot be opened there
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
    """The name, or the first of `name.1`, `name.2` and so on that is not taken.

    >>> unused("a", {"a", "a.1"}.__contains__)
    'a.2'
    """
    free, more = name, 0
    while taken(free):
        free = f"{name}.{(more := more + 1)}"
    return free


def is_leftover(name: str) -> bool:
    """Whether a file name is that of a draft; `remove_leftover` sees whether anyone still writes it."""
    return _NAME.fullmatch(name) is not None


def is_in_use(path: Path) -> bool:
    """Whether a process may still be writing a draft."""
    match = _NAME.fullmatch(path.name)
    if match is None or match["host"] != _HOST:
        return _is_young(path)
    if int(match["pid"]) == os.getpid():
        return match["token"] == _TOKEN
    return _alive(int(match["pid"]))


def remove_leftover(path: Path) -> bool:
    """Delete a draft that a process left behind; one that may still be written to stays."""
    if not is_leftover(path.name) or is_in_use(path):
        return False
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return True


def remove_leftovers(folder: Path) -> None:
    """Delete every draft directly in a folder that a process left behind."""
    with contextlib.suppress(OSError):  # they are in nobody's way
        for path in list(folder.iterdir()):
            remove_leftover(path)


def _is_special(path: Path) -> bool:
    """Whether something is there that is neither a file nor a folder."""
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
    if os.name == "nt":  # no harmless signal there: leave what is not ours
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
