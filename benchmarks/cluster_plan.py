"""Simulate a large job: duration, data read and stored, cost, and the first bottleneck.

python -m benchmarks cluster-plan                       # 2,000 models × 213 conditions × 50,000 images
python -m benchmarks cluster-plan --models 200          # a tenth of it

The scheduler is the real one (`beaufort.evaluation.task_queue`). Times are constants, measured or assumed as
stated below. Workers, the driver and the store are simulated queues.
"""

from __future__ import annotations

import argparse
import enum
import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from beaufort.evaluation.task_queue import Assignment, TaskQueue
from beaufort.evaluation.tasks import BLOCK, Task, TaskPart
from beaufort.suites.conditions import Condition
from benchmarks.recording import record

A_UNIT = 8
"""Conditions of a task, as in `beaufort.evaluation.tasks`."""


@dataclass(frozen=True)
class Times:
    """Times in seconds unless stated otherwise."""

    predict: float = 46e-6
    """GPU time of a prediction, mean over models: measured for ResNet-50 on an H200, from JPEG files."""
    spread: float = 0.8
    """Standard deviation of its logarithm over models; assumed."""
    load: float = 12.0
    """Time until a model is loaded and the first block is decoded; assumed."""
    report: float = 0.48e-3
    """Driver time of a report; measured."""
    block: float = 0.03e-3
    """Driver time of a block of predictions in a report; measured."""
    ticket: float = 0.34e-3
    """Driver time of an assignment; measured."""
    puts: float = 3500.0
    """Files per second that the object store accepts; the documented limit of S3 for one prefix."""
    reports: float = 200.0
    """Reports per second of all workers, as in `beaufort.evaluation.ray_engine`."""
    collect: float = 0.1
    """Shortest time between reports of a worker."""


