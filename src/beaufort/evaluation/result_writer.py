"""Writes predictions to a store in threads, while the next ones are computed."""

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
from beaufort.evaluation.tasks import CellCounts, State
from beaufort.models.scoring import correct
from beaufort.store import (
    Cell,
    Listing,
    Piece,
    Store,
    StoreError,
    labels_of,
    remove_state,
    with_label,
    with_prediction,
    write_state,
)
from beaufort.store.columns import column_of, numbers_of

_THREADS = 2
_WAITING = 64
"""Maximum number of pieces waiting to be written; then the run waits for the store."""
_COLUMNS = ("id", "label", "top", "p", "p_label", "nll", "brier", "entropy")
_KEPT_BYTES = 256 << 20
"""Maximum bytes of written predictions kept in memory for scoring."""


class ResultWriter:
    """Writes pieces to a store, and gathers those of a cell when it is complete.

    Queued pieces are written even if the run ends early. An error of the store is raised by the next call.

    Args:
        store: the store.
        cells: the cells of the plan.
        listing: the files of the store.
        gather: function that gathers the pieces of a cell in another process; this process if None.
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
        """Counts of written predictions by cell."""
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="beaufort writer")
        self._in_order = ThreadPoolExecutor(1, thread_name_prefix="beaufort state writer")
        self._waiting: deque[Future[None]] = deque()
        self._recorded: Future[None] | None = None
        self.notes: list[str] = []
        """Problems of the store that do not change results."""
        self.unread: set[tuple[int, str]] = set()
        """Sources and ids of images without a prediction that `counts` read from the store."""
        self.listing: Listing = listing
        """The known files of the store."""
        self._recent: dict[int, list[tuple[int, pa.Table]]] = {}
        """Written tables by cell, each with the index of its first image."""
        self._room = _KEPT_BYTES

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True)
        self._in_order.shutdown(wait=True)

    def record(self, facts_and_notes: Callable[[], tuple[Facts, Facts]], *, needed: bool = True) -> None:
        """Queue the record of the run, once, before any piece.

        If the store has all predictions, the record is not `needed`, and the store may be read-only.
        """
        if self._recorded is None:
            self._recorded = self._pool.submit(self._record, facts_and_notes, needed)
            self._waiting.append(self._recorded)

    def _record(self, facts_and_notes: Callable[[], tuple[Facts, Facts]], needed: bool) -> None:
        try:
            self._store.write_run(*facts_and_notes())
        except StoreError as error:
            if needed:
                raise  # predictions cannot be written either
            self.notes.append(
                f"the record of the run was not written, because the store is read-only ({error})"
            )

    def write(
        self,
        cell: int,
        start: int,
        table: pa.Table,
        provenance: Mapping[str, Any],
        state: State | None = None,
    ) -> None:
        """Queue a piece, and the state of a model that adapts after its last image."""
        self.flush(_WAITING - 1)
        pool = self._pool if state is None else self._in_order  # a state replaces the one before
        self._waiting.append(pool.submit(self._write, cell, start, table, provenance, state))

    def stored(self, cell: int, piece: Piece, counts: CellCounts) -> None:
        """Count a piece that was written by another process."""
        self._add(cell, piece, counts)

    def flush(self, most: int = 0) -> None:
        """Wait until at most `most` pieces are queued."""
        while len(self._waiting) > most or (self._waiting and self._waiting[0].done()):
            self._waiting.popleft().result()

    def counts(self, first: int | None = None, failed: Collection[int] = ()) -> list[CellCounts | None]:
        """Return the counts of each cell over the first images, after gathering its pieces.

        None for cells that have `failed`.
        """
        self.flush()
        resumed = not any(one.images for one in self._cells)  # nothing was written
        listing = self.listing if resumed else self._store.listing()
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
        """Return the store, with recent predictions read from memory."""
        with self._lock:
            recent = {self._cells[number].cell.fingerprint: tables for number, tables in self._recent.items()}
        return RecentPredictions(self._store, recent)

    def _keep(self, number: int, start: int, table: pa.Table) -> None:
        """Keep a table in memory up to the limit."""
        table = table.drop_columns(["logits"]) if "logits" in table.column_names else table
        with self._lock:
            self._room -= table.nbytes
            if self._room < 0:
                self._recent.clear()
            else:
                self._recent.setdefault(number, []).append((start, table))

    def _write(
        self, number: int, start: int, table: pa.Table, provenance: Mapping[str, Any], state: State | None
    ) -> None:
        if self._recorded is not None:
            self._recorded.result()
        one, stop = self._cells[number], start + len(table)
        if state is not None and stop < one.source.count:  # before the rows, which are not computed again
            write_state(self._store, one.cell, stop, state)
        elif state is not None and "passes" in state:
            provenance = {**provenance, "passes": state["passes"].tolist()}
        piece = self._store.write(one.cell, start, table, provenance)
        if state is not None and start:
            remove_state(self._store, one.cell, start)
        self._keep(number, start, table)
        self._add(number, piece, count_predictions(table))

    def _add(self, number: int, piece: Piece, counts: CellCounts) -> None:
        """Count a stored piece; gather the pieces of a complete cell."""
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
            self.notes.append(f"cannot gather files, which does not change results ({error})")

    def _count(self, number: int, count: int, listing: Listing) -> CellCounts:
        """Return the counts of written predictions if they are complete; else read the store."""
        planned, written = self._cells[number], self._counts[number]
        seen = written.images + written.unread + written.unlabeled
        if seen == count and _cover(listing.get(planned.cell.fingerprint, ()), count):
            return written
        sets = ("label_set",) if "truths" in planned.cell.data.get("labels", ()) else ()
        table = self._store.read(planned.cell, listing, (*_COLUMNS, *sets)).drop_columns(["place"])
        if not written.images + written.unread + written.unlabeled:
            self._keep(number, 0, table)  # read once, also for the results
        table = table.slice(0, count)
        if len(table) != count:
            raise StoreError(
                f"the store has {len(table)} of {count} predictions of {planned.model.spec.name} under "
                f"{planned.condition}: it changed during the run, or its listing is out of date; the same "
                "run completes it"
            )
        with self._lock:
            lost = table.filter(table["top"].is_null())["id"].to_pylist()
            self.unread.update((planned.source_index, str(id)) for id in lost)
        return count_predictions(table)


class RecentPredictions:
    """A read-only view of a store, with some cells in memory.

    Args:
        store: the store.
        tables: predictions by fingerprint, each table with the index of its first image.
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
        """Read a cell, from memory if it is complete there."""
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
    """Count the predictions in a table."""
    every = len(table)
    table = with_prediction(table)
    scored = with_label(table)
    lost, apart = every - len(table), len(table) - len(scored)
    if not len(scored):
        return CellCounts(0, 0, lost, apart)
    top: Any = scored["top"].combine_chunks()
    classes = numbers_of(top.flatten()).reshape(len(scored), -1)
    return CellCounts(len(scored), int(correct(classes, labels_of(scored)).sum()), lost, apart)


def _cover(pieces: Iterable[Piece], count: int) -> bool:
    """Return whether pieces cover all images below `count`."""
    at = 0
    for piece in sorted(pieces, key=lambda piece: piece.start):
        if piece.start > at:
            return False
        at = max(at, piece.stop)
    return at >= count
