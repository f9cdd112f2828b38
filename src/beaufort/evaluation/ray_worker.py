"""A Ray actor that does tasks.

It holds one model at a time and serves tasks of it, in a thread that other threads feed and listen to. It
writes answers to the store itself, and tells only what it has stored: tables never leave it. What it tells
comes as a stream that waits when nobody reads it, so that memory is bounded on both sides.
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
"""Messages that a worker holds for who listens, at most, and those of a report; then it waits."""
REPORTS = 4
"""Reports on their way from a worker, at most; then it waits."""

_WRITERS = 8
"""They wait for a disk or a network most of the time."""
_PAUSE_S = 0.5
"""How long a worker waits for another assignment before it brings those that it has to an end."""
_CELLS = 4096
"""Cells that a worker remembers: far more than it is ever given at a time."""


class WorkerSetup(NamedTuple):
    """What a worker needs to know of a run."""

    runner: TaskRunner
    store: Store
    provenance: Mapping[str, Any]


class Payload(NamedTuple):
    """A pickled setup, and what must be done before it is unpickled on another machine."""

    folder: str
    """The working folder: paths of models, data and the store are as seen from it."""
    modules: tuple[str, ...]
    """Plug-ins that were named; the setup may have conditions that they register."""
    pickled: bytes

    @classmethod
    def of(cls, setup: WorkerSetup) -> Payload:
        """Pickle a setup, or raise an error that says what cannot be pickled."""
        try:
            pickled = pickle.dumps(setup)
        except Exception as error:  # whatever the pickling of an object raises
            raise OptionError(
                f"with Ray, the dataset and the store must be picklable ({type(error).__name__}: {error})"
            ) from None
        return cls(str(Path.cwd()), tuple(named_modules()), pickled)

    def open(self) -> WorkerSetup:
        """The setup, in the folder that it was made in, if it is there."""
        with contextlib.suppress(OSError):  # on this machine it may be missing; then paths should be absolute
            os.chdir(self.folder)
        load_plugins(self.modules)
        setup: WorkerSetup = pickle.loads(self.pickled)
        return setup


class Begun(NamedTuple):
    """A assignment that a worker has begun."""

    number: int


class Gathered(NamedTuple):
    """The pieces of a cell were put together, or could not be."""

    cell: int


Told = Event | Begun | Gathered | Exception


class Report(NamedTuple):
    """What a worker tells: what came of its assignments since the last time, and how busy it was so far."""

    messages: list[Told]
    node: str
    seconds: float = 0.0
    """Since the first assignment."""
    idle: float = 0.0
    """Seconds of them in which it had nothing to do."""


class Worker:
    """Does tasks of one model after the other.

    Args:
        payload: the run.
        pause: how many seconds it collects what it has to tell; less if it has nothing left to do.
    """

    def __init__(self, payload: Payload, pause: float) -> None:
        import cv2

        cv2.setNumThreads(1)
        self._runner, self._store, self._provenance = payload.open()
        self._pause = pause
        self._assignments: queue.SimpleQueue[Assignment] = queue.SimpleQueue()
        self._next: Assignment | None = None
        self._held: int | None = None
        """The model that is loaded."""
        self._cells: dict[int, Cell] = {}
        self._told: queue.Queue[Told] = queue.Queue(MESSAGES)
        self._writers = ThreadPoolExecutor(_WRITERS)
        self._writing: deque[Future[None]] = deque()
        self._gatherer = ThreadPoolExecutor(1)
        self._start: float | None = None
        self._idle = 0.0
        threading.Thread(target=self._work, daemon=True).start()

    def offer(self, assignment: Assignment, cells: Mapping[int, Cell]) -> None:
        """Something more to do."""
        for number, cell in cells.items():
            self._cells[number] = self._cells.pop(number, cell)
        while len(self._cells) > _CELLS:
            del self._cells[next(iter(self._cells))]
        self._assignments.put(assignment)

    def gather(self, number: int, cell: Cell, pieces: Sequence[Piece]) -> None:
        """Put the pieces of a cell that is whole together, beside other work."""
        self._gatherer.submit(self._gather, number, cell, pieces)

    def reports(self) -> Iterator[Report]:
        """What is done, told now and then, until nobody listens any more."""
        node = _node_name()
        yield Report([], node)
        while True:
            messages = _summed(self._collected())
            seconds = 0.0 if self._start is None else time.monotonic() - self._start
            yield Report(messages, node, seconds, self._idle)

    def _collected(self) -> Iterator[Told]:
        """At least one message, and those that follow soon."""
        yield self._told.get()
        until = time.monotonic() + self._pause
        for _ in range(MESSAGES - 1):
            hungry = self._assignments.empty()
            left = until - time.monotonic()
            try:
                yield self._told.get_nowait() if hungry or left <= 0 else self._told.get(timeout=left)
            except queue.Empty:
                return

    def _work(self) -> None:
        try:
            while True:
                self._one_model()
        except Exception as error:
            self._told.put(portable(error))

    def _one_model(self) -> None:
        """Do assignments for one model, as long as there are any."""
        assignment = self._next or self._waited(None)
        if self._held not in (None, assignment.model):
            self._runner.models[self._held].unload()
        self._next, self._held = assignment, assignment.model
        runner = self._runner.for_model(assignment.model)
        writing = self._writing
        for message in runner.run(self._tasks(assignment.model)):
            if isinstance(message, PredictionRows):
                writing.append(self._writers.submit(self._keep, message))
                while len(writing) > 2 * _WRITERS or (writing and writing[0].done()):
                    writing.popleft().result()
            else:
                self._told.put(message)
        while writing and self._next is None:  # else they are written beside the next model's work
            writing.popleft().result()

    def _tasks(self, model: int) -> Iterator[Task]:
        """Tasks for a model until there is none; what is prepared for them is then finished."""
        while True:
            try:
                assignment, self._next = self._next or self._waited(_PAUSE_S), None
            except queue.Empty:
                return
            if assignment.model != model:
                self._next = assignment
                return
            self._told.put(Begun(assignment.number))
            yield _first_model(assignment.task)

    def _waited(self, timeout: float | None) -> Assignment:
        """The next assignment; the time until it comes is idle."""
        before = time.monotonic()
        try:
            return self._assignments.get(timeout=timeout)
        finally:
            now = time.monotonic()
            if self._start is None:
                self._start = now
            else:
                self._idle += now - before

    def _keep(self, made: PredictionRows) -> None:
        cell = self._cells[made.cell]
        piece = self._store.write(cell, made.start, made.table, {**self._provenance, "backend": made.backend})
        self._told.put(StoredPredictions(made.cell, piece, count_predictions(made.table)))

    def _gather(self, number: int, cell: Cell, pieces: Sequence[Piece]) -> None:
        try:
            self._store.gather(cell, {cell.fingerprint: list(pieces)})
        except StoreError as error:
            self._told.put(Note(f"files could not be put together, which changes no result ({error})"))
        except Exception as error:  # what a store of anyone's raises ends the run, as it does in a local one
            self._told.put(portable(error))
        self._told.put(Gathered(number))


def _node_name() -> str:
    """An address for people, and what tells two nodes of one machine apart."""
    import ray

    about: Any = ray.util  # not typed
    return f"{about.get_node_ip_address()} ({ray.get_runtime_context().get_node_id()[:8]})"


def _first_model(task: Task) -> Task:
    """The task for a job of one model."""
    parts = (part._replace(cells=tuple((number, 0) for number, _ in part.cells)) for part in task.parts)
    return replace(task, parts=tuple(parts))


def _summed(messages: Iterator[Told]) -> list[Told]:
    """Messages, with one for all batches of a work."""
    found: list[Told] = []
    batches: dict[int, BatchDone] = {}
    for message in messages:
        if isinstance(message, BatchDone):
            before = batches.get(message.cell, BatchDone(message.cell, 0, 0, 0))
            sums = (a + b for a, b in zip(before[1:], message[1:], strict=True))
            batches[message.cell] = BatchDone(message.cell, *sums)
        else:
            found.append(message)
    return [*batches.values(), *found]
