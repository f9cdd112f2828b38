"""A store in files: an immutable Parquet file for each piece of a cell.

```
STORE/predictions/model=NAME/condition=NAME/FINGERPRINT-START-STOP.parquet
STORE/runs/DIGEST.json
STORE/index.parquet
STORE/quarantine/
```

A file contains the predictions of images START … STOP - 1 of the dataset, and in its footer the facts of the
cell, sums over the rows and provenance. Files are self-contained: stores are merged by copying them. A file
is written under a temporary name and renamed, or uploaded in one request to an object store. Several
processes and machines may write to one store: the same piece has the same name and the same rows. If files
overlap, `cover` decides which rows of each are read. A record of each run has the suite, the dataset and the
models.

Everything that is read is checked. A faulty file that is needed raises an error that names it. Files may be
gathered into others at any time; readers list the store again if a file has disappeared.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from beaufort.store._disk import open_disk
from beaufort.store._footer import Footer, encode_piece, read_content, read_footer, read_table
from beaufort.store._format import DamagedError, NewerFormatError
from beaufort.store._maintenance import Merged, collect, gather, merge, verify
from beaufort.store._records import FOLDER as RUNS
from beaufort.store._records import decode_record, encode_record, is_record
from beaufort.store.cells import Cell, folder_name
from beaufort.store.columns import column_of
from beaufort.store.findings import FaultyFileError, Finding, Kind, StoreError
from beaufort.store.pieces import Listing, Piece, Slice, by_cell, cover, gaps, spans
from beaufort.store.prediction_tables import Summary

PREDICTIONS = "predictions"

T = TypeVar("T")

_ATTEMPTS = 60
_LONGEST_PAUSE_S = 0.25


class FileStore:
    """A store in a folder, or at any URL that fsspec supports."""

    def __init__(self, location: str | os.PathLike[str]) -> None:
        self.location = os.fspath(location)
        self.disk = open_disk(self.location)

    def __repr__(self) -> str:
        return f"FileStore({self.location!r})"

    def check_exists(self) -> None:
        """Raise an error if the store does not exist, as after a typing mistake."""
        there = [folder for folder in (PREDICTIONS, RUNS) if self.disk.exists(folder)]
        if broken := [folder for folder in there if not self.disk.is_folder(folder)]:
            raise StoreError(
                f"{' and '.join(broken)} of {self.location} must be a folder, but is a file or a broken "
                "link; is a disk not mounted?"
            )
        if not there:
            raise StoreError(
                f"{self.location} is not a store: it has no folder {PREDICTIONS!r}; check the path, or "
                f"create a store with `beaufort run --store {self.location}`"
            )

    # Writing

    def write(
        self,
        cell: Cell,
        start: int,
        table: pa.Table,
        provenance: Mapping[str, Any] | None = None,
    ) -> Piece:
        """Store the predictions of the images from `start` on; when this returns, they survive a kill."""
        stop = start + len(table)
        path = f"{PREDICTIONS}/{cell.folder}/{cell.fingerprint}-{start}-{stop}.parquet"
        self.disk.write(path, encode_piece(cell, start, table, provenance or {}))
        return Piece(path, cell.fingerprint, start, stop)

    def write_run(self, facts: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        """Store the record of a run; a record with the same facts is replaced."""
        self.disk.write(*encode_record(facts, notes))

    # Listing

    def has_predictions(self) -> bool:
        """Return whether there is a file of predictions, without listing all."""
        for name, state in self.disk.entries(PREDICTIONS).items():
            path = f"{PREDICTIONS}/{name}"
            if any(map(Piece.parse, [path] if state is not None else self.disk.files(path))):
                return True
        return False

    def pieces(self) -> list[Piece]:
        """List the files of predictions without opening any."""
        return sorted(self.files())

    def files(self) -> dict[Piece, str]:
        """List the files of predictions with a tag that changes with the file, without opening any."""
        listed = self.disk.files(PREDICTIONS).items()
        return {piece: state for path, state in listed if (piece := Piece.parse(path))}

    def listing(self) -> Listing:
        """Return the files of each cell; pass it to other methods to list the store only once."""
        return by_cell(self.pieces())

    def listing_of(
        self,
        models: Iterable[str] | None = None,
        conditions: Callable[[Sequence[str]], Collection[str]] | None = None,
    ) -> Listing:
        """Return the files in the folders of some models and conditions, without listing the others.

        Files that were copied to other places of the store are included where they are seen. A cell whose
        files are in the folder of another model, because it was renamed, is not found.

        Args:
            models: names of models; all if None. Other models may share their folders.
            conditions: function that selects folders of conditions from those of a model, by the names that
                `folder_name` gives them; all if None.
        """
        wanted = None if models is None else {f"model={folder_name(name)}".casefold() for name in models}
        found: dict[str, str] = {}
        for name, state in self.disk.entries(PREDICTIONS).items():
            path = f"{PREDICTIONS}/{name}"
            if state is not None:
                found[path] = state
            elif not name.startswith("model="):
                found |= self.disk.files(path)
            elif wanted is None or name.casefold() in wanted:
                found |= self.disk.files(path) if conditions is None else self._of_model(path, conditions)
        return by_cell(sorted(piece for path in found if (piece := Piece.parse(path))))

    def _of_model(
        self, folder: str, conditions: Callable[[Sequence[str]], Collection[str]]
    ) -> dict[str, str]:
        """Return the files of some conditions of a model."""
        found: dict[str, str] = {}
        start = "condition="
        entries = self.disk.entries(folder)
        wanted = conditions([name[len(start) :] for name in entries if name.startswith(start)])
        for name, state in entries.items():
            if state is not None:
                found[f"{folder}/{name}"] = state
            elif not name.startswith(start) or name[len(start) :] in wanted:
                found |= self.disk.files(f"{folder}/{name}")
        return found

    # Reading

    def runs(self) -> list[dict[str, Any]]:
        """Return the records of the runs, oldest first."""
        found = [record for path in self.records() if (record := self.record(path)) is not None]
        return sorted(found, key=lambda record: str(record.get("time", "")))

    def records(self) -> list[str]:
        """Return the paths of the records of runs."""
        return sorted(filter(is_record, self.disk.files(RUNS)))

    def record(self, path: str) -> dict[str, Any] | None:
        """Return one record; None if it was removed."""
        try:
            return decode_record(path, self.disk.read(path))
        except FileNotFoundError:
            return None
        except DamagedError as error:
            raise FaultyFileError(self.location, Finding(path, f"is damaged ({error})")) from error
        except NewerFormatError as error:
            raise FaultyFileError(self.location, Finding(path, str(error), Kind.newer)) from error

    def footer(self, piece: Piece) -> Footer:
        """Return the checked footer of a file; a `FileNotFoundError` if it was removed."""
        return read_footer(self.disk, piece)

    def table(self, piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a file, every byte checked; a `FileNotFoundError` if it was removed."""
        return read_table(self.disk, piece, columns)[0]

    def examine(self, piece: Piece) -> Finding | None:
        """Return what is wrong with a file, read completely; a `FileNotFoundError` if it was removed."""
        try:
            read_content(self.disk, piece)
        except FaultyFileError as error:
            return error.finding
        return None

    def sound(self, cell: Cell, listing: Listing | None = None) -> list[Piece]:
        """Return the pieces of a cell that are not damaged, after reading all of them.

        A piece that cannot be read at the moment, or has a newer format, raises an error.
        """
        return self._read_pieces(cell, listing, lambda pieces: [p for p in pieces if self._is_sound(p)])

    def _is_sound(self, piece: Piece) -> bool:
        finding = self.examine(piece)
        if finding is not None and finding.kind is not Kind.damaged:
            raise FaultyFileError(self.location, finding)
        return finding is None

    def missing(self, cell: Cell, count: int, listing: Listing | None = None) -> list[tuple[int, int]]:
        """Return the ranges of images below `count` without a prediction, or only with a damaged one.

        >>> FileStore("memory://nothing").missing(Cell({"name": "m"}, {"name": "d"}, {}), 10)
        [(0, 10)]
        """
        return gaps(self.sound(cell, listing), count)

    def __contains__(self, cell: Cell) -> bool:
        return bool(self.sound(cell))

    def cells(self) -> dict[str, Cell]:
        """Return all cells by fingerprint; an error if a cell has no usable file."""
        return {piece.fingerprint: footer.cell for piece, footer in self.first_footers(self.listing())}

    def first_footers(self, listing: Listing) -> Iterator[tuple[Piece, Footer]]:
        """Yield the first usable file of each cell with its footer; an error if a cell has none."""
        for fingerprint, pieces in listing.items():
            found = self._retry(fingerprint, pieces, self._any_footer)
            if found is not None:
                yield found

    def _any_footer(self, pieces: Sequence[Piece]) -> tuple[Piece, Footer] | None:
        fault: FaultyFileError | None = None
        for piece in pieces:
            try:
                return piece, self.footer(piece)
            except FaultyFileError as error:
                fault = fault or error
        if fault is not None:
            raise fault
        return None

    def read(
        self, cell: Cell, listing: Listing | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the predictions of a cell in the order of the dataset, each image once.

        The column `place` is the index in the dataset. With `columns`, only these are read. The store is
        listed again if another process has gathered files in the meantime.
        """
        slices = self._read_pieces(cell, listing, lambda pieces: self.slices(pieces, columns))
        if not slices:
            raise StoreError(
                f"{self.location} has no predictions of {cell.model['name']} under {cell.condition_name}"
            )
        return _joined(slices)

    def slices(
        self, pieces: Iterable[Piece], columns: Sequence[str] | None = None
    ) -> list[tuple[Slice, pa.Table]]:
        """Return every row of the pieces of one cell once, slice by slice.

        Rows of a faulty file are read from other files that have them; otherwise the fault is raised.
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
        """Yield each usable file with the cell, sums and provenance in its footer."""
        for piece in self.pieces() if pieces is None else pieces:
            try:
                footer = self.footer(piece)
            except (FaultyFileError, FileNotFoundError):
                continue
            yield piece, footer.cell, footer.summary, footer.provenance

    def _read_pieces(self, cell: Cell, listing: Listing | None, read: Callable[[Sequence[Piece]], T]) -> T:
        pieces = None if listing is None else listing.get(cell.fingerprint, [])
        return self._retry(cell.fingerprint, pieces, read)

    def _retry(
        self, fingerprint: str, pieces: Sequence[Piece] | None, read: Callable[[Sequence[Piece]], T]
    ) -> T:
        """Return the result of reading the pieces of a cell; list them again if one was removed."""
        for attempt in range(_ATTEMPTS):
            if pieces is None:
                pieces = self.listing().get(fingerprint, [])
            try:
                return read(pieces)
            except FileNotFoundError:
                pieces = None
                time.sleep(min(0.002 * 2**attempt, _LONGEST_PAUSE_S))
        raise StoreError(f"{self.location} changes too fast to be read; try again with fewer writers")

    # Maintenance

    def verify(self) -> list[Finding]:
        """Read every file completely, and return what is wrong."""
        return verify(self)

    def merge(self, other: FileStore) -> Merged:
        """Copy the predictions that this store lacks from another one; damaged files are not copied."""
        return merge(self, other)

    def gather(self, cell: Cell, listing: Listing | None = None) -> Piece | None:
        """Join adjacent files of a cell into one; None if nothing changed."""
        return gather(self, cell, listing)

    def collect(self, *, dry_run: bool = False, delete: bool = False) -> list[Finding]:
        """Quarantine damaged and redundant files, and delete partial files of killed writers."""
        return collect(self, dry_run=dry_run, delete=delete)


def _joined(slices: Sequence[tuple[Slice, pa.Table]]) -> pa.Table:
    """Return one table with the places of its rows, and the columns that all slices have."""
    columns = [table.column_names for _, table in slices]
    names = [name for name in columns[0] if all(name in some for some in columns)]
    places = [np.arange(one.start, one.stop, dtype=np.int64) for one, _ in slices]
    tables = [table.select(names) for _, table in slices]
    table = pa.concat_tables(tables) if len(tables) > 1 else tables[0]
    return table.add_column(0, "place", column_of(np.concatenate(places)))
