"""The interface of a store; `beaufort.testing.check_store` tests an implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from beaufort.store.cells import Cell
from beaufort.store.pieces import Listing, Piece


@runtime_checkable
class Store(Protocol):
    """Keeps tables of predictions: pieces of cells, each complete or missing, even if a writer is killed.

    Several threads and processes may write at the same time. The same piece of the same cell has the same
    rows, whichever process writes it.
    """

    @property
    def location(self) -> str:
        """Location, for messages."""

    def listing(self) -> Listing:
        """Return the stored pieces by the fingerprint of their cell."""

    def missing(self, cell: Cell, count: int, listing: Listing | None = None) -> list[tuple[int, int]]:
        """Return the ranges of images below `count` without a prediction, in order."""

    def read(
        self, cell: Cell, listing: Listing | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the predictions of a cell in the order of the dataset, each image once.

        The column `place` is the index in the dataset. With `columns`, only these are read. A `StoreError`
        if the cell has no predictions.
        """

    def write(
        self, cell: Cell, start: int, table: pa.Table, provenance: Mapping[str, Any] | None = None
    ) -> Piece:
        """Store the predictions of the images from `start` on; when this returns, they survive a kill."""

    def gather(self, cell: Cell, listing: Listing | None = None) -> Piece | None:
        """Join adjacent pieces of a cell without losing a prediction; None if nothing was joined."""

    def write_run(self, facts: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        """Store the record of a run; a record with the same facts is replaced."""

    def runs(self) -> list[dict[str, Any]]:
        """Return the records of runs, facts and notes together, oldest `time` first."""
