"""Provenance of results: versions, machine, time, Git commit. None of it changes a prediction.

The commit is read from the files of Git, without running it: the configuration of a downloaded repository
could make Git start other programs (a file-system monitor, filters, hooks).
"""

from __future__ import annotations

import os
import platform
import re
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from beaufort._core.text import command_without_secrets

_PACKAGES = ("beaufort", "numpy", "numba", "opencv-python-headless", "pillow", "onnxruntime", "torch", "timm")
_MOST_BYTES = 1 << 24
"""Limit for `packed-refs`, the largest file, with about 70 bytes per branch or tag."""
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_REFERENCE = re.compile(r"refs/[^\s\\:?*\[^~]+")


def provenance() -> dict[str, Any]:
    """Return the provenance of results of this process."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "command": command_without_secrets(sys.argv),
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "git": checked_out(Path.cwd()),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def checked_out(folder: Path) -> str | None:
    """Return the first twelve digits of the commit; None without a readable repository.

    Uncommitted changes are not detected.
    """
    try:
        found = _commit(folder)
    except (OSError, ValueError):
        return None
    return None if found is None else found[:12]


def _commit(folder: Path) -> str | None:
    places = (place / ".git" for place in (folder, *folder.parents))
    entry = next((place for place in places if place.exists()), None)
    if entry is None:
        return None
    home = entry if entry.is_dir() else _linked(entry, "gitdir:")
    head = _text(home / "HEAD")
    if _COMMIT.fullmatch(head):
        return head
    name = head.removeprefix("ref:").strip()
    if not _REFERENCE.fullmatch(name) or ".." in name:
        return None
    common = _linked(home / "commondir") if (home / "commondir").is_file() else home
    for place in (home / name, common / name):
        if place.is_file():
            found = _text(place)
            return found if _COMMIT.fullmatch(found) else None
    return _packed(common / "packed-refs", name)


def _linked(file: Path, word: str = "") -> Path:
    """Return the folder named in a file of Git, as in a linked working tree."""
    return file.parent / _text(file).removeprefix(word).strip()


def _packed(file: Path, name: str) -> str | None:
    for line in _text(file).splitlines():
        commit, _, of = line.partition(" ")
        if of == name and _COMMIT.fullmatch(commit):
            return commit
    return None


def _text(file: Path) -> str:
    if not file.is_file():  # reading a pipe would block
        raise FileNotFoundError(file)
    with file.open("rb") as stream:
        return stream.read(_MOST_BYTES).decode().strip()
