"""Answers are written behind the run: while the next ones are made, on threads of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa

from beaufort.evaluation.planning import Facts, Work
from beaufort.store import Cell, Listing, Piece, Store, StoreError, answered, correct, truth_of, with_truth
from beaufort.store.columns import numbers_of

_THREADS = 2
_WAITING = 64
"""Maximum pieces waiting to be written; when there are more, the run waits for the store."""


class Counts(NamedTuple):
    """Number of images of a cell by what became of them."""

    images: int
    """Those that could be read and have a label."""
    correct: int
    unread: int
    unlabeled: int
    """Those that could be read and have no label; they are left out."""


class Keeper:
    """Writes pieces to a store, and puts those of a cell together as soon as it is whole.

    What was handed over is written, also if the run ends early; an error of the store is raised at the next
    call.

    Args:
        store: where pieces are.
        works: the cells.
        listing: what the store has.
        gather: has the pieces of a work put together elsewhere; this process does it if None. What was not
            put together is, by this process, when answers are counted.
    """

    def __init__(
        self,
        store: Store,
        works: Sequence[Work],
        listing: Listing,
        gather: Callable[[int, Sequence[Piece]], None] | None = None,
    ) -> None:
        self._store = store
        self._works = works
        self._gather_elsewhere = gather
        self._pieces = [list(listing.get(work.cell.fingerprint, ())) if listing else [] for work in works]
        self._left = [work.images for work in works]
        self._counts = [Counts(0, 0, 0, 0)] * len(works)
        """Of what was written."""
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="beaufort keeper")
        self._waiting: deque[Future[None]] = deque()
        self._recorded: Future[None] | None = None
        self.notes: list[str] = []
        """What could not be done to the store and changes no result."""
        self.unread: set[tuple[int, str]] = set()
        """Images without an answer, by setup and id, as far as `counts` had to read them from the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True)

    def record(self, facts_and_notes: Callable[[], tuple[Facts, Facts]], *, needed: bool = True) -> None:
        """Have a record of the run written, if it is not yet, before any piece.

        A store that has all answers may be one that cannot be written to; then it is not `needed`.
        """
        if self._recorded is None:
            self._recorded = self._pool.submit(self._record, facts_and_notes, needed)
            self._waiting.append(self._recorded)

    def _record(self, facts_and_notes: Callable[[], tuple[Facts, Facts]], needed: bool) -> None:
        try:
            self._store.write_run(*facts_and_notes())
        except StoreError as error:
            if needed:
                raise  # its answers could not be kept either
            self.notes.append(f"the store has all answers, and cannot be written to ({error})")

    def write(self, work: int, start: int, table: pa.Table, provenance: Mapping[str, Any]) -> None:
        """Queue a piece to be written."""
        self.flush(_WAITING - 1)
        self._waiting.append(self._pool.submit(self._write, work, start, table, provenance))

    def stored(self, work: int, piece: Piece, counts: Counts) -> None:
        """Take note of a piece that was written elsewhere."""
        self._add(work, piece, counts)

    def flush(self, most: int = 0) -> None:
        """Wait until at most `most` pieces are left to write."""
        while len(self._waiting) > most or (self._waiting and self._waiting[0].done()):
            self._waiting.popleft().result()

    def counts(self, first: int | None = None, failed: Collection[int] = ()) -> list[Counts | None]:
        """What the first so many images of each work add up to; the pieces of a cell are put together.

        None for works that are known to have `failed`.
        """
        self.flush()
        listing = self._store.listing()
        scattered = [w.cell for w in self._works if len(listing.get(w.cell.fingerprint, ())) > 1]
        if scattered:
            list(self._pool.map(lambda cell: self._gather(cell, listing), scattered))
            listing = self._store.listing()
        numbered = list(enumerate(self._works))
        return list(
            self._pool.map(
                lambda one: (
                    None if one[0] in failed else self._count(one[0], first or one[1].setup.count, listing)
                ),
                numbered,
            )
        )

    def _write(self, number: int, start: int, table: pa.Table, provenance: Mapping[str, Any]) -> None:
        if self._recorded is not None:
            self._recorded.result()
        piece = self._store.write(self._works[number].cell, start, table, provenance)
        self._add(number, piece, count_answers(table))

    def _add(self, number: int, piece: Piece, counts: Counts) -> None:
        """Count a piece that is in the store; if it was the last of its cell, put them together."""
        with self._lock:
            pieces = self._pieces[number]
            pieces.append(piece)
            before = self._counts[number]
            self._counts[number] = Counts(*(a + b for a, b in zip(before, counts, strict=True)))
            self._left[number] -= piece.stop - piece.start
            whole = not self._left[number]
            if whole:
                self._pieces[number] = []
        if not whole or len(pieces) < 2:
            return
        if self._gather_elsewhere is not None:
            self._gather_elsewhere(number, pieces)
            return
        cell = self._works[number].cell
        self._gather(cell, {cell.fingerprint: pieces})

    def _gather(self, cell: Cell, listing: Listing) -> None:
        try:
            self._store.gather(cell, listing)
        except StoreError as error:
            self.notes.append(f"files could not be put together, which changes no result ({error})")

    def _count(self, number: int, count: int, listing: Listing) -> Counts:
        """What was written, if that is all there is; else what the store says."""
        work, written = self._works[number], self._counts[number]
        seen = written.images + written.unread + written.unlabeled
        if seen == count and _cover(listing.get(work.cell.fingerprint, ()), count):
            return written
        sets = ("truth",) if "truths" in work.cell.data.get("labels", ()) else ()
        table = self._store.read(work.cell, listing, ("id", "label", "top", *sets)).slice(0, count)
        if len(table) != count:
            raise StoreError(
                f"the store lacks answers of {work.model.spec.name} under {work.condition} that were kept in "
                f"it: {len(table)} of {count} are there; it was changed while the run was under way, or its "
                "listing lags; the same command makes what is missing"
            )
        with self._lock:
            lost = table.filter(table["top"].is_null())["id"].to_pylist()
            self.unread.update((work.place, str(id)) for id in lost)
        return count_answers(table)


def count_answers(table: pa.Table) -> Counts:
    """What the answers in a table add up to."""
    every = len(table)
    table = answered(table)
    scored = with_truth(table)
    lost, apart = every - len(table), len(table) - len(scored)
    if not len(scored):
        return Counts(0, 0, lost, apart)
    top: Any = scored["top"].combine_chunks()
    classes = numbers_of(top.flatten()).reshape(len(scored), -1)
    return Counts(len(scored), int(correct(classes, truth_of(scored)).sum()), lost, apart)


def _cover(pieces: Iterable[Piece], count: int) -> bool:
    """Whether pieces leave no image below `count` out."""
    at = 0
    for piece in sorted(pieces, key=lambda piece: piece.start):
        if piece.start > at:
            return False
        at = max(at, piece.stop)
    return at >= count
