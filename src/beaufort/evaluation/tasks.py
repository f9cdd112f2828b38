"""Tasks: picklable pieces of a plan that an engine schedules, and the events that they yield.

A task is work on one block of images, which are decoded once: some conditions, each for the models that lack
predictions. Blocks start at multiples of `BLOCK` images, also in a resumed run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
from numpy.typing import NDArray

from beaufort.data import Problem
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.planning import Plan, PlannedCell, Range
from beaufort.store import Piece
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import Frame

BLOCK = 1000
"""Images in a block; a block becomes one file of the store for each cell."""
_TASKS_PER_PROCESS = 4
"""Minimum number, if there are enough conditions, so that processes finish at about the same time."""
_CONDITIONS = 8
"""Maximum number of conditions of a task for one model."""
_TASKS = 64
"""Minimum number of tasks of a run with one model per task, so that workers finish at about the same time."""


State = Mapping[str, NDArray[Any]]
"""Arrays of a `StatefulModel`."""


class TaskPart(NamedTuple):
    """One condition on images of a block, for the models that lack predictions."""

    condition: Condition
    span: Range
    cells: tuple[tuple[int, int], ...]
    """For each model, the index of the cell in the plan, and of the model in the run."""


@dataclass(frozen=True)
class Task:
    """Work on one block of images."""

    span: Range
    parts: tuple[TaskPart, ...]
    source: int = 0
    """Index of the image source."""


class BatchDone(NamedTuple):
    """A batch was predicted."""

    cell: int
    images: int
    labeled: int
    """Number of images with a label."""
    correct: int


class PredictionRows(NamedTuple):
    """Scored predictions of a cell for the images from `start` on."""

    cell: int
    start: int
    table: pa.Table
    backend: str
    """Name of the device that corrupted the images."""
    state: State | None = None
    """State of a model that adapts, after the last image."""


class CellCounts(NamedTuple):
    """Number of images of a cell by result."""

    images: int
    """Readable images with a label."""
    correct: int
    unread: int
    unlabeled: int
    """Readable images without a label, which do not count."""


class StoredPredictions(NamedTuple):
    """Predictions that a worker has stored."""

    cell: int
    piece: Piece
    counts: CellCounts


class TaskFailure(NamedTuple):
    """A part of a task that crashed its worker at each attempt."""

    cells: tuple[int, ...]
    span: Range
    reason: str


class Note(NamedTuple):
    """A note on the results."""

    text: str


Event = BatchDone | PredictionRows | StoredPredictions | TaskFailure | Note | Problem


class TaskSplitter:
    """Splits the missing part of a plan into tasks.

    Args:
        plan: the plan.
        models: models that lack predictions, in the order of the run.
        processes: number of processes that share the tasks.
    """

    def __init__(self, plan: Plan, models: Sequence[LazyModel], processes: int) -> None:
        self._cells = [(number, cell) for number, cell in enumerate(plan.cells) if cell.gaps]
        self._numbers = {model: number for number, model in enumerate(models)}
        self._processes = processes
        self._sources = plan.sources

    def split(self, first: int, ends: Sequence[int]) -> Iterator[Task]:
        """Yield a task per block; with few blocks, processes share the conditions of a block."""
        for source, end in enumerate(ends):
            cells = [(number, cell) for number, cell in self._cells if cell.source_index == source]
            blocks = [
                (span, parts)
                for span in self._spans(source, first, end)
                if (parts := self._parts(cells, *span))
            ]
            wanted = _TASKS_PER_PROCESS * self._processes if self._processes > 1 else 1
            tasks_per_block = math.ceil(wanted / max(1, len(blocks)))
            for span, parts in blocks:
                yield from _in_tasks(source, span, parts, math.ceil(len(parts) / tasks_per_block))

    def split_by_model(self, first: int, ends: Sequence[int]) -> Iterator[Iterator[Task]]:
        """Yield a queue for each model; a task has some conditions of a block."""
        by_model: dict[int, list[tuple[int, PlannedCell]]] = {}
        for number, cell in self._cells:
            by_model.setdefault(self._numbers[cell.model], []).append((number, cell))
        most = _conditions_each(self._cells, first, ends)
        yield from (self._of_model(cells, first, ends, most) for cells in by_model.values())

    def _of_model(
        self, cells: Iterable[tuple[int, PlannedCell]], first: int, ends: Sequence[int], most: int
    ) -> Iterator[Task]:
        by_source: dict[int, list[tuple[int, PlannedCell]]] = {}
        for number, cell in cells:
            by_source.setdefault(cell.source_index, []).append((number, cell))
        for source, mine in by_source.items():
            for span in self._spans(source, first, ends[source]):
                yield from _in_tasks(source, span, self._parts(mine, *span), most)

    def _spans(self, source: int, first: int, behind: int) -> list[Range]:
        """Return the blocks of a range of images; those of a stream have whole batches."""
        schedule = self._sources[source].schedule
        return _spans(first, behind) if schedule is None else list(schedule.blocks(BLOCK))

    def _parts(self, cells: Iterable[tuple[int, PlannedCell]], start: int, stop: int) -> list[TaskPart]:
        """Return the missing parts of a block, shared by models that lack the same predictions."""
        wanted: dict[tuple[Condition, Range], list[tuple[int, int]]] = {}
        for number, cell in cells:
            for span in cell.gaps_within(start, stop):
                wanted.setdefault((cell.condition, span), []).append((number, self._numbers[cell.model]))
        return [TaskPart(condition, span, tuple(some)) for (condition, span), some in wanted.items()]


def _conditions_each(cells: Iterable[tuple[int, PlannedCell]], first: int, ends: Sequence[int]) -> int:
    """Return the number of conditions per task; smaller with few blocks."""
    conditions = Counter(cell.source_index for _, cell in cells)
    blocks = sum(count * len(_spans(first, ends[source])) for source, count in conditions.items())
    return min(_CONDITIONS, max(1, blocks // _TASKS))


def _spans(first: int, behind: int) -> list[Range]:
    """Return the blocks of a range of images."""
    edges = range(first - first % BLOCK, behind, BLOCK)
    return [(max(edge, first), min(edge + BLOCK, behind)) for edge in edges]


def _in_tasks(source: int, span: Range, parts: Sequence[TaskPart], most: int) -> Iterator[Task]:
    """Split the parts of a block into tasks of at most `most` parts; a sequence is not split."""
    task: tuple[TaskPart, ...] = ()
    for some in by_sequence(parts):
        if task and len(task) + len(some) > most:
            yield Task(span, task, source)
            task = ()
        task += some
    if task:
        yield Task(span, task, source)


def by_sequence(parts: Iterable[TaskPart]) -> Iterator[tuple[TaskPart, ...]]:
    """Yield parts that are computed together: adjacent frames of a sequence, or a single part."""
    for _, some in groupby(enumerate(parts), key=_sequence_of):
        yield tuple(part for _, part in some)


def _sequence_of(numbered: tuple[int, TaskPart]) -> Hashable:
    number, part = numbered
    shift = part.condition.shift
    return (part.span, part.cells, shift.group) if isinstance(shift, Frame) else number
