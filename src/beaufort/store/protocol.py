"""What evaluation asks of a store; `beaufort.testing.check_store` says whether one keeps the promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from beaufort.store.cells import Cell
from beaufort.store.pieces import Listing, Piece

__all__ = ["Store"]


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
        """Keep the answers to the images from `start` on; when this returns, no kill takes them away."""

    def gather(self, cell: Cell, listing: Listing | None = None) -> Piece | None:
        """Put pieces that lie end to end into one; None if that cannot be. No answer is lost meanwhile."""

    def write_run(self, facts: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        """Keep what a run was asked for; the same facts replace what was kept of them."""

    def runs(self) -> list[dict[str, Any]]:
        """What runs were asked for: facts and notes together, the oldest `time` first."""
