"""A table with a row for each file, from footers or from an index of footers.

The index is a cache of footers. A row is valid only for a listed file of the same size and time, or tag. A
few rows are compared with their footers each time; if one differs, or the index is damaged, it is discarded.
The index can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from beaufort.store._disk import for_each
from beaufort.store._footer import SUMS, Footer, read_table
from beaufort.store._format import DamagedError, NewerFormatError, decode, encode
from beaufort.store.cells import Cell, folder_of
from beaufort.store.findings import FaultyFileError, Finding, Kind, StoreError
from beaufort.store.pieces import Piece, Slice, by_cell, cover, spans
from beaufort.store.prediction_tables import Summary, summarize

if TYPE_CHECKING:
    from beaufort.store.files import FileStore

INDEX = "index.parquet"

_COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(("fingerprint", "model", "condition", "dataset", "corruption"), pa.string()),
    "severity": pa.float64(),
    **dict.fromkeys(("start", "stop"), pa.int64()),
    **dict.fromkeys(SUMS, pa.float64()),
    "file": pa.string(),
}
SCHEMA = pa.schema(_COLUMNS)
_SCHEMA_OF_INDEX = SCHEMA.append(pa.field("state", pa.string()))

_LEAST_NEW_FOOTERS = 500
"""Number of new footers after which the index is written again."""

_COMPARED = 8
"""Number of rows of the index that are compared with their files at each use."""


class Read(NamedTuple):
    """The rows of a store that are read: every row of every cell once."""

    pieces: pa.Table
    """A row for each slice of a file, with the columns of `SCHEMA`; sums are those of the slice."""
    slices: Mapping[str, Slice]
    """Slices by a path with model, condition and range."""


def read_pieces(store: FileStore) -> Read:
    """Return the current files of a store; a `FileNotFoundError` if they change meanwhile."""
    files = store.files()
    rows, faults = _rows(store, files)
    slices = [one for pieces in by_cell(files).values() for one in _slices_of_cell(pieces, faults)]
    whole = [one.piece.path for one in slices if not one.skip]
    table = (
        rows.filter(pc.is_in(rows["file"], pa.array(whole, pa.string()))) if len(whole) < len(rows) else rows
    )
    parts = [_part(store, one) for one in slices if one.skip]
    table = pa.concat_tables([table, pa.Table.from_pylist(parts, SCHEMA)])
    table = _with_one_name(table.sort_by([("fingerprint", "ascending"), ("start", "ascending")]))
    return Read(table, _by_path(table, slices))


def _slices_of_cell(pieces: Sequence[Piece], faults: Mapping[Piece, FaultyFileError]) -> list[Slice]:
    """Return the slices of a cell; an error if a faulty file has rows that no other file has."""
    usable = [piece for piece in pieces if piece not in faults] if faults else pieces
    if len(usable) < len(pieces) and spans(usable) != spans(pieces):
        raise next(faults[piece] for piece in pieces if piece in faults)
    return cover(usable)


def _part(store: FileStore, one: Slice) -> dict[str, Any]:
    """Return the row of a part of a file, with its sums."""
    table, footer = read_table(store.disk, one.piece)
    return _row(
        Piece(one.piece.path, one.piece.fingerprint, one.start, one.stop),
        footer.cell,
        summarize(table.slice(one.skip)),
    )


def _with_one_name(table: pa.Table) -> pa.Table:
    """Return the table with one name per cell; a model may have been renamed between runs."""
    fingerprints = table["fingerprint"].to_pylist()
    if len(set(fingerprints)) == len(fingerprints):
        return table
    first = [0] * len(fingerprints)
    for place in range(1, len(first)):
        first[place] = first[place - 1] if fingerprints[place] == fingerprints[place - 1] else place
    for name in ("model", "condition", "dataset"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].take(pa.array(first, pa.int64())))
    return table


def _by_path(table: pa.Table, slices: Sequence[Slice]) -> dict[str, Slice]:
    known = {(one.piece.path, one.start): one for one in slices}
    columns = (
        table[name].to_pylist() for name in ("model", "condition", "fingerprint", "start", "stop", "file")
    )
    return {
        f"{folder_of(model, condition)}/{fingerprint}-{start}-{stop}.parquet": known[file, start]
        for model, condition, fingerprint, start, stop, file in zip(*columns, strict=True)
    }


# Footers and their cache


def _rows(store: FileStore, files: Mapping[Piece, str]) -> tuple[pa.Table, dict[Piece, FaultyFileError]]:
    """Return a row for each file, from the index if the file has not changed, else from its footer."""
    known = _up_to_date(_read_index(store), {piece.path: state for piece, state in files.items()})
    if not _agrees(store, known, {piece.path: piece for piece in files}):
        known = _SCHEMA_OF_INDEX.empty_table()
    seen = set(known["file"].to_pylist())
    rows, faults = [], {}
    unknown = [piece for piece in files if piece.path not in seen]
    for piece, footer in zip(unknown, for_each(partial(_footer, store), unknown, store.disk), strict=True):
        if isinstance(footer, FaultyFileError):
            faults[piece] = footer
        else:
            rows.append({"state": files[piece], **_row(piece, footer.cell, footer.summary)})
    table = pa.concat_tables([known, pa.Table.from_pylist(rows, _SCHEMA_OF_INDEX)])
    if len(rows) >= _LEAST_NEW_FOOTERS:
        with contextlib.suppress(StoreError):  # a read-only store has no index
            store.disk.write(INDEX, encode(table, {}))
    return table.drop_columns(["state"]), faults


def _footer(store: FileStore, piece: Piece) -> Footer | FaultyFileError:
    try:
        return store.footer(piece)
    except FaultyFileError as error:
        return error


def _row(piece: Piece, cell: Cell, summary: Summary) -> dict[str, Any]:
    return {
        "fingerprint": piece.fingerprint,
        "model": cell.model["name"],
        "condition": cell.condition_name,
        "dataset": cell.data["name"],
        "corruption": cell.condition.get("corruption"),
        "severity": cell.condition.get("severity"),
        "start": piece.start,
        "stop": piece.stop,
        "file": piece.path,
        **summary,
    }


def _read_index(store: FileStore) -> pa.Table:
    """Return the index; empty if it is missing or damaged."""
    try:
        table, _ = decode(store.disk.read(INDEX))
    except (FileNotFoundError, FaultyFileError, DamagedError, NewerFormatError):
        return _SCHEMA_OF_INDEX.empty_table()
    table = _with_float_severity(table)
    sound = table.schema.equals(_SCHEMA_OF_INDEX) and pc.count_distinct(table["file"]).as_py() == len(table)
    return table if sound else _SCHEMA_OF_INDEX.empty_table()


def _with_float_severity(table: pa.Table) -> pa.Table:
    """Convert an index with integer severities, written by an earlier version."""
    whole = _SCHEMA_OF_INDEX.set(
        _SCHEMA_OF_INDEX.get_field_index("severity"), pa.field("severity", pa.int32())
    )
    return table.cast(_SCHEMA_OF_INDEX) if table.schema.equals(whole) else table


def _up_to_date(index: pa.Table, states: Mapping[str, str]) -> pa.Table:
    pairs: Any = zip(index["file"].to_pylist(), index["state"].to_pylist(), strict=True)
    return index.filter(pa.array([states.get(file) == state for file, state in pairs], pa.bool_()))


def _agrees(store: FileStore, known: pa.Table, pieces: Mapping[str, Piece]) -> bool:
    """Return whether some random rows of the index agree with their files."""
    places = random.sample(range(len(known)), min(_COMPARED, len(known)))
    rows = known.take(pa.array(places, pa.int64())).drop_columns(["state"]).to_pylist()
    return all(for_each(lambda row: _agrees_with_file(store, row, pieces[row["file"]]), rows, store.disk))


def _agrees_with_file(store: FileStore, row: Mapping[str, Any], piece: Piece) -> bool:
    """Return whether a row agrees with its file; True if the file cannot be read."""
    try:
        footer = store.footer(piece)
    except (FaultyFileError, FileNotFoundError):
        return True
    return _row(piece, footer.cell, footer.summary) == row


def check_index(store: FileStore) -> list[Finding]:
    """Return a finding if the index is damaged or disagrees with the footers."""
    again = "; it is rebuilt when needed"
    try:
        table, _ = decode(store.disk.read(INDEX))
    except FileNotFoundError:
        return []
    except FaultyFileError as error:
        return [error.finding]
    except NewerFormatError as error:
        return [Finding(INDEX, str(error), Kind.newer)]
    except DamagedError as error:
        return [Finding(INDEX, f"is damaged ({error}){again}")]
    table = _with_float_severity(table)
    if not table.schema.equals(_SCHEMA_OF_INDEX):
        return [Finding(INDEX, f"has unknown columns{again}")]
    files = store.files()
    known = _up_to_date(table, {piece.path: state for piece, state in files.items()})
    by_path = {piece.path: piece for piece in files}
    rows = known.drop_columns(["state"]).to_pylist()
    agree = for_each(lambda row: _agrees_with_file(store, row, by_path[row["file"]]), rows, store.disk)
    for row, same in zip(rows, agree, strict=True):
        if not same:
            return [Finding(INDEX, f"disagrees with {row['file']}{again}")]
    return []
