"""Files that are whole or absent.

A file is written under a passing name beside its target and takes its real name when it is complete.
The passing name tells whose it is, so that what a killed process left behind can be told from what
another one is writing right now.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

__all__ = ["draft", "is_leftover", "remove_leftover", "remove_leftovers", "write_bytes"]

_HOST = f"{crc32(socket.gethostname().encode()):08x}"
_TOKEN = secrets.token_hex(4)
_NAME = re.compile(r"\.beaufort-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-(?P<token>[0-9a-f]{8})-\d+\.part")
_count = itertools.count()

_ABANDONED_S = 3600
"""Age after which a draft of another machine, which cannot be asked, counts as left behind."""


@contextlib.contextmanager
def draft(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that becomes `path` when the block ends, and vanishes if it fails.

    Folders that are missing on the way are made. A device or a pipe, as /dev/stdout, is written to: a file
    must not take its place.
    """
    if _is_special(path):
        with path.open("wb") as file:
            yield file
        return
    passing = path.with_name(f".beaufort-{_HOST}-{os.getpid()}-{_TOKEN}-{next(_count)}.part")
    try:
        with _create(passing) as file:
            yield file
        passing.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            passing.unlink()
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Put a file into place, whole or not at all."""
    with draft(path) as file:
        file.write(content)


def is_leftover(name: str) -> bool:
    """Whether a file name is that of a draft; `remove_leftover` sees whether anyone still writes it."""
    return _NAME.fullmatch(name) is not None


def remove_leftover(path: Path) -> bool:
    """Delete a draft that a process left behind; one that may still be written to stays."""
    match = _NAME.fullmatch(path.name)
    if match is None or _in_use(match, path):
        return False
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return True


def remove_leftovers(folder: Path) -> None:
    """Delete every draft directly in a folder that a process left behind."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
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
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")


def _in_use(match: re.Match[str], path: Path) -> bool:
    if match["host"] != _HOST:
        try:
            return time.time() - path.stat().st_mtime < _ABANDONED_S
        except OSError:
            return False
    if int(match["pid"]) == os.getpid():
        return match["token"] == _TOKEN
    return _alive(int(match["pid"]))


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
