"""Engines: tasks run in this process or in worker processes."""

from __future__ import annotations

import contextlib
import enum
import os
import pickle
import signal
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from multiprocessing import connection, get_context, resource_tracker
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Protocol, Self

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.plugins import load_plugins
from beaufort.evaluation.runner import TaskRunner
from beaufort.evaluation.tasks import Event, Task

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Environment variables that set the number of threads of libraries at import."""

_PATIENCE_S = 5.0


class WorkerError(BeaufortError, RuntimeError):
    """A worker process ended before its work was done."""


@dataclass(frozen=True)
class NodeSpeed:
    """Statistics of a node of a cluster."""

    predictions: int
    """Number of stored predictions."""
    seconds: float
    """Seconds since its first worker started."""
    busy: float
    """Fraction of time in which its workers were busy."""

    @property
    def rate(self) -> float:
        """Predictions per second."""
        return self.predictions / self.seconds if self.seconds else 0.0


class Engine(Protocol):
    """Schedules tasks in this process, in worker processes, or on a cluster."""

    one_model: bool
    """Whether each task is for one model, because workers load one at a time; models have separate queues."""

    @property
    def nodes(self) -> Mapping[str, NodeSpeed]:
        """Statistics of nodes by name; empty if all work is done on this machine."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def run(self, queues: Iterable[Iterable[Task]]) -> Generator[Event]:
        """Run the tasks in any order, and yield an event for each finished batch and part."""


class LocalEngine:
    """Runs tasks in the calling process."""

    one_model = False
    nodes: Mapping[str, NodeSpeed] = {}

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, queues: Iterable[Iterable[Task]]) -> Generator[Event]:
        return self._runner.run(chain.from_iterable(queues))


class ProcessEngine:
    """Runs tasks in worker processes with one thread per library, which load the models themselves.

    Workers request tasks and send predictions back; only this process writes to the store. If a worker dies
    or this process is interrupted, all of them end.
    """

    one_model = False
    nodes: Mapping[str, NodeSpeed] = {}

    def __init__(self, runner: TaskRunner, count: int) -> None:
        runner = runner.for_worker()
        try:
            self._runner = pickle.dumps(runner)
        except Exception as error:  # pickling can raise any error
            raise OptionError(
                f"engine processes requires a dataset that can be pickled ({type(error).__name__}: {error}); "
                "pass it as a string, or use engine local"
            ) from None
        self._count = count
        self._workers: dict[Any, BaseProcess] = {}
        """Processes by the parent's end of their pipe."""
        self._informed: set[Any] = set()
        """Pipes of workers that have the runner."""

    def __enter__(self) -> Self:
        context = get_context("spawn")
        with _one_thread_each(), _interrupts_held_back():
            for number in range(self._count):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_serve, args=(theirs,), daemon=True, name=f"beaufort worker {number + 1}"
                )
                process.start()
                theirs.close()  # so that the pipe closes when the process ends
                self._workers[ours] = process
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for ours, process in self._workers.items():
            if kind is not None:
                process.terminate()
            ours.close()  # an idle worker then exits
        for process in self._workers.values():
            process.join(_PATIENCE_S)
            if process.is_alive():
                process.kill()
                process.join()
        self._workers.clear()

    def run(self, queues: Iterable[Iterable[Task]]) -> Generator[Event]:
        rest = chain.from_iterable(queues)
        busy = set(self._workers)
        for ours in busy:
            self._send(ours, b"" if ours in self._informed else self._runner)
        self._informed |= busy
        while busy:
            for ours in connection.wait(busy):
                match self._receive(ours):
                    case _Signal.WANTS_TASK:
                        self._send(ours, pickle.dumps(next(rest, None)))
                    case _Signal.DONE:
                        busy.discard(ours)
                    case BaseException() as error:
                        raise error
                    case message:
                        yield message

    def _send(self, ours: Any, content: bytes) -> None:
        try:
            ours.send_bytes(content)
        except OSError:
            raise self._dead(ours) from None

    def _receive(self, ours: Any) -> Any:
        try:
            return ours.recv()
        except (EOFError, OSError):
            raise self._dead(ours) from None

    def _dead(self, ours: Any) -> WorkerError:
        process = self._workers[ours]
        process.join(_PATIENCE_S)
        code = process.exitcode
        how = f"by the signal {signal.Signals(-code).name}" if code and code < 0 else f"with exit code {code}"
        return WorkerError(
            f"a worker process ended {how} before its work was done. Stored predictions are kept, and the "
            "same run computes the rest. If memory ran out, use fewer processes. In a script, call evaluate "
            "under `if __name__ == '__main__':`"
        )


class _Signal(enum.Enum):
    """Control messages of a worker."""

    WANTS_TASK = enum.auto()
    DONE = enum.auto()


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Limit libraries of processes started in this context to one thread."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Delay interrupts while processes are started."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # otherwise it unblocks interrupts when the first process needs it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(theirs: Any) -> None:
    """Run tasks in a worker, with the runner that is received first, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    import cv2

    cv2.setNumThreads(1)
    load_plugins()
    runner: TaskRunner | None = None
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            packed = theirs.recv_bytes()
            try:
                runner = runner or pickle.loads(packed)
                for event in runner.run(_tasks(theirs)):
                    theirs.send(event)
            except (EOFError, ConnectionError):
                raise
            except Exception as error:
                theirs.send(portable(error))
            theirs.send(_Signal.DONE)


def _tasks(theirs: Any) -> Iterator[Task]:
    while True:
        theirs.send(_Signal.WANTS_TASK)
        task = pickle.loads(theirs.recv_bytes())
        if task is None:
            return
        yield task


def portable(error: Exception) -> Exception:
    """Return an error that can be pickled, with its traceback unless it is a `BeaufortError`."""
    if not isinstance(error, BeaufortError):
        error.add_note("in a worker process:\n" + traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # pickling can raise any error
        return WorkerError(f"{type(error).__name__}: {error}")
    return error
