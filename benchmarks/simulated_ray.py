"""Simulated Ray workers and a store that keeps nothing, which leave only the work of the driver."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import pyarrow as pa

from beaufort.evaluation.engines import NodeSpeed
from beaufort.evaluation.planning import PlannedCell
from beaufort.evaluation.runner import TaskRunner
from beaufort.evaluation.task_queue import Assignment, TaskQueue
from beaufort.evaluation.tasks import BatchDone, CellCounts, Event, StoredPredictions, Task
from beaufort.store import Cell, Listing, Piece, Store, StoreError


class SimulatedStore:
    """Remembers which cells are complete, but no predictions."""

    location = "nowhere"

    def __init__(self) -> None:
        self._complete: Listing = {}

    def listing(self) -> Listing:
        return dict(self._complete)

    def missing(self, _: Cell, count: int, *__: object) -> list[tuple[int, int]]:
        return [(0, count)]

    def read(self, *_: object, **__: object) -> pa.Table:
        raise StoreError("this store keeps no predictions")

    def write(self, *_: object, **__: object) -> Piece:
        raise StoreError("this store keeps no predictions")

    def gather(self, cell: Cell, listing: Listing | None = None) -> Piece | None:
        pieces = (listing or {}).get(cell.fingerprint, [])
        whole = Piece(pieces[0].path, cell.fingerprint, 0, max(piece.stop for piece in pieces))
        self._complete[cell.fingerprint] = [whole]
        return whole

    def write_run(self, facts: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        pass

    def runs(self) -> list[dict[str, Any]]:
        return []


class SimulatedRay:
    """Replaces the Ray engine; the scheduler is the same."""

    workers: ClassVar[int] = 64
    one_model = True
    nodes: ClassVar[Mapping[str, NodeSpeed]] = {}

    def __init__(
        self, _: TaskRunner, __: object, store: Store, works: Sequence[PlannedCell], *___: object
    ) -> None:
        self._store = store
        self._works = works

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def gather(self, number: int, pieces: Sequence[Piece]) -> None:
        cell = self._works[number].cell
        self._store.gather(cell, {cell.fingerprint: list(pieces)})

    def run(self, queues: Iterable[Iterable[Task]]) -> Generator[Event]:
        dispatch = TaskQueue(queues)
        held: list[deque[Assignment]] = [deque() for _ in range(self.workers)]
        while not dispatch.finished:
            for worker, tickets in enumerate(held):
                while (ticket := dispatch.take(worker)) is not None:
                    tickets.append(ticket)
                if tickets:
                    dispatch.started(worker, 1)
                    yield from self._do(worker, tickets.popleft(), dispatch)

    def _do(self, worker: int, ticket: Assignment, dispatch: TaskQueue) -> Generator[Event]:
        for part in ticket.task.parts:
            start, stop = part.span
            for number, _ in part.cells:
                cell, rows = self._works[number].cell, stop - start
                path = f"predictions/{cell.folder}/{cell.fingerprint}-{start}-{stop}.parquet"
                dispatch.stored(worker, number, start, stop)
                yield BatchDone(number, rows, rows, rows)
                yield StoredPredictions(
                    number, Piece(path, cell.fingerprint, start, stop), CellCounts(rows, rows, 0, 0)
                )
