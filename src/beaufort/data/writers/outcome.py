"""What a command that makes images did: files written, and what failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

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
    """Files of the source that are not called like pictures."""
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
