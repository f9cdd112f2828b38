"""What a command shows while it works and when it ends."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import typer

from beaufort.sanitize import printable

if TYPE_CHECKING:
    from beaufort.image_sets import Outcome

__all__ = ["Show", "finish", "printable", "progress_bar", "table"]


class Show(Protocol):
    """Shows how far something is."""

    def __call__(self, done: int, total: int, about: str = "", /) -> None:
        """So many are done, of so many."""


_SHOWN = 20
"""Failures told in full; `--json` lists all."""


@contextlib.contextmanager
def progress_bar(title: str = "") -> Iterator[Show | None]:
    """A bar with the time left, on a terminal's stderr; None elsewhere.

    It is told how many are done, of how many, and, if that changes, what it is about.
    """
    if not sys.stderr.isatty():
        yield None
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
    times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[about]}")
    with Progress(*columns, *times, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, about="")
        yield lambda done, total, about="": bar.update(
            task, completed=done, total=total, about=escape(printable(about))
        )


def finish(outcome: Outcome, output: object, *, as_json: bool) -> None:
    """Tell what was done, and end with 1 if something failed."""
    if as_json:
        typer.echo(json.dumps({"output": str(output), **outcome.as_dict()}, indent=2))
    else:
        typer.echo(_summary(outcome, output))
        _tell_failures(outcome)
    if not outcome.ok:
        raise typer.Exit(1)


def _summary(outcome: Outcome, output: object) -> str:
    parts = [f"{outcome.done} written to {printable(output)}"]
    if outcome.skipped:
        parts.append(f"{outcome.skipped} there already")
    if outcome.ignored:
        parts.append(f"{outcome.ignored} other files left alone")
    if outcome.failures:
        parts.append(f"{len(outcome.failures)} failure{'s' * (len(outcome.failures) != 1)}")
    return ", ".join(parts)


def _tell_failures(outcome: Outcome) -> None:
    for path, message in outcome.failures[:_SHOWN]:
        typer.echo(f"failed: {printable(path)}: {printable(message)}", err=True)
    if (more := len(outcome.failures) - _SHOWN) > 0:
        typer.echo(f"and {more} more; --json lists all", err=True)
    if outcome.stopped:
        typer.echo(f"stopped: {printable(outcome.stopped)}", err=True)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines of aligned columns, harmless to a terminal; the last is as long as it is."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    lines = (
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    )
    return "\n".join(lines)
