"""Results of the torture tests, as a table."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

__all__ = ["Row", "as_json", "as_markdown"]

_COLUMNS = ("what", "count", "losses", "doubles", "uncaught", "seconds")


@dataclass
class Row:
    """The result of one kind of test, which ends at the first finding or when its time is over."""

    what: str
    until: float = float("inf")
    """Time limit, by `time.monotonic`."""
    count: int = 0
    losses: int = 0
    doubles: int = 0
    uncaughts: int = 0
    findings: list[str] = field(default_factory=list)
    cut: bool = False
    """Whether the test ran out of time."""
    begin: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def has_time(self) -> bool:
        """Return whether time is left and nothing was found."""
        self.cut = self.cut or time.monotonic() > self.until
        return not self.cut and not self.findings

    def loss(self, case: str) -> None:
        """Record something that is missing, incomplete or wrong."""
        self.losses += 1
        self.findings.append(case)

    def double(self, case: str) -> None:
        """Record something that counts twice."""
        self.doubles += 1
        self.findings.append(case)

    def uncaught(self, case: str) -> None:
        """Record an unexpected exception or exit code."""
        self.uncaughts += 1
        self.findings.append(case)

    def end(self) -> Row:
        """Stop the clock."""
        self.seconds = time.monotonic() - self.begin
        return self

    def cells(self) -> tuple[str, ...]:
        """Return the texts of a line of the table."""
        numbers = (self.count, self.losses, self.doubles, self.uncaughts)
        return (
            self.what + " (out of time)" * self.cut,
            *(f"{n:,}" for n in numbers),
            f"{self.seconds:.0f}",
        )


def as_markdown(rows: list[Row]) -> str:
    """Return an aligned Markdown table."""
    whole = ("all", *(f"{sum(getattr(row, name) for row in rows):,}" for name in _SUMMED))
    cells = [_COLUMNS, *(row.cells() for row in rows), (*whole, f"{sum(row.seconds for row in rows):.0f}")]
    widths = [max(len(line[place]) for line in cells) for place in range(len(_COLUMNS))]
    lines = [_line(line, widths) for line in cells]
    rule = "|".join(("", "-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:]), ""))
    return "\n".join([lines[0], rule, *lines[1:]])


_SUMMED = ("count", "losses", "doubles", "uncaughts")


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    numbers = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "| " + " | ".join((cells[0].ljust(widths[0]), *numbers)) + " |"


def as_json(rows: list[Row], **facts: object) -> str:
    """Return the rows as JSON."""
    names = ("what", *_SUMMED, "seconds", "cut", "findings")
    return json.dumps(
        {**facts, "rows": [{name: getattr(row, name) for name in names} for row in rows]}, indent=1
    )
