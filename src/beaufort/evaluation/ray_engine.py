"""Units of work done by Ray actors, on one machine or many.

Actors write answers to the store themselves and tell this process what they have stored: tables never pass
through here. What an actor had not stored when it died is done again by others.
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
from beaufort._core.validation import validate_count
from beaufort.evaluation.dispatch import Dispatch
from beaufort.evaluation.engines import NodeSpeed, WorkerError
from beaufort.evaluation.nodes import check_nodes
from beaufort.evaluation.parcel import Contents, pack
from beaufort.evaluation.planning import Work
from beaufort.evaluation.ray_worker import REPORTS, Begun, Gathered, Report, Worker
from beaufort.evaluation.work import Answered, Job, Message, Unit, Written
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
        if self.workers is not None:
            validate_count("workers", self.workers)
        for name, value, least in (("cpus", self.cpus, "above 0"), ("gpus", self.gpus, "from 0")):
            if not (value > 0 if least == "above 0" else value >= 0):
                raise OptionError(f"{name} must be a number {least}, got {value!r}")
            if value > 1 and value != int(value):
                raise OptionError(f"{name} must be a whole number, or a share below 1, got {value!r}")


@dataclass
class _Hand:
    """What is known of a worker."""

    actor: Any
    node: str = ""
    """Where it is; empty until it has reported: it may wait for a place in the cluster for ever."""
    answers: int = 0
    seconds: float = 0.0
    idle: float = 0.0
    unstored: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Answers of each work, as in `Answered`, that were told of and are not stored yet."""
    gathering: set[int] = field(default_factory=set)
    """Works whose pieces it puts together."""

    def count(self, work: int, images: int, labeled: int, correct: int) -> None:
        before = self.unstored.pop(work, (0, 0, 0))
        now = before[0] + images, before[1] + labeled, before[2] + correct
        if any(now):
            self.unstored[work] = now


