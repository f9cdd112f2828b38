"""What is wrong with a suite, all of it at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from beaufort._core.errors import BeaufortError

_SHOWN = 20
"""Mistakes told in a message; the error has all."""


class Mistake(NamedTuple):
    """One thing that is wrong, and where."""

    line: int | None
    """In the file, from 1; None for a suite that is not from a file."""
    key: str
    """The key whose value is wrong; empty if it is not about one."""
    message: str

    def told(self, source: str) -> str:
        """As a line that names the place.

        >>> Mistake(7, "severities", "6 is not a severity").told("my.yaml")
        'my.yaml:7: severities: 6 is not a severity'
        """
        place = source if self.line is None else f"{source}:{self.line}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


class SuiteError(BeaufortError, ValueError):
    """A suite with mistakes; `mistakes` has them in the order of their lines."""

    def __init__(self, source: str, mistakes: Sequence[Mistake]) -> None:
        super().__init__(source, mistakes)
        self.source = source
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: mistake.line or 0))

    def __str__(self) -> str:
        lines = [mistake.told(self.source) for mistake in self.mistakes[:_SHOWN]]
        more = len(self.mistakes) - len(lines)
        return "\n".join([*lines, *([f"and {more} more"] if more else [])])
