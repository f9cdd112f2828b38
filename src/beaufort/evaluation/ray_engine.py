"""Tasks done by Ray actors, on one machine or many.

Actors write predictions to the store themselves and report what they have stored: tables never pass through
this process. What an actor had not stored when it died is done again by others.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from beaufort._core.errors import MissingExtraError, OptionError
from beaufort.evaluation.engines import NodeSpeed, WorkerError
from beaufort.evaluation.options import RayOptions
from beaufort.evaluation.planning import PlannedCell
from beaufort.evaluation.ray_nodes import check_nodes
from beaufort.evaluation.ray_worker import REPORTS, Begun, Gathered, Payload, Report, Worker, WorkerSetup
from beaufort.evaluation.runner import TaskRunner
from beaufort.evaluation.task_queue import TaskQueue
from beaufort.evaluation.tasks import BatchDone, Event, StoredPredictions, Task
from beaufort.store import Piece, Store

_REPORT_S = 0.1
"""How long a worker collects what it has to tell, if workers are few."""
_REPORTS_A_SECOND = 200
"""How many come in at most, on average: with more workers, each waits longer."""
_IDLE_DEATHS = 3
"""Workers that end one after the other without having stored anything, for each worker there is, at most."""
_ANSWER_S = 10.0
"""How long an address may take to answer."""
_NO_ROOM_S = 600.0
"""How long no worker at all may be there, because the cluster has no room, or grows."""


@dataclass
class _WorkerInfo:
    """What is known of a worker."""

    actor: Any
    node: str = ""
    """Where it is; empty until it has reported: it may wait for a place in the cluster for ever."""
    predictions: int = 0
    seconds: float = 0.0
    idle: float = 0.0
    unstored: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Predictions of each cell, as in `BatchDone`, that were reported and are not stored yet."""
    gathering: set[int] = field(default_factory=set)
    """Cells whose pieces it puts together."""

    def count(self, cell: int, images: int, labeled: int, correct: int) -> None:
        before = self.unstored.pop(cell, (0, 0, 0))
        now = before[0] + images, before[1] + labeled, before[2] + correct
        if any(now):
            self.unstored[cell] = now


