"""Problems of files of a store, and how to fix them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from beaufort._core.errors import BeaufortError


class StoreError(BeaufortError, OSError):
    """A store cannot be read or written."""


class Kind(StrEnum):
    """Kinds of problems of a file."""

    damaged = "damaged"
    """Its content is not what was written."""
    unreadable = "unreadable"
    """It cannot be read, for instance because of its permissions; its content may be intact."""
    newer = "newer"
    """A newer version of Beaufort wrote it."""
    twice = "twice"
    """All of its rows are in other files as well."""
    overlap = "overlap"
    """Some of its rows are in another file as well; each is read once."""
    draft = "draft"
    """A partial file of a process that was killed."""


TO_SET_ASIDE = (Kind.damaged, Kind.twice)
"""Kinds that `collect` moves into the quarantine."""

_CURES = {
    Kind.damaged: "the same `beaufort run` recomputes it; `beaufort results verify --repair` quarantines it",
    Kind.unreadable: "no data is lost; try again when it can be read",
    Kind.newer: "update Beaufort",
}


@dataclass(frozen=True)
class Finding:
    """A problem of a file of a store."""

    path: str
    """Path in the store."""
    message: str
    kind: Kind = Kind.damaged


class FaultyFileError(StoreError):
    """A file of a store is needed and cannot be used."""

    def __init__(self, location: str, finding: Finding) -> None:
        super().__init__(f"{location}: {finding.path} {finding.message}; {_CURES[finding.kind]}")
        self.finding = finding


def unreadable(location: str, path: str, error: Exception) -> FaultyFileError:
    """Return the error for an existing file that cannot be read at the moment."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return FaultyFileError(
        location, Finding(path, f"cannot be read at the moment ({reason[:300]})", Kind.unreadable)
    )
