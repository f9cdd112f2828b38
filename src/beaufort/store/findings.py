"""What can be wrong with a file of a store, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from beaufort._core.errors import BeaufortError


class StoreError(BeaufortError, OSError):
    """A store that cannot be read or written."""


class Kind(StrEnum):
    """What is wrong with a file."""

    damaged = "damaged"
    """Its content is not what was written."""
    unreadable = "unreadable"
    """It could not be read, for instance for lack of permission; its content may be fine."""
    newer = "newer"
    """A newer version of Beaufort wrote it."""
    twice = "twice"
    """All of its rows are in other files too."""
    overlap = "overlap"
    """Some of its rows are in another file too; each is read once."""
    draft = "draft"
    """An unfinished file, left by a process that was killed."""


TO_SET_ASIDE = (Kind.damaged, Kind.twice)
"""What `collect` moves into the quarantine."""

_CURES = {
    Kind.damaged: "the same `beaufort run` again makes it anew; `store verify --repair` moves it away",
    Kind.unreadable: "nothing is lost: try again when it can be read",
    Kind.newer: "update Beaufort",
}


@dataclass(frozen=True)
class Finding:
    """A file of a store, and what is wrong with it."""

    path: str
    """In the store."""
    message: str
    kind: Kind = Kind.damaged


class FaultyFileError(StoreError):
    """A file of a store that is needed and cannot be used."""

    def __init__(self, location: str, finding: Finding) -> None:
        super().__init__(f"{location}: {finding.path} {finding.message}; {_CURES[finding.kind]}")
        self.finding = finding


def unreadable(location: str, path: str, error: Exception) -> FaultyFileError:
    """The error for a file that is there and cannot be read just now."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return FaultyFileError(location, Finding(path, f"cannot be read now ({reason[:300]})", Kind.unreadable))
