"""Where a result came from: versions, machine, time, commit. None of it changes a prediction.

The commit of the working folder is read from the files of Git. Git itself is not run: its configuration
belongs to the repository, and may name programs (a file-system monitor, filters, hooks) that Git starts even
to answer this question. Somebody who evaluates a model in a downloaded folder has not agreed to that.
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
"""Of `packed-refs`, the largest of the files, which has some 70 bytes for a branch or tag."""
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_REFERENCE = re.compile(r"refs/[^\s\\:?*\[^~]+")


def provenance() -> dict[str, Any]:
    """The facts of this process that stand beside a result."""
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
    """The first twelve digits of the commit; None where there is no repository, or none that is plain.

    Whether files differ from the commit is not known: only Git could tell.
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
    """The folder that a file of Git's names, as that of a second working tree does."""
    return file.parent / _text(file).removeprefix(word).strip()


def _packed(file: Path, name: str) -> str | None:
    for line in _text(file).splitlines():
        commit, _, of = line.partition(" ")
        if of == name and _COMMIT.fullmatch(commit):
            return commit
    return None


def _text(file: Path) -> str:
    if not file.is_file():  # a pipe would be waited for
        raise FileNotFoundError(file)
    with file.open("rb") as stream:
        return stream.read(_MOST_BYTES).decode().strip()
