"""What a command that makes images did: files written, and what failed."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from beaufort._core.errors import OptionError
from beaufort._core.files import remove_leftovers, write_bytes
from beaufort.corruptions import corruptions

Progress: TypeAlias = Callable[[int, int], None]
"""Called in the caller's thread with the number of outputs dealt with, and their total."""


class Failure(NamedTuple):
    """An output that could not be made, while others were."""

    path: str
    """A file or folder relative to the source, or the corruption that could not be made at all."""
    message: str


@dataclass(frozen=True)
class Outcome:
    """What was done."""

    done: int = 0
    """Files written."""
    skipped: int = 0
    """Files that were there already."""
    failures: tuple[Failure, ...] = ()
    """Outputs that could not be made, sorted by path."""
    ignored: int = 0
    """Files of the source that are not called like images."""
    stopped: str | None = None
    """Why it ended early; None if it did not."""

    @property
    def ok(self) -> bool:
        """Whether everything that was asked for is there now."""
        return not self.failures and self.stopped is None

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {
            "done": self.done,
            "skipped": self.skipped,
            "ignored": self.ignored,
            "failures": [failure._asdict() for failure in self.failures],
            "stopped": self.stopped,
        }


_HOPELESS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_NOTE = "beaufort.json"


def stop_reason(path: Path, error: OSError) -> str | None:
    """Why a job stops, if the next file would meet the same error; None for an error of this one file."""
    if error.errno not in _HOPELESS:
        return None
    what = f"{path} could not be written ({error.strerror})"
    return f"{what}; what is complete stays, and a second run makes the rest"


def claim_folder(output: Path, settings: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Make the folder if it is missing, and note what it is made with; the reason if the disk is full.

    A folder that was made with other settings, or with another version of one of the corruptions, is
    refused: its files would be taken for ones of this run. Runs may differ in the corruptions and the
    severities, which have folders of their own.
    """
    from beaufort import __version__

    if output.exists() and not output.is_dir():
        raise OptionError(f"output must be a folder, got the file {output}")
    remove_leftovers(output)
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
        raise OptionError(
            f"the output folder {output} cannot be written to ({error.strerror or error}); use another"
        ) from None
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"{path}, which says how the folder was made, cannot be read ({error})") from None
    parts = ("settings", "corruptions")
    if not isinstance(note, dict) or not all(isinstance(note.get(part, {}), dict) for part in parts):
        raise OptionError(f"{path} was not written by Beaufort; use another output folder")
    return note


def _check_same(output: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if differing:
        shown = ", ".join(f"{name} {before.get(name)!r} and not {now.get(name)!r}" for name in differing)
        raise OptionError(f"{output} was made with {shown}; use another output folder, or the same settings")