class Ray:
    """Actors of a cluster. Without one that runs, one of this machine is started, and stopped at the end.

    Args:
        job: what there is to do.
        options: with how many workers, and where.
        store: to which workers write.
        works: those of the plan, by whose numbers units name them.
        provenance: what stands beside answers.
    """

    one_model = True

    def __init__(
        self,
        job: Job,
        options: RayOptions,
        store: Store,
        works: Sequence[Work],
        provenance: Mapping[str, Any],
    ) -> None:
        self._options = options
        self._works = works
        alone = job.models if options.gpus else tuple(model.for_one_thread() for model in job.models)
        job = replace(job, models=alone, jobs=max(1, int(options.cpus)))
        self._contents = Contents(job, store, dict(provenance))
        self._hands: dict[Any, _Hand] = {}
        """By the stream of what they report."""
        self._gone: list[_Hand] = []
        self._first_seen: dict[str, float] = {}
        """When the first worker of a node reported."""
        self._latest: _Hand | None = None
        """Whose message was told last."""
        self._nodes: Mapping[str, NodeSpeed] = {}
        self._nodes_until = 0.0
        self._ours = False
        self._interrupted = False
        self._handler_before: Any = None

    def __enter__(self) -> Self:
        ray = import_ray()
        parcel = pack(self._contents)
        self._watch_interrupts()
        try:
            if not ray.is_initialized():
                self._ours = True
                _start(self._options)
            self._parcel = ray.put(parcel)
            check_nodes(self._contents, self._parcel, self._options.cpus, self._options.gpus)
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
        for hand in self._hands.values():
            with contextlib.suppress(Exception):  # the cluster may be gone
                ray.kill(hand.actor)
        self._hands.clear()
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
        hands: dict[str, list[_Hand]] = {}
        for hand in (*self._hands.values(), *self._gone):
            hands.setdefault(hand.node, []).append(hand)
        found = {}
        for node, since in self._first_seen.items():
            seconds = sum(hand.seconds for hand in hands[node])
            busy = 1 - sum(hand.idle for hand in hands[node]) / seconds if seconds else 0.0
            found[node] = NodeSpeed(sum(hand.answers for hand in hands[node]), now - since, busy)
        return found

    def work(self, queues: Iterable[Iterable[Unit]]) -> Generator[Message]:
        dispatch = Dispatch(queues)
        deaths = 0
        seen = time.monotonic()
        self._offer(dispatch)
        while not dispatch.finished or any(hand.gathering for hand in self._hands.values()):
            for stream in self._ready():
                report = _next(stream)
                if self._interrupted:
                    raise KeyboardInterrupt
                if isinstance(report, Report):
                    if any(isinstance(message, Written) for message in report.messages):
                        deaths = 0
                    yield from self._take(stream, report, dispatch)
                    continue
                deaths += 1
                yield from self._lose(stream, report, dispatch)
                if deaths > _IDLE_DEATHS * (len(self._hands) + 1):
                    raise WorkerError(
                        f"workers end before they store anything; the last one says: {report}"
                    ) from None
                self._hire()
            if any(hand.node for hand in self._hands.values()):
                seen = time.monotonic()
            elif time.monotonic() > seen + _NO_ROOM_S:
                raise WorkerError(
                    f"no worker could start within {_NO_ROOM_S:g} seconds: the cluster has no room for one "
                    f"with {self._options.cpus:g} CPUs and {self._options.gpus:g} GPUs. What was stored "
                    "stays; the same run again does the rest"
                )
            self._offer(dispatch)
        self._nodes, self._nodes_until = self._speeds(time.monotonic()), math.inf  # what comes is not theirs

    def gather(self, number: int, pieces: Sequence[Piece]) -> None:
        """Have the pieces of a work put together by the worker that stored the last of them."""
        hand = self._latest
        assert hand is not None, "a piece was stored by somebody"
        hand.gathering.add(number)
        hand.actor.gather.remote(number, self._works[number].cell, pieces)

    def _ready(self) -> list[Any]:
        """The streams that have something, as soon as there is one; none after a while."""
        ray = import_ray()
        streams = list(self._hands)
        ready, rest = ray.wait(streams, num_returns=1, timeout=1.0)
        if ready and rest:
            more, _ = ray.wait(rest, num_returns=len(rest), timeout=0)
            ready = [*ready, *more]
        return list(ready)

    def _take(self, stream: Any, report: Report, dispatch: Dispatch) -> Iterator[Message]:
        hand = self._latest = self._hands[stream]
        hand.node, hand.seconds, hand.idle = report.node, report.seconds, report.idle
        self._first_seen.setdefault(report.node, time.monotonic())
        for message in report.messages:
            match message:
                case Exception():
                    raise message
                case Begun():
                    dispatch.begun(stream, 1)
                    continue
                case Gathered(number):
                    hand.gathering.discard(number)
                    continue
                case Answered():
                    hand.count(*message)
                case Written(number, piece, counts):
                    rows = piece.stop - piece.start
                    hand.answers += rows
                    hand.count(number, counts.unread - rows, -counts.images, -counts.correct)
                    dispatch.stored(stream, number, piece.start, piece.stop)
            yield message

    def _lose(self, stream: Any, reason: str, dispatch: Dispatch) -> Iterator[Message]:
        """A worker is gone: take back what it told of and did not store."""
        hand = self._hands.pop(stream)
        with contextlib.suppress(Exception):
            import_ray().kill(hand.actor)  # if only what it told was lost, it must not keep its place
        self._gone.append(replace(hand, actor=None, unstored={}, gathering=set()))
        for number, (images, labeled, correct) in hand.unstored.items():
            yield Answered(number, -images, -labeled, -correct)
        yield from dispatch.lost(stream, reason)

    def _hire(self) -> None:
        options = self._options
        actor: Any = (
            import_ray()
            .remote(Worker)
            .options(num_cpus=options.cpus, num_gpus=options.gpus, max_restarts=0, max_concurrency=2)
            .remote(self._parcel, self._pause)
        )
        reports = actor.reports.options(num_returns="streaming", _generator_backpressure_num_objects=REPORTS)
        self._hands[reports.remote()] = _Hand(actor)

    def _offer(self, dispatch: Dispatch) -> None:
        for stream, hand in self._hands.items():
            while hand.node and (ticket := dispatch.take(stream)) is not None:
                numbers = {number for part in ticket.unit.parts for number, _ in part.works}
                hand.actor.offer.remote(ticket, {number: self._works[number].cell for number in numbers})


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
