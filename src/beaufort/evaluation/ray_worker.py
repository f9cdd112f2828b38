"""A Ray actor that does units of work.

It holds one model at a time and serves units of it, in a thread that other threads feed and listen to. It
writes answers to the store itself, and tells only what it has stored: tables never leave it. What it tells
comes as a stream that waits when nobody reads it, so that memory is bounded on both sides.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from beaufort.evaluation.dispatch import Ticket
from beaufort.evaluation.engines import portable
from beaufort.evaluation.keeper import count_answers
from beaufort.evaluation.parcel import Parcel, unpack
from beaufort.evaluation.work import Answered, Made, Message, Note, Unit, Written, work
from beaufort.store import Cell, Piece, StoreError

MESSAGES = 256
"""Messages that a worker holds for who listens, at most, and those of a report; then it waits."""
REPORTS = 4
"""Reports on their way from a worker, at most; then it waits."""

_WRITERS = 8
"""They wait for a disk or a network most of the time."""
_PAUSE_S = 0.5
"""How long a worker waits for another ticket before it brings those that it has to an end."""
_CELLS = 4096
"""Cells that a worker remembers: far more than it is ever given at a time."""


class Begun(NamedTuple):
    """A ticket that a worker has begun."""

    number: int


class Gathered(NamedTuple):
    """The pieces of a cell were put together, or could not be."""

    work: int


Told = Message | Begun | Gathered | Exception


class Report(NamedTuple):
    """What a worker tells: what came of its tickets since the last time, and how busy it was so far."""

    messages: list[Told]
    node: str
    seconds: float = 0.0
    """Since the first ticket."""
    idle: float = 0.0
    """Seconds of them in which it had nothing to do."""


class Worker:
    """Does units of one model after the other.

    Args:
        parcel: what there is to do.
        pause: how many seconds it collects what it has to tell; less if it has nothing left to do.
    """

    def __init__(self, parcel: Parcel, pause: float) -> None:
        import cv2

        cv2.setNumThreads(1)
        self._job, self._store, self._provenance = unpack(parcel)
        self._pause = pause
        self._tickets: queue.SimpleQueue[Ticket] = queue.SimpleQueue()
        self._next: Ticket | None = None
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

    def offer(self, ticket: Ticket, cells: Mapping[int, Cell]) -> None:
        """Something more to do."""
        for number, cell in cells.items():
            self._cells[number] = self._cells.pop(number, cell)
        while len(self._cells) > _CELLS:
            del self._cells[next(iter(self._cells))]
        self._tickets.put(ticket)

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
            hungry = self._tickets.empty()
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
        """Do tickets for one model, as long as there are any."""
        ticket = self._next or self._waited(None)
        if self._held not in (None, ticket.model):
            self._job.models[self._held].let_go()
        self._next, self._held = ticket, ticket.model
        spaces = tuple((each[ticket.model],) for each in self._job.spaces)
        job = replace(self._job, models=(self._job.models[ticket.model],), spaces=spaces)
        writing = self._writing
        for message in work(job, self._units(ticket.model)):
            if isinstance(message, Made):
                writing.append(self._writers.submit(self._keep, message))
                while len(writing) > 2 * _WRITERS or (writing and writing[0].done()):
                    writing.popleft().result()
            else:
                self._told.put(message)
        while writing and self._next is None:  # else they are written beside the next model's work
            writing.popleft().result()

    def _units(self, model: int) -> Iterator[Unit]:
        """Tickets for a model until there is none; what is prepared for them is then brought to its end."""
        while True:
            try:
                ticket, self._next = self._next or self._waited(_PAUSE_S), None
            except queue.Empty:
                return
            if ticket.model != model:
                self._next = ticket
                return
            self._told.put(Begun(ticket.number))
            yield _first_model(ticket.unit)

    def _waited(self, timeout: float | None) -> Ticket:
        """The next ticket; the time until it comes is idle."""
        before = time.monotonic()
        try:
            return self._tickets.get(timeout=timeout)
        finally:
            now = time.monotonic()
            if self._start is None:
                self._start = now
            else:
                self._idle += now - before

    def _keep(self, made: Made) -> None:
        cell = self._cells[made.work]
        piece = self._store.write(cell, made.start, made.table, {**self._provenance, "backend": made.backend})
        self._told.put(Written(made.work, piece, count_answers(made.table)))

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


def _first_model(unit: Unit) -> Unit:
    """The unit for a job of one model."""
    parts = (part._replace(works=tuple((number, 0) for number, _ in part.works)) for part in unit.parts)
    return replace(unit, parts=tuple(parts))


def _summed(messages: Iterator[Told]) -> list[Told]:
    """Messages, with one for all batches of a work."""
    found: list[Told] = []
    batches: dict[int, Answered] = {}
    for message in messages:
        if isinstance(message, Answered):
            before = batches.get(message.work, Answered(message.work, 0, 0, 0))
            sums = (a + b for a, b in zip(before[1:], message[1:], strict=True))
            batches[message.work] = Answered(message.work, *sums)
        else:
            found.append(message)
    return [*batches.values(), *found]
