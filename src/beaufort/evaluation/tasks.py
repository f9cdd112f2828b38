"""Tasks: picklable pieces of a plan that an engine schedules, and the events that come back.

A task is work on one block of images, which are decoded once: some conditions, each for the models that lack
predictions. Blocks start at multiples of `BLOCK` images, whatever was done before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from beaufort.data import Problem
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.planning import Plan, PlannedCell, Range
from beaufort.store import Piece
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import Frame

BLOCK = 1000
"""Images in a block; a block becomes one file of the store for each cell."""
_TASKS_PER_PROCESS = 4
"""At least so many, if conditions allow: processes that finish early take more of them."""
_CONDITIONS = 8
"""Conditions of a task for one model, at most."""
_TASKS = 64
"""Tasks of a run whose tasks are for one model, at least, if conditions allow: with few, workers that finish
early would wait for the others."""


class TaskPart(NamedTuple):
    """One condition on images of a block, for the models that lack predictions."""

    condition: Condition
    span: Range
    cells: tuple[tuple[int, int], ...]
    """For each model its number in the plan's list of cells, and its number among the models of the run."""


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
    """Those of them that have a label."""
    correct: int


class PredictionRows(NamedTuple):
    """Scored rows to store: those of a cell for the images from `start` on."""

    cell: int
    start: int
    table: pa.Table
    backend: str
    """Name of the device that corrupted the images."""


class CellCounts(NamedTuple):
    """Number of images of a cell by what became of them."""

    images: int
    """Those that could be read and have a label."""
    correct: int
    unread: int
    unlabeled: int
    """Those that could be read and have no label; they are left out."""


class StoredPredictions(NamedTuple):
    """Predictions that a worker stored itself."""

    cell: int
    piece: Piece
    counts: CellCounts


class TaskFailure(NamedTuple):
    """A part of a task that ended its worker each time it was tried."""

    cells: tuple[int, ...]
    span: Range
    reason: str


class Note(NamedTuple):
    """Something that a reader of the results should know."""

    text: str


Event = BatchDone | PredictionRows | StoredPredictions | TaskFailure | Note | Problem


class TaskSplitter:
    """Splits the missing part of a plan into tasks.

    Args:
        plan: the plan.
        models: the models that lack predictions, in the order of the run.
        processes: how many processes share the tasks.
    """

    def __init__(self, plan: Plan, models: Sequence[LazyModel], processes: int) -> None:
        self._cells = [(number, cell) for number, cell in enumerate(plan.cells) if cell.gaps]
        self._numbers = {model: number for number, model in enumerate(models)}
        self._processes = processes

    def split(self, first: int, ends: Sequence[int]) -> Iterator[Task]:
        """A block each; where blocks are few, processes share the conditions of one."""
        for source, end in enumerate(ends):
            cells = [(number, cell) for number, cell in self._cells if cell.source_index == source]
            blocks = [(span, parts) for span in _spans(first, end) if (parts := self._parts(cells, *span))]
            wanted = _TASKS_PER_PROCESS * self._processes if self._processes > 1 else 1
            tasks_per_block = math.ceil(wanted / max(1, len(blocks)))
            for span, parts in blocks:
                yield from _in_tasks(source, span, parts, math.ceil(len(parts) / tasks_per_block))

    def split_by_model(self, first: int, ends: Sequence[int]) -> Iterator[Iterator[Task]]:
        """A queue for each model, of tasks with some conditions of a block each."""
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
            for span in _spans(first, ends[source]):
                yield from _in_tasks(source, span, self._parts(mine, *span), most)

    def _parts(self, cells: Iterable[tuple[int, PlannedCell]], start: int, stop: int) -> list[TaskPart]:
        """What is missing of a block, for all models together where they lack the same."""
        wanted: dict[tuple[Condition, Range], list[tuple[int, int]]] = {}
        for number, cell in cells:
            for span in cell.gaps_within(start, stop):
                wanted.setdefault((cell.condition, span), []).append((number, self._numbers[cell.model]))
        return [TaskPart(condition, span, tuple(some)) for (condition, span), some in wanted.items()]


def _conditions_each(cells: Iterable[tuple[int, PlannedCell]], first: int, ends: Sequence[int]) -> int:
    """Conditions of a task, fewer where blocks are few."""
    conditions = Counter(cell.source_index for _, cell in cells)
    blocks = sum(count * len(_spans(first, ends[source])) for source, count in conditions.items())
    return min(_CONDITIONS, max(1, blocks // _TASKS))


def _spans(first: int, behind: int) -> list[Range]:
    """The blocks of some images."""
    edges = range(first - first % BLOCK, behind, BLOCK)
    return [(max(edge, first), min(edge + BLOCK, behind)) for edge in edges]


def _in_tasks(source: int, span: Range, parts: Sequence[TaskPart], most: int) -> Iterator[Task]:
    """The parts of a block in tasks of about so many parts; frames of one sequence stay together."""
    task: tuple[TaskPart, ...] = ()
    for some in by_sequence(parts):
        if task and len(task) + len(some) > most:
            yield Task(span, task, source)
            task = ()
        task += some
    if task:
        yield Task(span, task, source)


def by_sequence(parts: Iterable[TaskPart]) -> Iterator[tuple[TaskPart, ...]]:
    """Parts that are made together: neighbors that are frames of one sequence; most parts are alone."""
    for _, some in groupby(enumerate(parts), key=_sequence_of):
        yield tuple(part for _, part in some)


def _sequence_of(numbered: tuple[int, TaskPart]) -> Hashable:
    number, part = numbered
    shift = part.condition.shift
    return (part.span, part.cells, shift.group) if isinstance(shift, Frame) else number
