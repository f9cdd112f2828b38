"""Kills at every disk operation: remaining files are complete and read once."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from beaufort._core import files
from beaufort.store import FileStore

__all__ = ["Killed", "Kills", "kill_at", "kill_everywhere"]

_STEPS = ("fsync", "replace", "rename", "unlink", "remove", "mkdir")


class Killed(BaseException):
    """Simulate SIGKILL: no later operation reaches the disk."""


@dataclass
class Kills:
    """Results of killing an operation at each of its steps."""

    steps: int = 0
    wrong: list[str] = field(default_factory=list)


@contextlib.contextmanager
def kill_at(step: int) -> Iterator[list[str]]:
    """Raise `Killed` at a step and every later one; return the reached steps."""
    reached: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            reached.append(name)
            if len(reached) >= step:
                raise Killed(name)
            return real(*arguments, **options)

        return call

    with contextlib.ExitStack() as stack:
        for name in _STEPS:
            stack.enter_context(mock.patch.object(os, name, counted(name, getattr(os, name))))
        yield reached


def kill_everywhere(
    before: Path, work: Path, operation: Callable[[Path], Any], check: Callable[[FileStore], str]
) -> Kills:
    """Kill an operation on a copy of a store at its first step, its second, and so on until it ends.

    After each kill `check` says what is wrong; then the operation is done again, undisturbed, and `check`
    is asked again, with nothing but drafts left to tidy up.
    """
    found = Kills()
    while True:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(before, work)
        token = files._TOKEN
        with kill_at(found.steps + 1) as reached, contextlib.suppress(Killed):
            operation(work)
        if len(reached) <= found.steps:
            return found
        found.steps += 1
        files._TOKEN = f"{found.steps:08x}"  # the process is another one now
        at = f"killed at step {found.steps}, {reached[found.steps - 1]}"
        try:
            for moment, action in (("then", None), ("done again", operation), ("tidied up", _tidy)):
                if action is not None:
                    action(work)
                if wrong := check(FileStore(work)):
                    found.wrong.append(f"{at}, {moment}: {wrong}")
            if left := FileStore(work).verify():
                found.wrong.append(f"{at}, after the repair: {left}")
        finally:
            files._TOKEN = token


def _tidy(root: Path) -> None:
    FileStore(root).collect()
