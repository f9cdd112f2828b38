"""Progress, summaries and tables that commands print."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import typer

from beaufort._core.text import counted, duration, printable

if TYPE_CHECKING:
    from beaufort.data.writers import Outcome

clock = time.monotonic
"""In seconds; tests replace it."""


class Show(Protocol):
    """Shows progress."""

    def __call__(self, done: int, total: int, about: str = "", /) -> None:
        """Show how many are done, of how many, and what is being done."""


MOST_LINES = 20
"""Number of problems that are printed; `--json` lists all."""
_EVERY_S = 60
"""Time between lines in a log."""


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Show]:
    """Show a progress bar with elapsed and remaining time on a terminal, and a line per minute elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines(title)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    elapsed = TimeElapsedColumn(), TextColumn("elapsed,")
    left = TimeRemainingColumn(), TextColumn("left"), TextColumn("{task.fields[about]}")
    with Progress(*columns, *elapsed, *left, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(title), total=None, about="")
        yield lambda done, total, about="": bar.update(
            task, completed=done, total=total, about=escape(printable(about))
        )


class _Lines:
    """Print a line per minute."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._start = self._last = clock()

    def __call__(self, done: int, total: int, about: str = "", /) -> None:
        now = clock()
        if now - self._last < _EVERY_S:
            return
        self._last = now
        elapsed = now - self._start
        left = f", about {duration(elapsed * (total - done) / done)} left" if done else ""
        line = f"{self._title}: {done:,} of {total:,}, {duration(elapsed)} elapsed{left}"
        typer.echo(printable(f"{line}; {about}" if about else line), err=True)


def finish(outcome: Outcome, output: object, *, as_json: bool) -> None:
    """Print what was done, and exit with 1 if something failed."""
    if as_json:
        typer.echo(json.dumps({"output": str(output), **outcome.as_dict()}, indent=2))
    else:
        typer.echo(_summary(outcome, output))
        for path, message in outcome.failures[:MOST_LINES]:
            typer.echo(f"failed: {printable(path)}: {printable(message)}", err=True)
        if (more := len(outcome.failures) - MOST_LINES) > 0:
            typer.echo(f"and {more} more; --json lists all", err=True)
        if outcome.stopped:
            typer.echo(f"stopped: {printable(outcome.stopped)}", err=True)
    if not outcome.ok:
        raise typer.Exit(1)


def _summary(outcome: Outcome, output: object) -> str:
    parts = [f"{outcome.done} written to {printable(output)}"]
    if outcome.skipped:
        parts.append(f"{outcome.skipped} existed")
    if outcome.ignored:
        parts.append(f"{counted(outcome.ignored, 'other file')} ignored")
    if outcome.failures:
        parts.append(counted(len(outcome.failures), "failure"))
    return ", ".join(parts)


def print_json(values: Any) -> None:
    """Print values as JSON, in which NaN is an error."""
    typer.echo(json.dumps(values, indent=2, allow_nan=False, ensure_ascii=False))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines of aligned columns, without control characters."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    lines = (
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    )
    return "\n".join(lines)
