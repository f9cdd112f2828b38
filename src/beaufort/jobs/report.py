"""What came of a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Problem", "Progress", "Report"]

Progress: TypeAlias = Callable[[int, int], None]
"""Called from the thread that started the job, with how many outputs are dealt with, and of how many."""


class Problem(NamedTuple):
    """Something that could not be done, while the rest was."""

    path: str
    """A file or folder relative to the source, or the corruption that could not be made at all."""
    message: str


@dataclass(frozen=True)
class Report:
    """What a job did."""

    done: int = 0
    """Files written."""
    skipped: int = 0
    """Files that were there already."""
    problems: tuple[Problem, ...] = ()
    """What could not be done, sorted by path."""
    ignored: int = 0
    """Files of the source that are not called like pictures."""
    stopped: str | None = None
    """Why the job ended early; None if it did not."""

    @property
    def ok(self) -> bool:
        """Whether everything that was asked for is there now."""
        return not self.problems and self.stopped is None

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {
            "done": self.done,
            "skipped": self.skipped,
            "ignored": self.ignored,
            "problems": [problem._asdict() for problem in self.problems],
            "stopped": self.stopped,
        }
