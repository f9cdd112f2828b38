"""Predictions in files: one immutable Parquet file a piece of a cell, whole or absent.

```
STORE/predictions/model=NAME/condition=NAME/FINGERPRINT-START-STOP.parquet
STORE/runs/DIGEST.json
STORE/index.parquet
STORE/quarantine/
```

A file holds the answers to the images START … STOP - 1 of the data set, and in its footer the facts of its
cell, the sums of its rows and where it came from: it explains itself, so that stores are merged by copying
files. It is written beside its place and renamed; on an object store it is put in one piece. Two processes,
or two machines, may fill one store: the same piece has the same name, and whoever comes last replaces it by
the same rows. Where files overlap, `cover` says which rows of which are read. A record of each run says what
was asked for: the suite, the data set, the models.

Whatever is read is checked. A file that is needed and cannot be used ends the reading with a message that
names it. Files may be gathered into others at any time: what is gone is looked for again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from beaufort.store._disk import open_disk
from beaufort.store._footer import Footer, encode_piece, read_content, read_footer, read_table
from beaufort.store._format import DamagedError, NewerFormatError
from beaufort.store._maintenance import Merged, collect, gather, merge, verify
from beaufort.store._records import FOLDER as RUNS
from beaufort.store._records import decode_record, encode_record, is_record
from beaufort.store.cells import Cell
from beaufort.store.columns import column_of
from beaufort.store.findings import FaultyFileError, Finding, Kind, StoreError
from beaufort.store.pieces import Listing, Piece, Slice, by_cell, cover, gaps, spans
from beaufort.store.prediction_tables import Summary

PREDICTIONS = "predictions"

T = TypeVar("T")

_LOOKS = 60
_LONGEST_PAUSE_S = 0.25


class FileStore:
    """A folder, or any URL that fsspec knows, that keeps predictions."""

    def __init__(self, location: str | os.PathLike[str]) -> None:
        self.location = os.fspath(location)
        self.disk = open_disk(self.location)

    def __repr__(self) -> str:
        return f"FileStore({self.location!r})"

    def check_exists(self) -> None:
        """Raise an error if there is no store: a mistyped name must not pass for an empty one."""
        there = [folder for folder in (PREDICTIONS, RUNS) if self.disk.exists(folder)]
        if broken := [folder for folder in there if not self.disk.is_folder(folder)]:
            raise StoreError(
                f"{' and '.join(broken)} of {self.location} must be a folder, got a file or a link that "
                "leads nowhere; is a disk not mounted?"
            )
        if not there:
            raise StoreError(
                f"{self.location} is not a store: it has no folder {PREDICTIONS!r}; check the name, or "
                f"make one with `beaufort run --store {self.location}`"
            )

    # Writing

    def write(
        self,
        cell: Cell,
        start: int,
        table: pa.Table,
        provenance: Mapping[str, Any] | None = None,
    ) -> Piece:
        """Store the answers to the images from `start` on; when this returns, they survive a kill."""
        stop = start + len(table)
        path = f"{PREDICTIONS}/{cell.folder}/{cell.fingerprint}-{start}-{stop}.parquet"
        self.disk.write(path, encode_piece(cell, start, table, provenance or {}))
        return Piece(path, cell.fingerprint, start, stop)

    def write_run(self, facts: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        """Store a record of what a run was asked for; a record with the same facts is replaced."""
        self.disk.write(*encode_record(facts, notes))

    # Listing

    def pieces(self) -> list[Piece]:
        """The files of predictions, from a listing alone; none is opened."""
        return sorted(self.files())

    def files(self) -> dict[Piece, str]:
        """The files of predictions, each with a tag that changes when the file does; none is opened."""
        listed = self.disk.files(PREDICTIONS).items()
        return {piece: state for path, state in listed if (piece := Piece.parse(path))}

    def listing(self) -> Listing:
        """The files of each cell as they are now; pass it to other methods to list the store only once."""
        return by_cell(self.pieces())

    # Reading

    def runs(self) -> list[dict[str, Any]]:
        """What the runs of this store were asked for, the oldest first."""
        found = [record for path in self.records() if (record := self.record(path)) is not None]
        return sorted(found, key=lambda record: str(record.get("time", "")))

    def records(self) -> list[str]:
        """The paths of the records of runs."""
        return sorted(filter(is_record, self.disk.files(RUNS)))

    def record(self, path: str) -> dict[str, Any] | None:
        """One record; None if it is gone."""
        try:
            return decode_record(path, self.disk.read(path))
        except FileNotFoundError:
            return None
        except DamagedError as error:
            raise FaultyFileError(self.location, Finding(path, f"is damaged ({error})")) from error
        except NewerFormatError as error:
            raise FaultyFileError(self.location, Finding(path, str(error), Kind.newer)) from error

    def footer(self, piece: Piece) -> Footer:
        """What a file says about itself, checked; a `FileNotFoundError` if it is gone."""
        return read_footer(self.disk, piece)

    def table(self, piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a file, every byte of it checked; a `FileNotFoundError` if it is gone."""
        return read_table(self.disk, piece, columns)[0]

    def examine(self, piece: Piece) -> Finding | None:
        """Read a file to the last byte: what is wrong with it; a `FileNotFoundError` if it is gone."""
        try:
            read_content(self.disk, piece)
        except FaultyFileError as error:
            return error.finding
        return None

    def sound(self, cell: Cell, listing: Listing | None = None) -> list[Piece]:
        """The pieces of a cell, whatever its model is called, that are not damaged; all are read.

        One that cannot be read now, or is of a newer format, is an error: it is not known what it holds.
        """
        return self._looking(cell, listing, lambda pieces: [p for p in pieces if self._is_sound(p)])

    def _is_sound(self, piece: Piece) -> bool:
        finding = self.examine(piece)
        if finding is not None and finding.kind is not Kind.damaged:
            raise FaultyFileError(self.location, finding)
        return finding is None

    def missing(self, cell: Cell, count: int, listing: Listing | None = None) -> list[tuple[int, int]]:
        """The ranges of images below `count` that have no answer yet, or only a damaged one.

        >>> FileStore("memory://nothing").missing(Cell({"name": "m"}, {"name": "d"}, {}), 10)
        [(0, 10)]
        """
        return gaps(self.sound(cell, listing), count)

    def __contains__(self, cell: Cell) -> bool:
        return bool(self.sound(cell))

    def cells(self) -> dict[str, Cell]:
        """Every cell of the store by its fingerprint; an error if no file of one can be used."""
        found: dict[str, Cell] = {}
        for fingerprint, pieces in self.listing().items():
            footer = self._looking_for(fingerprint, pieces, self._any_footer)
            if footer is not None:
                found[fingerprint] = footer.cell
        return found

    def _any_footer(self, pieces: Sequence[Piece]) -> Footer | None:
        fault: FaultyFileError | None = None
        for piece in pieces:
            try:
                return self.footer(piece)
            except FaultyFileError as error:
                fault = fault or error
        if fault is not None:
            raise fault
        return None

    def read(
        self, cell: Cell, listing: Listing | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """All answers of a cell in the order of the data set, each image once, with its `place` in it.

        Only the `columns` asked for, if some are. Another process may gather files meanwhile: if a listed
        one is gone, the store is looked at again.
        """
        slices = self._looking(cell, listing, lambda pieces: self.slices(pieces, columns))
        if not slices:
            raise StoreError(
                f"{self.location} has no answers of {cell.model['name']} under {cell.condition_name}"
            )
        return _joined(slices)

    def slices(
        self, pieces: Iterable[Piece], columns: Sequence[str] | None = None
    ) -> list[tuple[Slice, pa.Table]]:
        """Every row of some pieces of one cell once, slice by slice.

        What a faulty file has is taken from others where they have it too; else the fault is an error.
        """
        usable, tables = set(pieces), dict[Piece, pa.Table]()
        wanted, fault = spans(usable), None
        while unread := [one.piece for one in cover(usable) if one.piece not in tables]:
            try:
                tables[unread[0]] = self.table(unread[0], columns)
            except FaultyFileError as error:
                fault = fault or error
                usable.remove(unread[0])
        if fault is not None and spans(usable) != wanted:
            raise fault
        return [(one, tables[one.piece].slice(one.skip)) for one in cover(usable)]

    def summaries(
        self, pieces: Iterable[Piece] | None = None
    ) -> Iterator[tuple[Piece, Cell, Summary, dict[str, Any]]]:
        """Each file that is there and can be used, with what its footer says: cell, sums, provenance."""
        for piece in self.pieces() if pieces is None else pieces:
            try:
                footer = self.footer(piece)
            except (FaultyFileError, FileNotFoundError):
                continue
            yield piece, footer.cell, footer.summary, footer.provenance

    def _looking(self, cell: Cell, listing: Listing | None, read: Callable[[Sequence[Piece]], T]) -> T:
        pieces = None if listing is None else listing.get(cell.fingerprint, [])
        return self._looking_for(cell.fingerprint, pieces, read)

    def _looking_for(
        self, fingerprint: str, pieces: Sequence[Piece] | None, read: Callable[[Sequence[Piece]], T]
    ) -> T:
        """What comes of reading the pieces of a cell; looked for again while one of them is gone."""
        for look in range(_LOOKS):
            if pieces is None:
                pieces = self.listing().get(fingerprint, [])
            try:
                return read(pieces)
            except FileNotFoundError:
                pieces = None
                time.sleep(min(0.002 * 2**look, _LONGEST_PAUSE_S))
        raise StoreError(f"{self.location} changes faster than it can be read; try again when fewer write")

    # Keeping house

    def verify(self) -> list[Finding]:
        """Read every file to the last byte, and return what is wrong."""
        return verify(self)

    def merge(self, other: FileStore) -> Merged:
        """Copy the answers that the other store has and this one lacks; damaged files are left behind."""
        return merge(self, other)

    def gather(self, cell: Cell, listing: Listing | None = None) -> Piece | None:
        """Put the rows of a cell that lie in several files, end to end, into one; None if nothing changed."""
        return gather(self, cell, listing)

    def collect(self, *, dry_run: bool = False, delete: bool = False) -> list[Finding]:
        """Set damaged files aside, and those whose rows others have too; delete drafts of killed writers."""
        return collect(self, dry_run=dry_run, delete=delete)


def _joined(slices: Sequence[tuple[Slice, pa.Table]]) -> pa.Table:
    """One table with the places of its rows; the columns that all slices have: some keep logits, some not."""
    names = [name for name in slices[0][1].column_names if all(name in t.column_names for _, t in slices)]
    places = [np.arange(one.start, one.stop, dtype=np.int64) for one, _ in slices]
    table = pa.concat_tables(table.select(names) for _, table in slices)
    return table.add_column(0, "place", column_of(np.concatenate(places)))