class RayEngine:
    """Actors of a cluster. Without one that runs, one of this machine is started, and stopped at the end.

    Args:
        runner: does the tasks.
        options: with how many workers, and where.
        store: to which workers write.
        cells: those of the plan, by whose numbers tasks name them.
        provenance: what stands beside answers.
    """

    one_model = True

    def __init__(
        self,
        runner: TaskRunner,
        options: RayOptions,
        store: Store,
        cells: Sequence[PlannedCell],
        provenance: Mapping[str, Any],
    ) -> None:
        self._options = options
        self._cells = cells
        runner = runner.for_worker(max(1, int(options.cpus)), limit_models=not options.gpus)
        self._setup = WorkerSetup(runner, store, dict(provenance))
        self._infos: dict[Any, _WorkerInfo] = {}
        """By the stream of what they report."""
        self._gone: list[_WorkerInfo] = []
        self._first_seen: dict[str, float] = {}
        """When the first worker of a node reported."""
        self._latest: _WorkerInfo | None = None
        """Whose message was told last."""
        self._nodes: Mapping[str, NodeSpeed] = {}
        self._nodes_until = 0.0
        self._ours = False
        self._interrupted = False
        self._handler_before: Any = None

    def __enter__(self) -> Self:
        ray = import_ray()
        payload = Payload.of(self._setup)
        self._watch_interrupts()
        try:
            if not ray.is_initialized():
                self._ours = True
                _start(self._options)
            self._payload = ray.put(payload)
            check_nodes(self._setup, self._payload, self._options.cpus, self._options.gpus)
            wanted = self._options.workers or max(1, _room(self._options, free=1))
            self._pause = max(_REPORT_S, wanted / _REPORTS_A_SECOND)
            for _ in range(wanted):
                self._hire()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ray = import_ray()
        if self._handler_before is not None:
            signal.signal(signal.SIGINT, self._handler_before)
        for info in self._infos.values():
            with contextlib.suppress(Exception):  # the cluster may be gone
                ray.kill(info.actor)
        self._infos.clear()
        if self._ours:
            ray.shutdown()

    def _watch_interrupts(self) -> None:
        """Remember an interrupt: Ray can take it for the end of a worker, and the job would go on."""
        if threading.current_thread() is not threading.main_thread():
            return

        def interrupt(*_: object) -> None:
            self._interrupted = True
            raise KeyboardInterrupt

        self._handler_before = signal.signal(signal.SIGINT, interrupt)

    @property
    def nodes(self) -> Mapping[str, NodeSpeed]:
        """What each node has done; a second old at most while work is under way."""
        now = time.monotonic()
        if now >= self._nodes_until:
            self._nodes, self._nodes_until = self._speeds(now), now + 1.0
        return self._nodes

    def _speeds(self, now: float) -> dict[str, NodeSpeed]:
        infos: dict[str, list[_WorkerInfo]] = {}
        for info in (*self._infos.values(), *self._gone):
            infos.setdefault(info.node, []).append(info)
        found = {}
        for node, since in self._first_seen.items():
            seconds = sum(info.seconds for info in infos[node])
            busy = 1 - sum(info.idle for info in infos[node]) / seconds if seconds else 0.0
            found[node] = NodeSpeed(sum(info.predictions for info in infos[node]), now - since, busy)
        return found

    def run(self, queues: Iterable[Iterable[Task]]) -> Generator[Event]:
        queue = TaskQueue(queues)
        deaths = 0
        seen = time.monotonic()
        self._offer(queue)
        while not queue.finished or any(info.gathering for info in self._infos.values()):
            for stream in self._ready():
                report = _next(stream)
                if self._interrupted:
                    raise KeyboardInterrupt
                if isinstance(report, Report):
                    if any(isinstance(message, StoredPredictions) for message in report.messages):
                        deaths = 0
                    yield from self._take(stream, report, queue)
                    continue
                deaths += 1
                yield from self._lose(stream, report, queue)
                if deaths > _IDLE_DEATHS * (len(self._infos) + 1):
                    raise WorkerError(
                        f"workers end before they store anything; the last one says: {report}"
                    ) from None
                self._hire()
            if any(info.node for info in self._infos.values()):
                seen = time.monotonic()
            elif time.monotonic() > seen + _NO_ROOM_S:
                raise WorkerError(
                    f"no worker could start within {_NO_ROOM_S:g} seconds: the cluster has no room for one "
                    f"with {self._options.cpus:g} CPUs and {self._options.gpus:g} GPUs. What was stored "
                    "stays; the same run again does the rest"
                )
            self._offer(queue)
        self._nodes, self._nodes_until = self._speeds(time.monotonic()), math.inf  # what comes is not theirs

    def gather(self, number: int, pieces: Sequence[Piece]) -> None:
        """Have the pieces of a work put together by the worker that stored the last of them."""
        info = self._latest
        assert info is not None, "a piece was stored by somebody"
        info.gathering.add(number)
        info.actor.gather.remote(number, self._cells[number].cell, pieces)

    def _ready(self) -> list[Any]:
        """The streams that have something, as soon as there is one; none after a while."""
        ray = import_ray()
        streams = list(self._infos)
        ready, rest = ray.wait(streams, num_returns=1, timeout=1.0)
        if ready and rest:
            more, _ = ray.wait(rest, num_returns=len(rest), timeout=0)
            ready = [*ready, *more]
        return list(ready)

    def _take(self, stream: Any, report: Report, queue: TaskQueue) -> Iterator[Event]:
        info = self._latest = self._infos[stream]
        info.node, info.seconds, info.idle = report.node, report.seconds, report.idle
        self._first_seen.setdefault(report.node, time.monotonic())
        for message in report.messages:
            match message:
                case Exception():
                    raise message
                case Begun():
                    queue.begun(stream, 1)
                    continue
                case Gathered(number):
                    info.gathering.discard(number)
                    continue
                case BatchDone():
                    info.count(*message)
                case StoredPredictions(number, piece, counts):
                    rows = piece.stop - piece.start
                    info.predictions += rows
                    info.count(number, counts.unread - rows, -counts.images, -counts.correct)
                    queue.stored(stream, number, piece.start, piece.stop)
            yield message

    def _lose(self, stream: Any, reason: str, queue: TaskQueue) -> Iterator[Event]:
        """A worker is gone: take back what it told of and did not store."""
        info = self._infos.pop(stream)
        with contextlib.suppress(Exception):
            import_ray().kill(info.actor)  # if only what it told was lost, it must not keep its place
        self._gone.append(replace(info, actor=None, unstored={}, gathering=set()))
        for number, (images, labeled, correct) in info.unstored.items():
            yield BatchDone(number, -images, -labeled, -correct)
        yield from queue.lost(stream, reason)

    def _hire(self) -> None:
        options = self._options
        actor: Any = (
            import_ray()
            .remote(Worker)
            .options(num_cpus=options.cpus, num_gpus=options.gpus, max_restarts=0, max_concurrency=2)
            .remote(self._payload, self._pause)
        )
        reports = actor.reports.options(num_returns="streaming", _generator_backpressure_num_objects=REPORTS)
        self._infos[reports.remote()] = _WorkerInfo(actor)

    def _offer(self, queue: TaskQueue) -> None:
        for stream, info in self._infos.items():
            while info.node and (assignment := queue.take(stream)) is not None:
                numbers = {number for part in assignment.task.parts for number, _ in part.cells}
                info.actor.offer.remote(assignment, {number: self._cells[number].cell for number in numbers})


def import_ray() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError("the engine ray needs Ray: pip install 'beaufort[ray]'") from None
    return ray


def _start(options: RayOptions) -> None:
    ray = import_ray()
    if options.address is None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a run tells nobody of itself
        ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="error")
        room = _room(options)
        if options.workers is not None and options.workers > room > 0:
            each = f"{options.cpus:g} CPUs and {options.gpus:g} GPUs each"
            raise OptionError(
                f"workers must be at most {room} on this machine, with {each}, got {options.workers}"
            )
        return
    try:
        host, colon, port = options.address.rpartition(":")
        if colon and port.isdecimal() and "://" not in host:  # Ray itself would try for a quarter of an hour
            socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()
        ray.init(address=options.address, log_to_driver=False, logging_level="error")
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        raise OptionError(
            f"there is no Ray cluster at {options.address!r} that can be used: {error}; start one with `ray "
            "start --head`, or leave the address out to use this machine alone"
        ) from None


def _room(options: RayOptions, *, free: int = 0) -> int:
    """How many workers the cluster has room for, with some processors left free."""
    resources = import_ray().cluster_resources()
    room = (resources.get("CPU", 0) - free) / options.cpus
    if options.gpus:
        room = min(room, resources.get("GPU", 0) / options.gpus)
    return int(room)


def _next(stream: Any) -> Report | str:
    """What a worker reports next; the reason, in words, if it is gone."""
    ray = import_ray()
    try:
        report: Report = ray.get(next(stream))
    except (ray.exceptions.RayError, StopIteration) as error:
        return _reason(error)
    return report


def _reason(error: BaseException) -> str:
    """The line of what Ray says, which may be pages, that tells how it ended."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    wanted = [line for line in lines if "exit" in line.lower() or "died" in line.lower()]
    return (wanted or lines or [type(error).__name__])[0][:300]