@dataclass(frozen=True)
class Job:
    models: int = 2000
    conditions: int = 213
    images: int = 50_000

    @property
    def blocks(self) -> int:
        return -(-self.images // BLOCK)

    @property
    def predictions(self) -> int:
        return self.models * self.conditions * self.images

    def queues(self) -> Iterator[Iterator[Task]]:
        conditions = [
            Condition.parse(f"imagenet-val/fog@{1 + number % 5}") for number in range(self.conditions)
        ]
        return (self._tasks(model, conditions) for model in range(self.models))

    def _tasks(self, model: int, conditions: list[Condition]) -> Iterator[Task]:
        for start in range(0, self.images, BLOCK):
            span = (start, min(start + BLOCK, self.images))
            for first in range(0, len(conditions), A_UNIT):
                some = enumerate(conditions[first : first + A_UNIT], model * len(conditions) + first)
                yield Task(span, tuple(TaskPart(one, span, ((number, model),)) for number, one in some))


@dataclass
class Outcome:
    """Totals of a simulated run."""

    seconds: float = 0.0
    worked: float = 0.0
    """Busy seconds of all GPUs."""
    driver: float = 0.0
    """Busy seconds of the driver."""
    loads: int = 0
    """Number of times a worker loaded a model."""
    decoded: int = 0
    """Number of decoded blocks."""
    written: int = 0
    """Number of written block files."""


@dataclass
class _Worker:
    tickets: deque[Assignment] = field(default_factory=deque)
    model: int = -1
    span: tuple[int, int] = (-1, -1)
    doing: Assignment | None = None
    stored: list[tuple[int, int, int]] = field(default_factory=list)
    """Unreported blocks."""
    begun: int = 0
    written: float = 0.0
    """Time at which the store has all of its files."""
    reported: float = -1e9
    """Time of its last report."""
    reporting: bool = False


class Event(enum.Enum):
    """What happens."""

    ENDED = "a worker ends a task"
    REPORTED = "a report reaches the driver"
    SERVED = "the driver is done with a report"


class Simulation:
    """Events in the order of their times."""

    def __init__(self, job: Job, workers: int, times: Times, seed: int = 0) -> None:
        self.times = times
        self.dispatch = TaskQueue(job.queues())
        self.workers = [_Worker() for _ in range(workers)]
        rng = np.random.default_rng(seed)
        drawn = np.exp(rng.normal(0, times.spread, job.models))
        self.seconds = (times.predict * drawn / drawn.mean()).tolist()
        self.pause = max(times.collect, workers / times.reports)
        self.events: list[tuple[float, int, int, Event]] = []
        """Time, number of the event, worker, and what happens."""
        self.numbers = itertools.count()
        self.inbox: deque[int] = deque()
        """Workers whose report the driver has not come to."""
        self.handing: list[Assignment] | None = None
        """What the driver is about to hand out; None if it does nothing."""
        self.store_free = 0.0
        self.out = Outcome()

    def run(self) -> Outcome:
        happens = {Event.ENDED: self.ended, Event.REPORTED: self.reported, Event.SERVED: self.served}
        for place in range(len(self.workers)):
            self.at(0.0, place, Event.REPORTED)
        while self.events:
            now, _, place, event = heapq.heappop(self.events)
            self.out.seconds = now
            happens[event](now, place)
        assert self.dispatch.finished
        return self.out

    def at(self, time: float, place: int, event: Event) -> None:
        heapq.heappush(self.events, (time, next(self.numbers), place, event))

    def reported(self, now: float, place: int) -> None:
        if self.handing is None:
            self.serve(now, place)
        else:
            self.inbox.append(place)

    def serve(self, now: float, place: int) -> None:
        """Process a report in the driver and assign more work to the worker."""
        worker, times = self.workers[place], self.times
        took = times.report + times.block * len(worker.stored)
        for stored in worker.stored:
            self.dispatch.stored(place, *stored)
        if worker.begun:
            self.dispatch.started(place, worker.begun)
        worker.stored, worker.begun, worker.reporting = [], 0, False
        self.handing = list(iter(lambda: self.dispatch.take(place), None))
        took += times.ticket * len(self.handing)
        self.out.driver += took
        self.at(now + took, place, Event.SERVED)

    def served(self, now: float, place: int) -> None:
        worker = self.workers[place]
        worker.tickets.extend(self.handing or ())
        self.handing = None
        if worker.doing is None and worker.tickets:
            self.begin(now, place)
        if self.inbox:
            self.serve(now, self.inbox.popleft())

    def begin(self, now: float, place: int) -> None:
        worker, times = self.workers[place], self.times
        ticket = worker.tickets.popleft()
        span = ticket.task.span
        seconds = len(ticket.task.parts) * (span[1] - span[0]) * self.seconds[ticket.model]
        self.out.worked += seconds
        if ticket.model != worker.model:
            seconds += times.load
            self.out.loads += 1
        self.out.decoded += (ticket.model, span) != (worker.model, worker.span)
        worker.model, worker.span, worker.doing = ticket.model, span, ticket
        worker.begun += 1
        self.at(max(now, worker.written) + seconds, place, Event.ENDED)  # one task may be behind
        if not worker.tickets:
            self.report(now, place)

    def ended(self, now: float, place: int) -> None:
        worker = self.workers[place]
        assert worker.doing is not None
        parts = worker.doing.task.parts
        worker.stored += [(number, *part.span) for part in parts for number, _ in part.cells]
        worker.doing = None
        self.out.written += len(parts)
        worker.written = self.store_free = max(self.store_free, now) + len(parts) / self.times.puts
        if worker.tickets:
            self.begin(now, place)
        self.report(now, place)

    def report(self, now: float, place: int) -> None:
        """A report is on its way: now, if the worker has nothing left to do, or after a while."""
        worker = self.workers[place]
        if worker.reporting:
            return
        worker.reporting = True
        due = now if not worker.tickets else max(now, worker.reported + self.pause)
        worker.reported = due
        self.at(due, place, Event.REPORTED)


GPU_HOUR, PUTS, GETS, MONTH = 3.0, 5e-6, 0.4e-6, 0.023
"""Dollars per GPU hour, write request, read request, and GB and month; assumed."""
IMAGE_BYTES, WEIGHTS_BYTES, ROW_BYTES = 128e3, 200e6, 43
"""Bytes of an image file and of the weights of a model (assumed), and of a stored row (measured)."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--gpus", type=int, nargs="+", default=[8, 64, 512])
    parser.add_argument("--every", type=int, default=25, help="simulate every N-th image and extrapolate")
    for name in ("predict", "report", "block", "ticket", "puts"):
        parser.add_argument(f"--{name}", type=float, default=getattr(Times(), name))
    options = parser.parse_args()
    job = Job(models=options.models)
    times = Times(
        **{name: getattr(options, name) for name in ("predict", "report", "block", "ticket", "puts")}
    )
    print(
        f"{job.predictions:.3g} predictions in {job.models * job.conditions * job.blocks:,} blocks; {times}"
    )
    print("| GPUs | hours | busy | driver | loads | read TB | stored TB | puts/s | requests M | $ |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for gpus in options.gpus:
        out = simulate(job, gpus, times, options.every)
        record(f"{gpus} GPUs, duration", out.seconds / 3600, "h")
        record(f"{gpus} GPUs, utilization", 100 * out.worked / gpus / out.seconds, "%")
        record(f"{gpus} GPUs, driver busy", 100 * out.driver / out.seconds, "%")
        print(line(job, gpus, out), flush=True)


def simulate(job: Job, gpus: int, times: Times, every: int = 1) -> Outcome:
    """Extrapolate the whole job from a part of its images, with loading times reduced by the same factor.

    The uneven end weighs more in a smaller job, so the whole job would be slightly faster.
    """
    part = replace(job, images=job.images // every)
    out = Simulation(part, gpus, replace(times, load=times.load / every)).run()
    many = ("seconds", "worked", "driver", "decoded", "written")
    return replace(out, **{name: every * getattr(out, name) for name in many})


def line(job: Job, gpus: int, out: Outcome) -> str:
    hours = out.seconds / 3600
    images = out.decoded * BLOCK
    cells = job.models * job.conditions
    puts, gets = out.written + cells, out.written + images + out.loads
    stored = job.predictions * ROW_BYTES
    read = images * IMAGE_BYTES + out.loads * WEIGHTS_BYTES
    dollars = gpus * hours * GPU_HOUR + puts * PUTS + gets * GETS + stored / 1e9 * MONTH
    return (
        f"| {gpus} | {hours:,.2f} | {out.worked / gpus / out.seconds:.1%} | {out.driver / out.seconds:.1%} | "
        f"{out.loads:,} | {read / 1e12:.1f} | {stored / 1e12:.2f} | {out.written / out.seconds:,.0f} | "
        f"{(puts + gets) / 1e6:.0f} | {dollars:,.0f} |"
    )
