"""The folder that keeps fetched files, and whether what it has is right."""

from __future__ import annotations

import hashlib
import os
from enum import StrEnum
from pathlib import Path

from beaufort._core.catalog._entries import assets


class State(StrEnum):
    """What the cache has of a file or an entry."""

    absent = "absent"
    whole = "whole"
    damaged = "damaged"


def state(name: str) -> State:
    """What the cache has of a file; it is read from end to end."""
    path = cache_folder() / name
    if not path.is_file():
        return State.absent
    return State.whole if digest(path) == assets[name].sha256 else State.damaged


def cache_folder() -> Path:
    """Where fetched files are kept."""
    if own := os.environ.get("BEAUFORT_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beaufort"


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
