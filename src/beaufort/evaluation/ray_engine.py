"""Units of work done by Ray actors, on one machine or many.

An actor holds one model at a time and serves units of it. It writes answers to the store itself, and tells
this process what it has stored: tables never pass through here. Its messages come as a stream that waits when
nobody reads it, so that memory is bounded on both sides. What an actor had not stored when it died is done
again by others.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, NamedTuple, Self

from beaufort.errors import MissingExtraError, OptionError
from beaufort.evaluation.dispatch import Dispatch, Ticket
from beaufort.evaluation.engines import WorkerError, portable
from beaufort.evaluation.keeper import count_answers
from beaufort.evaluation.nodes import check_nodes
from beaufort.evaluation.work import Job, Made, Message, Stored, Unit, work
from beaufort.store import Cell, Store

__all__ = ["Ray", "RayOptions"]

_WRITERS = 2
_REPORT_S = 0.1
"""How long a worker collects what it has to tell."""
_PAUSE_S = 0.5
"""How long a worker waits for another ticket before it brings those that it has to an end."""
_WAITING = 256
"""Messages that a worker holds for this process, at most; then it waits."""
_REPORTS = 4
"""Reports on their way from a worker, at most; then it waits."""
_CELLS = 4096
"""Cells that a worker remembers: far more than it is ever given at a time."""
_IDLE_DEATHS = 3
"""Workers that end one after the other without having stored anything, for each worker there is, at most."""


@dataclass(frozen=True)
class RayOptions:
    """Where workers run, and what each is given.

    Args:
        address: of a cluster that runs, `auto` for the one that this machine belongs to; None starts one on
            this machine, for the run alone.
        workers: how many; as many as there is room for, with one processor left free, if None.
        cpus: processors of a worker.
        gpus: GPUs of a worker; a share such as 0.25 lets four of them use one.
    """

    address: str | None = None
    workers: int | None = None
    cpus: float = 1
    gpus: float = 0

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise OptionError(f"workers must be a whole number from 1, got {self.workers!r}")
        if not self.cpus > 0:
            raise OptionError(f"cpus must be a number above 0, got {self.cpus!r}")
        if not self.gpus >= 0:
            raise OptionError(f"gpus must be a number from 0, got {self.gpus!r}")


class _Begun(NamedTuple):
    """A ticket that a worker has begun."""

    number: int


class Report(NamedTuple):
    """What a worker tells: what came of its tickets, and which it has begun."""

    messages: list[Message | _Begun | Exception]
    node: str


class Ray:
    """Actors of a cluster. Without one that runs, one of this machine is started, and stopped at the end."""

    one_model = True

    def __init__(
        self,
        job: Job,
        options: RayOptions,
        store: Store,
        cells: Mapping[int, Cell],
        provenance: Mapping[str, Any],
    ) -> None:
        for model in job.models:
            model.check_pickle()
        self._options = options
        self._cells = cells
        alone = tuple(model.for_one_thread() for model in job.models) if not options.gpus else job.models
        self._given = (replace(job, models=alone, jobs=max(1, int(options.cpus))), store, dict(provenance))
        self._streams: dict[Any, Any] = {}
        """The actor of each stream of reports."""
        self._present: set[Any] = set()
        """Streams whose actor has reported: others may wait for a place in the cluster for ever."""
        self._ours = False
        self.answers: dict[str, int] = {}
        """Answers that came from each node."""

    def __enter__(self) -> Self:
        ray = _ray()
        if not ray.is_initialized():
            self._ours = True
            _start(self._options)
        try:
            job, store, provenance = self._given
            try:
                packed = pickle.dumps((job, store, provenance))
            except Exception as error:  # an object may refuse in its own way
                raise OptionError(
                    "with Ray, the data set and the store must be ones that can be pickled, got one that "
                    f"cannot ({type(error).__name__}: {error})"
                ) from None
            check_nodes(job, store, self._options.cpus, self._options.gpus)
            self._packed = ray.put(packed)
            for _ in range(self._options.workers or _room(self._options)):
                self._hire()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ray = _ray()
        for actor in self._streams.values():
            with contextlib.suppress(Exception):  # the cluster may be gone
                ray.kill(actor)
        self._streams.clear()
        self._present.clear()
        if self._ours:
            ray.shutdown()

    def work(self, units: Iterable[Unit]) -> Generator[Message]:
        ray = _ray()
        dispatch = Dispatch(units)
        deaths = 0
        self._offer(dispatch)
        while not dispatch.finished:
            ready, _ = ray.wait(list(self._streams), num_returns=1, timeout=1.0)
            for stream in ready:
                try:
                    report = ray.get(next(stream))
                except (ray.exceptions.RayActorError, ray.exceptions.RayTaskError, StopIteration) as error:
                    deaths += 1
                    self._streams.pop(stream)
                    self._present.discard(stream)
                    yield from dispatch.lost(stream, _reason(error))
                    if deaths > _IDLE_DEATHS * (len(self._streams) + 1):
                        raise WorkerError(
                            "workers end before they store anything; the last one says: " + _reason(error)
                        ) from None
                    self._hire()
                    continue
                self._present.add(stream)
                for message in report.messages:
                    match message:
                        case Exception():
                            raise message
                        case _Begun():
                            dispatch.begun(stream, 1)
                            continue
                        case Stored(work, piece, _):
                            deaths = 0
                            rows = piece.stop - piece.start
                            self.answers[report.node] = self.answers.get(report.node, 0) + rows
                            dispatch.stored(stream, work, piece.start, piece.stop)
                    yield message
            self._offer(dispatch)

    def _hire(self) -> None:
        options = self._options
        actor: Any = (
            _ray()
            .remote(_Worker)
            .options(num_cpus=options.cpus, num_gpus=options.gpus, max_restarts=0, max_concurrency=2)
            .remote(self._packed)
        )
        reports = actor.reports.options(num_returns="streaming", _generator_backpressure_num_objects=_REPORTS)
        self._streams[reports.remote()] = actor

    def _offer(self, dispatch: Dispatch) -> None:
        for stream in self._present:
            actor = self._streams[stream]
            while (ticket := dispatch.take(stream)) is not None:
                numbers = {number for part in ticket.unit.parts for number, _ in part.works}
                actor.offer.remote(ticket, {number: self._cells[number] for number in numbers})


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError("the engine ray needs Ray: pip install 'beaufort[ray]'") from None
    return ray


def _start(options: RayOptions) -> None:
    ray = _ray()
    here: dict[str, Any] = {} if options.address else {"include_dashboard": False}
    try:
        ray.init(address=options.address, log_to_driver=False, logging_level="error", **here)
    except ConnectionError as error:
        raise OptionError(
            f"there is no Ray cluster at {options.address!r}: {error}; start one with `ray start --head`, or "
            "leave the address out to use this machine alone"
        ) from None


def _room(options: RayOptions) -> int:
    """How many workers the cluster has room for, with one processor left free."""
    resources = _ray().cluster_resources()
    room = (resources.get("CPU", 1) - 1) / options.cpus
    if options.gpus:
        room = min(room, resources.get("GPU", 0) / options.gpus)
    return max(1, int(room))


def _reason(error: BaseException) -> str:
    """The first line of what Ray says, which may be pages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    wanted = [line for line in lines if "exit" in line.lower() or "died" in line.lower()]
    return (wanted or lines or [type(error).__name__])[0][:300]


