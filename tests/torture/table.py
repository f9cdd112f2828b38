"""What came of it all, as a table."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

__all__ = ["Row", "as_json", "as_markdown"]

_COLUMNS = ("what", "count", "losses", "doubles", "uncaught", "seconds")


@dataclass
class Row:
    """What came of one kind of torture; it ends at the first finding, or when its time is over."""

    what: str
    until: float = float("inf")
    """On the clock of `time.monotonic`."""
    count: int = 0
    losses: int = 0
    doubles: int = 0
    uncaughts: int = 0
    findings: list[str] = field(default_factory=list)
    cut: bool = False
    """Whether the time was over before all was done."""
    begin: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def goes_on(self) -> bool:
        """Whether there is time for more, and no finding yet."""
        self.cut = self.cut or time.monotonic() > self.until
        return not self.cut and not self.findings

    def loss(self, told: str) -> None:
        """Something is gone, half there, or wrong."""
        self.losses += 1
        self.findings.append(told)

    def double(self, told: str) -> None:
        """Something counts twice."""
        self.doubles += 1
        self.findings.append(told)

    def uncaught(self, told: str) -> None:
        """An error came that is none of ours, or an end that must not be."""
        self.uncaughts += 1
        self.findings.append(told)

    def end(self) -> Row:
        """Stop the clock."""
        self.seconds = time.monotonic() - self.begin
        return self

    def cells(self) -> tuple[str, ...]:
        """As the table has them."""
        numbers = (self.count, self.losses, self.doubles, self.uncaughts)
        return (
            self.what + " (time was over)" * self.cut,
            *(f"{n:,}" for n in numbers),
            f"{self.seconds:.0f}",
        )


def as_markdown(rows: list[Row]) -> str:
    """A table that is read as text, too."""
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
    """For programs."""
    names = ("what", *_SUMMED, "seconds", "cut", "findings")
    return json.dumps(
        {**facts, "rows": [{name: getattr(row, name) for name in names} for row in rows]}, indent=1
    )
