"""Footers of prediction files: writing, reading and checking them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from beaufort.store._disk import Disk
from beaufort.store._format import (
    DamagedError,
    NewerFormatError,
    check,
    decode,
    encode,
    footer_size,
    read_notes,
)
from beaufort.store.cells import Cell
from beaufort.store.findings import FaultyFileError, Finding, Kind, StoreError
from beaufort.store.pieces import Piece
from beaufort.store.prediction_tables import Summary, summarize

_ENOUGH = 16_384
"""Bytes at the end of a file that nearly always contain the footer."""

_TYPES: Mapping[str, pa.DataType] = {
    "id": pa.string(),
    **dict.fromkeys(("label", "top", "label_set"), pa.int32()),
    **dict.fromkeys(("p", "p_label", "nll", "brier", "entropy", "logits"), pa.float32()),
}
"""Types of the columns of predictions; for lists, of their items."""

SUMS = ("rows", "unread", "correct", "correct5", "nll", "brier", "entropy", "confidence")


@dataclass(frozen=True)
class Footer:
    """The facts of a cell, the sums over the rows of a file, and their provenance."""

    cell: Cell
    summary: Summary
    provenance: dict[str, Any]


def encode_piece(cell: Cell, start: int, table: pa.Table, provenance: Mapping[str, Any]) -> bytes:
    """Return the content of a file of predictions, the first of which is for the image `start`."""
    about = cell.to_json()
    try:
        _cell(about)
        _check_columns(table)
    except (ValueError, TypeError) as error:  # the file would be damaged for every reader
        raise StoreError(f"cannot store the predictions of {cell.condition_name}: {error}") from None
    notes = {
        "beaufort.cell": about,
        "beaufort.start": str(start),
        "beaufort.summary": json.dumps(summarize(table)),
        "beaufort.provenance": json.dumps(dict(provenance), sort_keys=True),
    }
    return encode(table, notes)


def read_footer(disk: Disk, piece: Piece) -> Footer:
    """Return the checked footer of a file, without reading the rows."""
    tail = disk.tail(piece.path, _ENOUGH)
    try:
        size = footer_size(tail)
        if size > len(tail) == _ENOUGH:
            tail = disk.tail(piece.path, size)
        if size > len(tail):
            raise DamagedError("the file is truncated")
        return _footer(piece, *read_notes(tail[-size:]))
    except (DamagedError, NewerFormatError, MemoryError) as error:
        raise _fault(disk, piece, error) from error


def read_content(disk: Disk, piece: Piece) -> bytes:
    """Return the content of a file, every byte checked."""
    content = disk.read(piece.path)
    try:
        _footer(piece, *check(content))
    except (DamagedError, NewerFormatError, MemoryError) as error:
        raise _fault(disk, piece, error) from error
    return content


def read_table(disk: Disk, piece: Piece, columns: Sequence[str] | None = None) -> tuple[pa.Table, Footer]:
    """Return the rows of a file and its footer, every byte checked."""
    content = disk.read(piece.path)
    try:
        table, notes = decode(content, columns)
        _check_columns(table)
        return table, _footer(piece, notes, len(table))
    except (DamagedError, NewerFormatError, MemoryError) as error:
        raise _fault(disk, piece, error) from error


def _check_columns(table: pa.Table) -> None:
    for field in table.schema:
        lists = pa.types.is_fixed_size_list(field.type)
        if _TYPES.get(field.name) != (field.type.value_type if lists else field.type):
            raise DamagedError(f"unexpected column {field.name!r} of type {field.type}")


def _footer(piece: Piece, notes: Mapping[str, str], rows: int) -> Footer:
    if rows != piece.stop - piece.start:
        raise DamagedError(f"{rows} rows do not match the file name")
    if notes.get("beaufort.start", str(piece.start)) != str(piece.start):
        raise DamagedError("its first image does not match the file name")
    try:
        cell = _cell(notes["beaufort.cell"])
        if cell.fingerprint != piece.fingerprint:
            raise DamagedError("its cell does not match the file name")
        footer = Footer(cell, json.loads(notes["beaufort.summary"]), json.loads(notes["beaufort.provenance"]))
        _check_sums(footer.summary, rows)
        if not isinstance(footer.provenance, dict):
            raise DamagedError("its provenance is invalid")
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise DamagedError(str(error)[:120] or type(error).__name__) from error
    return footer


@lru_cache(maxsize=4096)
def _cell(text: str) -> Cell:
    """Parse a cell; cached, because the pieces of a cell have the same text and are read several times."""
    return Cell.from_json(text)


def _check_sums(sums: Any, rows: int) -> None:
    if not isinstance(sums, dict) or set(sums) != set(SUMS):
        raise DamagedError("its sums are invalid")
    if (
        any(type(value) not in (int, float) for value in sums.values())
        or rows != sums["rows"] + sums["unread"]
    ):
        raise DamagedError("its sums do not match its rows")


def _fault(disk: Disk, piece: Piece, error: Exception) -> FaultyFileError:
    if isinstance(error, NewerFormatError):
        finding = Finding(piece.path, str(error), Kind.newer)
    elif isinstance(error, MemoryError):
        finding = Finding(piece.path, "cannot be read at the moment (not enough memory)", Kind.unreadable)
    else:
        finding = Finding(piece.path, f"is damaged ({error})")
    return FaultyFileError(disk.location, finding)
