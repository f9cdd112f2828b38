"""Output directories of writers: their settings, and the outcome of a job."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from beaufort._core.errors import OptionError
from beaufort._core.files import remove_leftovers, write_bytes
from beaufort._core.validation import validate_output_directory
from beaufort.corruptions import corruptions

Progress: TypeAlias = Callable[[int, int], None]
"""Called in the thread of the caller with the number of finished outputs and their total."""


class Failure(NamedTuple):
    """An output that could not be written."""

    path: str
    """A file or directory relative to the source, or a corruption."""
    message: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job."""

    done: int = 0
    """Number of files written."""
    skipped: int = 0
    """Number of files that existed."""
    failures: tuple[Failure, ...] = ()
    """Outputs that could not be written, sorted by path."""
    ignored: int = 0
    """Number of files in the source without the name of an image."""
    stopped: str | None = None
    """Why the job ended early; None if it did not."""

    @property
    def ok(self) -> bool:
        """Whether all outputs exist."""
        return not self.failures and self.stopped is None

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "done": self.done,
            "skipped": self.skipped,
            "ignored": self.ignored,
            "failures": [failure._asdict() for failure in self.failures],
            "stopped": self.stopped,
        }


_PERSISTENT = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_NOTE = "beaufort.json"


def stop_reason(path: Path, error: OSError) -> str | None:
    """Return why a job stops if other files would fail too; None for an error of a single file."""
    if error.errno not in _PERSISTENT:
        return None
    return f"cannot write {path}: {error.strerror}; complete files are kept, and the same command resumes"


def claim_folder(output: Path, settings: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Create a directory if necessary and store the settings; return the reason if the disk is full.

    A directory with other settings, or another version of a corruption, is rejected: its files would be
    taken for files of this run. Corruptions and severities may differ, as they have their own directories.
    """
    from beaufort import __version__

    remove_leftovers(validate_output_directory(output))
    before = _read(output / _NOTE)
    _check_same(output, before.get("settings", settings), settings)
    links = {link.partition("@")[0] for name in names for link in name.split("+")}
    versions = {name: corruptions[name].version for name in links if name in corruptions}
    known = before.get("corruptions", {})
    for name, version in versions.items():
        label = f"version of {name}"
        _check_same(output, {label: known.get(name, version)}, {label: version})
    note = {
        "beaufort": before.get("beaufort", __version__),
        "settings": dict(settings),
        "corruptions": dict(sorted({**known, **versions}.items())),
    }
    if note == before:
        return None
    try:
        write_bytes(output / _NOTE, (json.dumps(note, indent=2) + "\n").encode())
    except OSError as error:
        if reason := stop_reason(output, error):
            return reason
        raise OptionError(f"cannot write to {output}: {error.strerror or error}") from None
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"cannot read {path}: {error}") from None
    parts = ("settings", "corruptions")
    if not isinstance(note, dict) or not all(isinstance(note.get(part, {}), dict) for part in parts):
        raise OptionError(f"{path} was not written by Beaufort; use another output directory")
    return note


def _check_same(output: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if differing:
        values = ", ".join(f"{name} {before.get(name)!r}, not {now.get(name)!r}" for name in differing)
        raise OptionError(
            f"{output} was made with {values}; use another output directory or the same settings"
        )
