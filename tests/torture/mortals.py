"""Commands in processes that can be killed, with everything that they start."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.torture.mortal import ENVIRONMENT

__all__ = ["Mortals", "family", "kill"]

ROOT = Path(__file__).resolve().parent.parent.parent


class Mortals:
    """A process that has imported everything, and runs commands in forks of itself."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.mortal"],
            cwd=ROOT,
            env=os.environ | ENVIRONMENT | dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.threads = self._response()

    def __enter__(self) -> Mortals:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the process go."""
        self._server.communicate()

    def start(self, arguments: list[str], **requested: Any) -> int:
        """Begin a command; the number of its process."""
        assert self._server.stdin
        self._server.stdin.write(json.dumps({"arguments": arguments, **requested}) + "\n")
        self._server.stdin.flush()
        return self._response()

    def wait(self) -> int:
        """The exit code of the command."""
        return self._response()

    def _response(self) -> int:
        assert self._server.stdout
        return int(self._server.stdout.readline())


def kill(process: int) -> None:
    """SIGKILL; that it is gone already is fine."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def family(process: int) -> list[int]:
    """A process and all that it started, and so on."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found, left = [], [process]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            yield int(folder.name), int((folder / "stat").read_text().rpartition(")")[2].split()[1])
