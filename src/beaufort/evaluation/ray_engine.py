"""An engine that runs tasks in Ray actors, on one machine or many.

Actors write predictions to the store and report what they have stored; tables do not pass through this
process. Tasks that a lost actor had not stored are assigned to others.
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
from beaufort.evaluation.ray_worker import REPORTS, Gathered, Payload, Report, Started, Worker, WorkerSetup
from beaufort.evaluation.runner import TaskRunner
from beaufort.evaluation.task_queue import TaskQueue
from beaufort.evaluation.tasks import BatchDone, Event, StoredPredictions, Task
from beaufort.store import Piece, Store

_REPORT_S = 0.1
"""Seconds between reports of a worker, with few workers."""
_REPORTS_A_SECOND = 200
"""Maximum average rate of reports; with more workers, each reports less often."""
_IDLE_DEATHS = 3
"""Maximum number of consecutive worker losses without a stored prediction, per worker."""
_ANSWER_S = 10.0
"""Timeout of a connection to the address, in seconds."""
_NO_ROOM_S = 600.0
"""Maximum time without any worker, while the cluster is full or grows, in seconds."""


@dataclass
class _WorkerInfo:
    """State of a worker."""

    actor: Any
    node: str = ""
    """Node; empty until the first report, because the worker may wait for resources."""
    predictions: int = 0
    seconds: float = 0.0
    idle: float = 0.0
    unstored: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Counts of reported predictions that are not stored, by cell, as in `BatchDone`."""
    gathering: set[int] = field(default_factory=set)
    """Cells whose pieces it gathers."""

    def count(self, cell: int, images: int, labeled: int, correct: int) -> None:
        before = self.unstored.pop(cell, (0, 0, 0))
        now = before[0] + images, before[1] + labeled, before[2] + correct
        if any(now):
            self.unstored[cell] = now


class RayEngine:
    """Runs tasks in actors of a Ray cluster; without an address, Ray is started for the run.

    Args:
        runner: runs the tasks.
        options: options of the engine.
        store: store to which workers write.
        cells: cells of the plan, to which tasks refer by index.
        provenance: provenance of the predictions.
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
        """Workers by their stream of reports."""
        self._gone: list[_WorkerInfo] = []
        self._first_seen: dict[str, float] = {}
        """Time of the first report of each node."""
        self._latest: _WorkerInfo | None = None
        """Worker of the latest report."""
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
        """Record interrupts: Ray can treat one as the loss of a worker, and the run would continue."""
        if threading.current_thread() is not threading.main_thread():
            return

        def interrupt(*_: object) -> None:
            self._interrupted = True
            raise KeyboardInterrupt

        self._handler_before = signal.signal(signal.SIGINT, interrupt)

    @property
    def nodes(self) -> Mapping[str, NodeSpeed]:
        """Statistics of each node, updated every second during the run."""
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
                        f"workers crash before they store predictions; the last reason: {report}"
                    ) from None
                self._hire()
            if any(info.node for info in self._infos.values()):
                seen = time.monotonic()
            elif time.monotonic() > seen + _NO_ROOM_S:
                raise WorkerError(
                    f"no worker started within {_NO_ROOM_S:g} seconds: the cluster has no free node with "
                    f"{self._options.cpus:g} CPUs and {self._options.gpus:g} GPUs. Stored predictions are "
                    "kept, and the same run computes the rest"
                )
            self._offer(queue)
        self._nodes, self._nodes_until = (
            self._speeds(time.monotonic()),
            math.inf,
        )  # the rest of the time is not theirs

    def gather(self, number: int, pieces: Sequence[Piece]) -> None:
        """Let the worker that stored the last piece of a cell gather them."""
        info = self._latest
        assert info is not None, "a piece was stored"
        info.gathering.add(number)
        info.actor.gather.remote(number, self._cells[number].cell, pieces)

    def _ready(self) -> list[Any]:
        """Return the streams with a report, as soon as there is one; empty after a second."""
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
                case Started():
                    queue.started(stream, 1)
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
        """Handle the loss of a worker; predictions that it reported and did not store are subtracted."""
        info = self._infos.pop(stream)
        with contextlib.suppress(Exception):
            import_ray().kill(info.actor)  # if only its report was lost, it must free its resources
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
    """Return the package, or raise an error with the command that installs it."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError("engine ray requires Ray: pip install 'beaufort[ray]'") from None
    return ray


def _start(options: RayOptions) -> None:
    ray = import_ray()
    if options.address is None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
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
        if colon and port.isdecimal() and "://" not in host:  # Ray itself would try for 15 minutes
            socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()
        ray.init(address=options.address, log_to_driver=False, logging_level="error")
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        raise OptionError(
            f"cannot connect to a Ray cluster at {options.address!r}: {error}; start one with `ray start "
            "--head`, or omit the address to use this machine only"
        ) from None


def _room(options: RayOptions, *, free: int = 0) -> int:
    """Return the number of workers that fit on the cluster beside some free processors."""
    resources = import_ray().cluster_resources()
    room = (resources.get("CPU", 0) - free) / options.cpus
    if options.gpus:
        room = min(room, resources.get("GPU", 0) / options.gpus)
    return int(room)


def _next(stream: Any) -> Report | str:
    """Return the next report of a worker; the reason if it was lost."""
    ray = import_ray()
    try:
        report: Report = ray.get(next(stream))
    except (ray.exceptions.RayError, StopIteration) as error:
        return _reason(error)
    return report


def _reason(error: BaseException) -> str:
    """Return the line of a message of Ray, which may be long, that says why a worker ended."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    wanted = [line for line in lines if "exit" in line.lower() or "died" in line.lower()]
    return (wanted or lines or [type(error).__name__])[0][:300]
