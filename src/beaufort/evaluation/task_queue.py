"""Assignment of tasks to workers, which may be lost at any time.

There is a queue for each model. Adjacent tasks of a queue on the same block of images form a lane. A worker
stays in its lane, where its model is loaded and its images are decoded. After that it takes the next lane of
the same model, then one of a model that no worker has started, then one of the model with the fewest workers;
if no lane is left, it helps in the longest.

If a worker is lost, tasks that it has not stored are assigned again. The parts of its current task are tried
one at a time, and a part that crashes its worker `TRIES` times is given up, so that an image that crashes a
model does not stop the run. A model without stored predictions is given up after `HOPELESS` such parts.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from beaufort.evaluation.planning import Range
from beaufort.evaluation.tasks import Task, TaskFailure, TaskPart

TRIES = 3
"""Number of crashes after which a part, tried alone, is given up."""

HOPELESS = 3
"""Number of parts given up after which a model without stored predictions is given up."""

AHEAD = 2
"""Maximum number of tasks waiting at a worker, in addition to those that it has started."""

Worker = Hashable


@dataclass(frozen=True)
class Assignment:
    """A task for one model, and the number of workers that crashed on it."""

    number: int
    model: int
    task: Task
    losses: int = 0


class _Queue:
    """The tasks of a model, lane by lane, created when they are needed."""

    def __init__(self, model: int, tasks: Iterable[Task]) -> None:
        self.model = model
        self._lanes = itertools.groupby(tasks, lambda task: (task.source, task.span))
        self._next = self._ahead()

    def _ahead(self) -> _Lane | None:
        for _, some in self._lanes:
            return _Lane(self, deque(some))
        return None

    @property
    def empty(self) -> bool:
        return self._next is None

    def lane(self) -> _Lane:
        """Return the next lane; there must be one."""
        assert self._next is not None
        lane, self._next = self._next, self._ahead()
        return lane


@dataclass(eq=False)
class _Lane:
    queue: _Queue
    tasks: deque[Task]


@dataclass
class _WorkerState:
    """Assignments of a worker."""

    lane: _Lane | None = None
    assignments: deque[Assignment] = field(default_factory=deque)
    """Assignments that are not stored completely, oldest first."""
    open: set[tuple[int, Range]] = field(default_factory=set)
    """Cells and spans of these assignments that are not stored."""
    waiting: int = 0
    """Number of assignments that it has not started."""


class TaskQueue:
    """Assigns tasks, given as one queue for each model."""

    def __init__(self, queues: Iterable[Iterable[Task]]) -> None:
        self._fresh = (_Queue(_model_of(first), rest) for first, rest in map(_with_first, queues) if first)
        self._queues: list[_Queue] = []
        """Queues that were started and have lanes left."""
        self._open: list[_Lane] = []
        """Lanes with tasks left."""
        self._suspects: deque[Assignment] = deque()
        self._returned: deque[Assignment] = deque()
        self._states: dict[Worker, _WorkerState] = {}
        self._numbers = itertools.count()
        self._more = True
        self._with_results: set[int] = set()
        """Models with stored predictions."""
        self._given_up: Counter[int] = Counter()
        """Number of parts given up, by model."""

    @property
    def finished(self) -> bool:
        """Whether all tasks are stored or given up."""
        waiting = (
            self._suspects or self._returned or any(state.assignments for state in self._states.values())
        )
        return not waiting and not self._more and not self._queues and not self._open

    def take(self, worker: Worker) -> Assignment | None:
        """Return the next assignment of a worker; None if it has enough, or nothing is left."""
        state = self._states.setdefault(worker, _WorkerState())
        if state.waiting >= AHEAD or any(one.losses for one in state.assignments):
            return None
        if self._suspects and not state.assignments:
            return self._assign(state, self._suspects.popleft())
        if self._returned:
            return self._assign(state, self._returned.popleft())
        lane = self._lane_for(state)
        if lane is None:
            return None
        task = lane.tasks.popleft() if lane is state.lane else lane.tasks.pop()
        if not lane.tasks:
            self._open.remove(lane)
        return self._assign(state, Assignment(next(self._numbers), lane.queue.model, task))

    def started(self, worker: Worker, assignments: int) -> None:
        """Record that a worker has started this many assignments."""
        self._states[worker].waiting -= assignments

    def stored(self, worker: Worker, cell: int, start: int, stop: int) -> None:
        """Record that a worker has stored the predictions of a cell for a span."""
        state = self._states[worker]
        state.open.discard((cell, (start, stop)))
        if state.assignments:
            self._with_results.add(state.assignments[0].model)
        while state.assignments and not any(key in state.open for key in _keys(state.assignments[0].task)):
            state.assignments.popleft()

    def lost(self, worker: Worker, reason: str) -> list[TaskFailure]:
        """Record the loss of a worker: reassign its tasks, and return the parts that are given up."""
        state = self._states.pop(worker, _WorkerState())
        failed = []
        for place, assignment in enumerate(state.assignments):
            left = (_left(part, state.open) for part in assignment.task.parts)
            parts = tuple(part for part in left if part is not None)
            again = replace(assignment, task=replace(assignment.task, parts=parts))
            if place:
                self._returned.append(again)
                continue
            for part in parts:  # one at a time, to find the part that crashes workers
                alone = replace(assignment.task, parts=(part,))
                losses = assignment.losses + 1
                if assignment.losses and losses > TRIES:
                    failed.append(_failed(part, reason))
                    self._given_up[assignment.model] += 1
                else:
                    self._suspects.append(Assignment(next(self._numbers), assignment.model, alone, losses))
        for model in {one.model for one in state.assignments}:
            if self._given_up[model] >= HOPELESS and model not in self._with_results:
                failed += self._give_up(model, reason)
        return failed

    def _give_up(self, model: int, reason: str) -> Iterator[TaskFailure]:
        """Yield failures for all parts of a model that are not assigned."""
        assignments = [one for one in (*self._suspects, *self._returned) if one.model == model]
        self._suspects = deque(one for one in self._suspects if one.model != model)
        self._returned = deque(one for one in self._returned if one.model != model)
        lanes = [lane for lane in self._open if lane.queue.model == model]
        for queue in [queue for queue in self._queues if queue.model == model]:
            while not queue.empty:
                lanes.append(queue.lane())
            self._queues.remove(queue)
        self._open = [lane for lane in self._open if lane.queue.model != model]
        tasks = [one.task for one in assignments] + [task for lane in lanes for task in lane.tasks]
        yield from (_failed(part, reason) for task in tasks for part in task.parts)
        for lane in lanes:
            lane.tasks.clear()  # a worker may still refer to it

    def _assign(self, state: _WorkerState, assignment: Assignment) -> Assignment:
        state.assignments.append(assignment)
        state.waiting += 1
        state.open.update(_keys(assignment.task))
        return assignment

    def _lane_for(self, state: _WorkerState) -> _Lane | None:
        if state.lane is not None and state.lane.tasks:
            return state.lane
        queue = self._queue_for(state)
        if queue is None:
            state.lane = None
            return max(self._open, key=lambda lane: len(lane.tasks), default=None)
        state.lane = queue.lane()
        self._open.append(state.lane)
        if queue.empty:
            self._queues.remove(queue)
        return state.lane

    def _queue_for(self, state: _WorkerState) -> _Queue | None:
        """Return the queue from which a worker takes its next lane."""
        if state.lane is not None and not state.lane.queue.empty:
            return state.lane.queue
        for queue in self._fresh:
            self._queues.append(queue)
            return queue
        self._more = False
        if not self._queues:
            return None
        busy = Counter(other.lane.queue.model for other in self._states.values() if other.lane is not None)
        return min(self._queues, key=lambda queue: busy[queue.model])


def _with_first(tasks: Iterable[Task]) -> tuple[Task | None, Iterator[Task]]:
    """Return the first task, if there is one, and all tasks."""
    rest = iter(tasks)
    first = next(rest, None)
    return first, rest if first is None else itertools.chain([first], rest)


def _model_of(task: Task) -> int:
    models = {model for part in task.parts for _, model in part.cells}
    assert len(models) == 1, "a task is for one model"
    return models.pop()


def _keys(task: Task) -> Iterator[tuple[int, Range]]:
    return ((number, part.span) for part in task.parts for number, _ in part.cells)


def _left(part: TaskPart, unstored: set[tuple[int, Range]]) -> TaskPart | None:
    cells = tuple((number, model) for number, model in part.cells if (number, part.span) in unstored)
    return part._replace(cells=cells) if cells else None


def _failed(part: TaskPart, reason: str) -> TaskFailure:
    return TaskFailure(tuple(number for number, _ in part.cells), part.span, reason)
