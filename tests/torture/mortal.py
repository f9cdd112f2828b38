"""A process that carries out commands in children of its own, which can be killed, from without or within.

A child is a copy of this process, which has imported everything: a command begins at once. Of itself it is
the ordinary command. Before the `step`-th time that it would change anything below a folder (open a file for
writing, write, force to the disk, rename, delete, make a folder) it kills itself with SIGKILL.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import itertools
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numba
from typer.testing import CliRunner

from beaufort.cli._app import app, main
from beaufort.evaluation import tasks

__all__ = ["ENVIRONMENT", "MORE"]

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "200"}
MORE = "TORTURE_IMPORTS"
"""Environment variable with the names of modules that commands will need, beside the usual ones."""
BLOCK = 16
"""Images in a block of a run: small, so that there are blocks to be put together."""

_IMPORTS = (
    *(
        f"beaufort.{name}"
        for name in ("evaluation", "data.writers", "models.onnx", "report", "results", "store")
    ),
    *("duckdb", "onnxruntime", "pyarrow.parquet", "PIL.PngImagePlugin"),
)
_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Steps:
    """Counts what the disk can see, and kills this process when it is time."""

    def __init__(self, folder: str, last: int, message: str) -> None:
        self.folder, self.last, self.log, self.count = folder, last, message, 0

    def watch(self) -> None:
        """From now on."""
        fsync, opened = os.fsync, io.open

        def counted_fsync(fd: Any) -> None:
            descriptor = fd if isinstance(fd, int) else fd.fileno()
            self.before("fsync", Path(f"/proc/self/fd/{descriptor}").readlink())
            fsync(fd)

        def counted_open(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            if mode in ("xb", "wb") and self.concerns(file):
                return Writer(io.FileIO(file, mode[0]), self)
            return opened(file, mode, *args, **options)

        os.fsync, io.open, builtins.open = counted_fsync, counted_open, counted_open
        sys.addaudithook(self.audit)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Audit events report opening, renaming and deleting by any code."""
        if event in _EVENTS or (event == "open" and (arguments[2] or 0) & _WRITING):
            self.before(event, arguments[0])

    def concerns(self, path: Any) -> bool:
        return not isinstance(path, int) and os.path.abspath(os.fsdecode(path)).startswith(self.folder)  # noqa: PTH100

    def before(self, event: str, path: Any) -> None:
        """Kill this process if the step that comes now is the last one."""
        if self.counts(path):
            self.kill(event, path)

    def counts(self, path: Any) -> bool:
        self.count += self.concerns(path)
        return self.count == self.last and self.concerns(path)

    def kill(self, event: str, path: Any) -> None:
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, f"{event} {os.fsdecode(path)}".encode())
        os.kill(os.getpid(), signal.SIGKILL)


class Writer(io.BufferedWriter):
    """A file whose last writing stops half way."""

    def __init__(self, raw: io.FileIO, steps: Steps) -> None:
        super().__init__(raw)
        self._steps = steps

    def write(self, content: Any) -> int:
        if self._steps.counts(self.name):
            super().write(memoryview(content).cast("B")[: memoryview(content).nbytes // 2])
            self.flush()
            self._steps.kill("write", self.name)
        return super().write(content)


def carry_out(arguments: list[str], output: str, folder: str = "", step: int = 0, back: int = 0) -> None:
    """Run a command in this process, and exit.

    Args:
        arguments: those of `beaufort`.
        output: the file that takes what it says.
        folder: where steps are counted.
        step: before which of them this process kills itself; 0 for none.
        back: seconds by which the clock is set back again and again.
    """
    tasks.BLOCK = BLOCK
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    sys.argv = ["beaufort", *arguments]
    if back:
        set_clock_back(back)
    if step:
        Steps(folder, step, f"{output}.step").watch()
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    os._exit(code)  # libraries that were loaded before the fork must not be unloaded in its copies


def set_clock_back(seconds: int) -> None:
    """Let the time of day jump back after every few looks at it, as a clock does that is set by others."""
    looks, real = itertools.count(1), time.time_ns

    def now() -> int:
        return real() - next(looks) // 5 * seconds * 10**9

    time.time_ns = now
    time.time = lambda: now() / 1e9


def _warm_up() -> None:
    """Do once what every child would have to do again: imports, and what Numba makes ready."""
    for name in _IMPORTS:
        importlib.import_module(name)
    for name in (
        "pandas",
        "pydantic",
        *os.environ.get(MORE, "").split(),
    ):  # imported by libraries of ours, where they are installed
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    numba.njit(lambda x: x)(1)
    CliRunner().invoke(app, ["--version"])


def serve() -> None:
    """Execute requests from stdin, in lines of JSON; report the number of each child, and how it ended."""
    _warm_up()
    predicted = os.fdopen(os.dup(1), "w")
    print(len(list(Path("/proc/self/task").iterdir())), file=predicted, flush=True)
    for line in sys.stdin:
        if not (child := os.fork()):
            carry_out(**json.loads(line))
        print(child, file=predicted, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=predicted, flush=True)


if __name__ == "__main__":
    serve()
