"""Where tasks are done: in this process, or in several that are started for it."""

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
"""Environment variables from which libraries take their number of threads when they are imported."""

_PATIENCE_S = 5.0


class WorkerError(BeaufortError, RuntimeError):
    """A worker process that ended before its work was done."""


@dataclass(frozen=True)
class NodeSpeed:
    """What a machine of a cluster has done so far."""

    predictions: int
    """Number of stored predictions."""
    seconds: float
    """Since its first worker began."""
    busy: float
    """The fraction of their time in which its workers had something to do."""

    @property
    def rate(self) -> float:
        """Predictions per second."""
        return self.predictions / self.seconds if self.seconds else 0.0


class Engine(Protocol):
    """Schedules tasks: in this process, in several, or elsewhere."""

    one_model: bool
    """Whether a task is for one model only, because workers hold one at a time; each has its queue then."""

    @property
    def nodes(self) -> Mapping[str, NodeSpeed]:
        """The machines that have done something, by name; none if all work is done on this one."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def run(self, queues: Iterable[Iterable[Task]]) -> Generator[Event]:
        """Do the tasks, in any order, with an event for each batch and each part that is done."""


class LocalEngine:
    """Does the work in the calling process."""

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
    """Worker processes with one thread each for every library, which load the models themselves.

    A worker asks for a task whenever it wants one, and sends back what is to be stored: only this process
    writes. If one dies, or this process is interrupted, all end.
    """

    one_model = False
    nodes: Mapping[str, NodeSpeed] = {}

    def __init__(self, runner: TaskRunner, count: int) -> None:
        runner = runner.for_worker()
        try:
            self._runner = pickle.dumps(runner)
        except Exception as error:  # whatever the pickling of an object raises
            raise OptionError(
                f"with several processes, the dataset must be picklable ({type(error).__name__}: {error}); "
                "pass it as text, or use one process"
            ) from None
        self._count = count
        self._workers: dict[Any, BaseProcess] = {}
        """By our end of the pipe."""
        self._informed: set[Any] = set()
        """Those that have the runner."""

    def __enter__(self) -> Self:
        context = get_context("spawn")
        with _one_thread_each(), _interrupts_held_back():
            for number in range(self._count):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_serve, args=(theirs,), daemon=True, name=f"beaufort worker {number + 1}"
                )
                process.start()
                theirs.close()  # so that the end of the process is the end of the pipe
                self._workers[ours] = process
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for ours, process in self._workers.items():
            if kind is not None:
                process.terminate()
            ours.close()  # one that is idle ends by itself
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
            f"a worker process ended {how} before its work was done. What was stored stays; the same run "
            "again does the rest. If memory ran out, use fewer processes; a script must start a run under "
            "`if __name__ == '__main__':`"
        )


class _Signal(enum.Enum):
    """Control messages of a worker."""

    WANTS_TASK = enum.auto()
    DONE = enum.auto()


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are started meanwhile use one thread in each library."""
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
    """Block interrupts while processes are started; one that comes meanwhile is handled after."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # or it lets interrupts through when the first process needs it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(theirs: Any) -> None:
    """What a worker does: tasks for the runner that it is sent first, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
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
    """An error that can be sent, with its traceback unless it speaks for itself."""
    if not isinstance(error, BeaufortError):
        error.add_note("in a worker process:\n" + traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an error of anyone's may refuse in its own way
        return WorkerError(f"{type(error).__name__}: {error}")
    return error