class _Worker:
    """An actor: does units of one model after the other, in a thread that others feed and listen to."""

    def __init__(self, packed: bytes) -> None:
        import cv2

        cv2.setNumThreads(1)
        self._job, self._store, self._provenance = pickle.loads(packed)
        self._tickets: queue.SimpleQueue[Ticket] = queue.SimpleQueue()
        self._next: Ticket | None = None
        self._held: int | None = None
        """The model that is loaded."""
        self._cells: dict[int, Cell] = {}
        self._told: queue.Queue[Message | _Begun | Exception] = queue.Queue(_WAITING)
        threading.Thread(target=self._work, daemon=True).start()

    def offer(self, ticket: Ticket, cells: dict[int, Cell]) -> None:
        """Something more to do."""
        for number, cell in cells.items():
            self._cells[number] = self._cells.pop(number, cell)
        while len(self._cells) > _CELLS:
            del self._cells[next(iter(self._cells))]
        self._tickets.put(ticket)

    def reports(self) -> Iterator[Report]:
        """What is done, told now and then, until nobody listens any more."""
        node = _node_name()
        yield Report([], node)
        while True:
            messages = [self._told.get()]
            until = time.monotonic() + _REPORT_S
            while len(messages) < _WAITING and (left := until - time.monotonic()) > 0:
                try:
                    messages.append(self._told.get(timeout=left))
                except queue.Empty:
                    break
            yield Report(messages, node)

    def _work(self) -> None:
        try:
            with ThreadPoolExecutor(_WRITERS) as writers:
                while True:
                    self._one_model(writers)
        except Exception as error:
            self._told.put(portable(error))

    def _one_model(self, writers: ThreadPoolExecutor) -> None:
        """Do tickets for one model, as long as there are any."""
        ticket = self._next or self._tickets.get()
        if self._held not in (None, ticket.model):
            self._job.models[self._held].let_go()
        self._next, self._held = ticket, ticket.model
        spaces = tuple((each[ticket.model],) for each in self._job.spaces)
        job = replace(self._job, models=(self._job.models[ticket.model],), spaces=spaces)
        writing: deque[Future[None]] = deque()
        for message in work(job, self._units(ticket.model)):
            if isinstance(message, Made):
                writing.append(writers.submit(self._keep, message))
                while len(writing) > 2 * _WRITERS or (writing and writing[0].done()):
                    writing.popleft().result()
            else:
                self._told.put(message)
        for written in writing:
            written.result()

    def _units(self, model: int) -> Iterator[Unit]:
        """Tickets for a model until there is none; what is prepared for them is then brought to its end."""
        while True:
            try:
                ticket, self._next = self._next or self._tickets.get(timeout=_PAUSE_S), None
            except queue.Empty:
                return
            if ticket.model != model:
                self._next = ticket
                return
            self._told.put(_Begun(ticket.number))
            yield _first_model(ticket.unit)

    def _keep(self, made: Made) -> None:
        cell = self._cells[made.work]
        piece = self._store.write(cell, made.start, made.table, {**self._provenance, "backend": made.backend})
        self._told.put(Stored(made.work, piece, count_answers(made.table)))


def _first_model(unit: Unit) -> Unit:
    """The unit for a job of one model."""
    parts = (part._replace(works=tuple((number, 0) for number, _ in part.works)) for part in unit.parts)
    return replace(unit, parts=tuple(parts))


def _node_name() -> str:
    """An address for people, and what tells two nodes of one machine apart."""
    ray = _ray()
    return f"{ray.util.get_node_ip_address()} ({ray.get_runtime_context().get_node_id()[:8]})"
