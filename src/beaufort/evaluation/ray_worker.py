"""A Ray actor that runs tasks.

It loads one model at a time and runs its tasks in a thread. It writes predictions to the store itself, and
reports what it has stored. Reports are a stream that blocks while it is not read, so that memory is bounded.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from beaufort._core.errors import OptionError
from beaufort._core.plugins import load_plugins, named_modules
from beaufort.evaluation.engines import portable
from beaufort.evaluation.result_writer import count_predictions
from beaufort.evaluation.runner import TaskRunner
from beaufort.evaluation.task_queue import Assignment
from beaufort.evaluation.tasks import BatchDone, Event, Note, PredictionRows, StoredPredictions, Task
from beaufort.store import Cell, Piece, Store, StoreError

MESSAGES = 256
"""Maximum number of queued messages, and of messages per report; then the worker waits."""
REPORTS = 4
"""Maximum number of reports in flight; then the worker waits."""

_WRITERS = 8
"""Number of writer threads, which mostly wait for a disk or a network."""
_PAUSE_S = 0.5
"""Seconds to wait for another assignment before the current ones are finished."""
_CELLS = 4096
"""Maximum number of cells that a worker remembers; far more than it has at a time."""


class WorkerSetup(NamedTuple):
    """What a worker needs of a run."""

    runner: TaskRunner
    store: Store
    provenance: Mapping[str, Any]


class Payload(NamedTuple):
    """A pickled setup, and what is needed to unpickle it on another machine."""

    folder: str
    """Working directory, to which paths of models, data and the store are relative."""
    modules: tuple[str, ...]
    """Plug-in modules given by the user, which may register conditions."""
    pickled: bytes

    @classmethod
    def of(cls, setup: WorkerSetup) -> Payload:
        """Pickle a setup."""
        try:
            pickled = pickle.dumps(setup)
        except Exception as error:  # pickling can raise any error
            raise OptionError(
                "engine ray requires a dataset and a store that can be pickled "
                f"({type(error).__name__}: {error})"
            ) from None
        return cls(str(Path.cwd()), tuple(named_modules()), pickled)

    def open(self) -> WorkerSetup:
        """Return the setup; change to its working directory if that exists."""
        with contextlib.suppress(OSError):  # if it is missing here, paths should be absolute
            os.chdir(self.folder)
        load_plugins(self.modules)
        setup: WorkerSetup = pickle.loads(self.pickled)
        return setup


class Started(NamedTuple):
    """A worker has started an assignment."""

    number: int


class Gathered(NamedTuple):
    """The pieces of a cell were gathered, or could not be."""

    cell: int


Message = Event | Started | Gathered | Exception


class Report(NamedTuple):
    """A report of a worker: results since the last report, and its times."""

    messages: list[Message]
    node: str
    seconds: float = 0.0
    """Seconds since the first assignment."""
    idle: float = 0.0
    """Seconds without an assignment since then."""


class Worker:
    """Runs tasks, one model after the other.

    Args:
        payload: the run.
        pause: seconds between reports; fewer if the worker has nothing left to do.
    """

    def __init__(self, payload: Payload, pause: float) -> None:
        import cv2

        cv2.setNumThreads(1)
        self._runner, self._store, self._provenance = payload.open()
        self._pause = pause
        self._assignments: queue.SimpleQueue[Assignment] = queue.SimpleQueue()
        self._next: Assignment | None = None
        self._held: int | None = None
        """Index of the loaded model."""
        self._cells: dict[int, Cell] = {}
        self._messages: queue.Queue[Message] = queue.Queue(MESSAGES)
        self._writers = ThreadPoolExecutor(_WRITERS)
        self._writing: deque[Future[None]] = deque()
        self._gatherer = ThreadPoolExecutor(1)
        self._start: float | None = None
        self._idle = 0.0
        threading.Thread(target=self._work, daemon=True).start()

    def offer(self, assignment: Assignment, cells: Mapping[int, Cell]) -> None:
        """Add an assignment."""
        for number, cell in cells.items():
            self._cells[number] = self._cells.pop(number, cell)
        while len(self._cells) > _CELLS:
            del self._cells[next(iter(self._cells))]
        self._assignments.put(assignment)

    def gather(self, number: int, cell: Cell, pieces: Sequence[Piece]) -> None:
        """Gather the pieces of a complete cell in the background."""
        self._gatherer.submit(self._gather, number, cell, pieces)

    def reports(self) -> Iterator[Report]:
        """Yield reports until the stream is closed."""
        node = _node_name()
        yield Report([], node)
        while True:
            messages = _combined(self._collected())
            seconds = 0.0 if self._start is None else time.monotonic() - self._start
            yield Report(messages, node, seconds, self._idle)

    def _collected(self) -> Iterator[Message]:
        """Yield at least one message, and those that follow within the pause."""
        yield self._messages.get()
        until = time.monotonic() + self._pause
        for _ in range(MESSAGES - 1):
            idle = self._assignments.empty()
            left = until - time.monotonic()
            try:
                yield self._messages.get_nowait() if idle or left <= 0 else self._messages.get(timeout=left)
            except queue.Empty:
                return

    def _work(self) -> None:
        try:
            while True:
                self._one_model()
        except Exception as error:
            self._messages.put(portable(error))

    def _one_model(self) -> None:
        """Run assignments of one model until there are none."""
        assignment = self._next or self._next_assignment(None)
        if self._held not in (None, assignment.model):
            self._runner.models[self._held].unload()
        self._next, self._held = assignment, assignment.model
        runner = self._runner.for_model(assignment.model)
        writing = self._writing
        for message in runner.run(self._tasks(assignment.model)):
            if isinstance(message, PredictionRows):
                writing.append(self._writers.submit(self._store_rows, message))
                while len(writing) > 2 * _WRITERS or (writing and writing[0].done()):
                    writing.popleft().result()
            else:
                self._messages.put(message)
        while writing and self._next is None:  # otherwise they are written while the next model runs
            writing.popleft().result()

    def _tasks(self, model: int) -> Iterator[Task]:
        """Yield the tasks of a model until there are none."""
        while True:
            try:
                assignment, self._next = self._next or self._next_assignment(_PAUSE_S), None
            except queue.Empty:
                return
            if assignment.model != model:
                self._next = assignment
                return
            self._messages.put(Started(assignment.number))
            yield _first_model(assignment.task)

    def _next_assignment(self, timeout: float | None) -> Assignment:
        """Return the next assignment; the waiting time counts as idle."""
        before = time.monotonic()
        try:
            return self._assignments.get(timeout=timeout)
        finally:
            now = time.monotonic()
            if self._start is None:
                self._start = now
            else:
                self._idle += now - before

    def _store_rows(self, made: PredictionRows) -> None:
        cell = self._cells[made.cell]
        piece = self._store.write(cell, made.start, made.table, {**self._provenance, "backend": made.backend})
        self._messages.put(StoredPredictions(made.cell, piece, count_predictions(made.table)))

    def _gather(self, number: int, cell: Cell, pieces: Sequence[Piece]) -> None:
        try:
            self._store.gather(cell, {cell.fingerprint: list(pieces)})
        except StoreError as error:
            self._messages.put(Note(f"cannot gather files, which does not change results ({error})"))
        except Exception as error:  # a store can raise any error, which ends the run
            self._messages.put(portable(error))
        self._messages.put(Gathered(number))


def _node_name() -> str:
    """Return the address and id of this node."""
    import ray

    about: Any = ray.util  # not typed
    return f"{about.get_node_ip_address()} ({ray.get_runtime_context().get_node_id()[:8]})"


def _first_model(task: Task) -> Task:
    """Return the task for a runner of one model."""
    parts = (part._replace(cells=tuple((number, 0) for number, _ in part.cells)) for part in task.parts)
    return replace(task, parts=tuple(parts))


def _combined(messages: Iterator[Message]) -> list[Message]:
    """Return messages, with all batches of a cell combined into one."""
    found: list[Message] = []
    batches: dict[int, BatchDone] = {}
    for message in messages:
        if isinstance(message, BatchDone):
            before = batches.get(message.cell, BatchDone(message.cell, 0, 0, 0))
            sums = (a + b for a, b in zip(before[1:], message[1:], strict=True))
            batches[message.cell] = BatchDone(message.cell, *sums)
        else:
            found.append(message)
    return [*batches.values(), *found]
