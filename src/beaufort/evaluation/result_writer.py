"""Writes predictions to a store in threads of its own, while the next ones are computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from threading import Lock
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from beaufort.evaluation.planning import Facts, PlannedCell
from beaufort.evaluation.tasks import CellCounts
from beaufort.models.scoring import correct
from beaufort.store import Cell, Listing, Piece, Store, StoreError, truth_of, with_label, with_prediction
from beaufort.store.columns import column_of, numbers_of

_THREADS = 2
_WAITING = 64
"""Maximum pieces waiting to be written; when there are more, the run waits for the store."""
_KEPT_BYTES = 256 << 20
"""Maximum bytes of written predictions that stay in memory, so that scoring need not read them back."""


class ResultWriter:
    """Writes pieces to a store, and puts those of a cell together as soon as it is whole.

    What was handed over is written, also if the run ends early; an error of the store is raised at the next
    call.

    Args:
        store: where pieces are.
        cells: the cells of the plan.
        listing: what the store has.
        gather: has the pieces of a cell put together elsewhere; this process does it if None. What was not
            put together is, by this process, when predictions are counted.
    """

    def __init__(
        self,
        store: Store,
        cells: Sequence[PlannedCell],
        listing: Listing,
        gather: Callable[[int, Sequence[Piece]], None] | None = None,
    ) -> None:
        self._store = store
        self._cells = cells
        self._gather_elsewhere = gather
        self._pieces = [list(listing.get(one.cell.fingerprint, ())) if listing else [] for one in cells]
        self._left = [one.images for one in cells]
        self._counts = [CellCounts(0, 0, 0, 0)] * len(cells)
        """Of what was written."""
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="beaufort writer")
        self._waiting: deque[Future[None]] = deque()
        self._recorded: Future[None] | None = None
        self.notes: list[str] = []
        """What could not be done to the store and changes no result."""
        self.unread: set[tuple[int, str]] = set()
        """Images without a prediction, by source and id, as far as `counts` had to read them."""
        self.listing: Listing = listing
        """The files of the store, as far as they are known."""
        self._recent: dict[int, list[tuple[int, pa.Table]]] = {}
        """What was written, by cell, with the first image of each table."""
        self._room = _KEPT_BYTES

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True)

    def record(self, facts_and_notes: Callable[[], tuple[Facts, Facts]], *, needed: bool = True) -> None:
        """Have a record of the run written, if it is not yet, before any piece.

        A store that has all predictions may be read-only; then the record is not `needed`.
        """
        if self._recorded is None:
            self._recorded = self._pool.submit(self._record, facts_and_notes, needed)
            self._waiting.append(self._recorded)

    def _record(self, facts_and_notes: Callable[[], tuple[Facts, Facts]], needed: bool) -> None:
        try:
            self._store.write_run(*facts_and_notes())
        except StoreError as error:
            if needed:
                raise  # predictions could not be written either
            self.notes.append(f"the store has all predictions, and cannot be written to ({error})")

    def write(self, cell: int, start: int, table: pa.Table, provenance: Mapping[str, Any]) -> None:
        """Queue a piece to be written."""
        self.flush(_WAITING - 1)
        self._waiting.append(self._pool.submit(self._write, cell, start, table, provenance))

    def stored(self, cell: int, piece: Piece, counts: CellCounts) -> None:
        """Take note of a piece that was written elsewhere."""
        self._add(cell, piece, counts)

    def flush(self, most: int = 0) -> None:
        """Wait until at most `most` pieces are left to write."""
        while len(self._waiting) > most or (self._waiting and self._waiting[0].done()):
            self._waiting.popleft().result()

    def counts(self, first: int | None = None, failed: Collection[int] = ()) -> list[CellCounts | None]:
        """What the first so many images of each cell add up to; the pieces of a cell are put together.

        None for cells that are known to have `failed`.
        """
        self.flush()
        listing = self._store.listing()
        scattered = [one.cell for one in self._cells if len(listing.get(one.cell.fingerprint, ())) > 1]
        if scattered:
            list(self._pool.map(lambda cell: self._gather(cell, listing), scattered))
            listing = self._store.listing()
        self.listing = listing

        def count(number: int) -> CellCounts | None:
            wanted = first or self._cells[number].source.count
            return None if number in failed else self._count(number, wanted, listing)

        return list(self._pool.map(count, range(len(self._cells))))

    def reader(self) -> Store:
        """The store, with predictions of this run read from memory where they are still there."""
        with self._lock:
            recent = {self._cells[number].cell.fingerprint: tables for number, tables in self._recent.items()}
        return RecentPredictions(self._store, recent)

    def _keep(self, number: int, start: int, table: pa.Table) -> None:
        """Keep a table in memory while there is room."""
        table = table.drop_columns(["logits"]) if "logits" in table.column_names else table
        with self._lock:
            self._room -= table.nbytes
            if self._room < 0:
                self._recent.clear()
            else:
                self._recent.setdefault(number, []).append((start, table))

    def _write(self, number: int, start: int, table: pa.Table, provenance: Mapping[str, Any]) -> None:
        if self._recorded is not None:
            self._recorded.result()
        piece = self._store.write(self._cells[number].cell, start, table, provenance)
        self._keep(number, start, table)
        self._add(number, piece, count_predictions(table))

    def _add(self, number: int, piece: Piece, counts: CellCounts) -> None:
        """Count a piece that is in the store; if it was the last of its cell, put them together."""
        with self._lock:
            pieces = self._pieces[number]
            pieces.append(piece)
            before = self._counts[number]
            self._counts[number] = CellCounts(*(a + b for a, b in zip(before, counts, strict=True)))
            self._left[number] -= piece.stop - piece.start
            whole = not self._left[number]
            if whole:
                self._pieces[number] = []
        if not whole or len(pieces) < 2:
            return
        if self._gather_elsewhere is not None:
            self._gather_elsewhere(number, pieces)
            return
        cell = self._cells[number].cell
        self._gather(cell, {cell.fingerprint: pieces})

    def _gather(self, cell: Cell, listing: Listing) -> None:
        try:
            self._store.gather(cell, listing)
        except StoreError as error:
            self.notes.append(f"files could not be put together, which changes no result ({error})")

    def _count(self, number: int, count: int, listing: Listing) -> CellCounts:
        """What was written, if that is all there is; else what the store says."""
        planned, written = self._cells[number], self._counts[number]
        seen = written.images + written.unread + written.unlabeled
        if seen == count and _cover(listing.get(planned.cell.fingerprint, ()), count):
            return written
        sets = ("truth",) if "truths" in planned.cell.data.get("labels", ()) else ()
        table = self._store.read(planned.cell, listing, ("id", "label", "top", *sets)).slice(0, count)
        if len(table) != count:
            raise StoreError(
                f"the store has {len(table)} of {count} predictions of {planned.model.spec.name} under "
                f"{planned.condition}: it was changed during the run, or its listing lags; run the same "
                "command again to complete it"
            )
        with self._lock:
            lost = table.filter(table["top"].is_null())["id"].to_pylist()
            self.unread.update((planned.source_index, str(id)) for id in lost)
        return count_predictions(table)


class RecentPredictions:
    """A store for reading, with some cells in memory.

    Args:
        store: what the cells were written to.
        tables: predictions by the fingerprint of their cell, with the first image of each table.
    """

    def __init__(self, store: Store, tables: Mapping[str, Sequence[tuple[int, pa.Table]]]) -> None:
        self._store = store
        self._tables = tables

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._store, name)

    def read(
        self, cell: Cell, listing: Listing | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """As the store reads a cell; from memory if the whole of it is there."""
        parts = sorted(self._tables.get(cell.fingerprint, ()), key=lambda part: part[0])
        names = set(parts[0][1].column_names) if parts else set()
        pieces = (listing or {}).get(cell.fingerprint, ())
        total = sum(len(table) for _, table in parts)
        adjacent = all(a + len(t) == b for (a, t), (b, _) in pairwise(parts))
        whole = parts and parts[0][0] == 0 and adjacent and max((p.stop for p in pieces), default=0) == total
        if columns is None or not whole or not names >= set(columns):
            return self._store.read(cell, listing, columns)
        table = pa.concat_tables(part for _, part in parts).select(list(columns))
        return table.add_column(0, "place", column_of(np.arange(total, dtype=np.int64)))


def count_predictions(table: pa.Table) -> CellCounts:
    """What the predictions in a table add up to."""
    every = len(table)
    table = with_prediction(table)
    scored = with_label(table)
    lost, apart = every - len(table), len(table) - len(scored)
    if not len(scored):
        return CellCounts(0, 0, lost, apart)
    top: Any = scored["top"].combine_chunks()
    classes = numbers_of(top.flatten()).reshape(len(scored), -1)
    return CellCounts(len(scored), int(correct(classes, truth_of(scored)).sum()), lost, apart)


def _cover(pieces: Iterable[Piece], count: int) -> bool:
    """Whether pieces leave no image below `count` out."""
    at = 0
    for piece in sorted(pieces, key=lambda piece: piece.start):
        if piece.start > at:
            return False
        at = max(at, piece.stop)
    return at >= count
