"""What evaluation asks of a store; `beaufort.testing.check_store` says whether one keeps the promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from beaufort.store.cells import Cell
from beaufort.store.pieces import Listing, Piece


@runtime_checkable
class Store(Protocol):
    """Keeps tables of answers: pieces of cells, each whole or absent, whatever happens to who writes them.

    Several threads, and several processes, may write at once. The same piece of the same cell has the same
    rows, whoever writes it.
    """

    @property
    def location(self) -> str:
        """Where it is, for messages."""

    def listing(self) -> Listing:
        """The pieces that are there, by the fingerprint of their cell."""

    def missing(self, cell: Cell, count: int, listing: Listing | None = None) -> list[tuple[int, int]]:
        """The ranges of images below `count` that have no answer yet, in order."""

    def read(
        self, cell: Cell, listing: Listing | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """All answers of a cell in the order of the data set, each image once, with its `place` in it.

        Only the `columns` asked for, if some are. A `StoreError` if there are none.
        """

    def write(
        self, cell: Cell, start: int, table: pa.Table, provenance: Mapping[str, Any] | None = None
    ) -> Piece:
        """Store the answers to the images from `start` on; when this returns, they survive a kill."""

    def gather(self, cell: Cell, listing: Listing | None = None) -> Piece | None:
        """Join adjacent pieces of a cell into one, never losing an answer; None if nothing was joined."""

    def write_run(self, facts: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        """Store a record of what a run was asked for; a record with the same facts is replaced."""

    def runs(self) -> list[dict[str, Any]]:
        """The records of runs, facts and notes together, the oldest `time` first."""
