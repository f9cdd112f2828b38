"""One file where several hold the rows of a cell, however they overlap."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from beaufort.store._footer import read_table
from beaufort.store.cells import Cell
from beaufort.store.findings import FaultyFileError, Kind
from beaufort.store.pieces import Listing, Piece, Slice, cover

if TYPE_CHECKING:
    from beaufort.store._disk import Disk
    from beaufort.store.files import FileStore

QUARANTINE = "quarantine"
"""Where files are set aside."""

_TRIES = 5
"""Each fails only if another process has put something together meanwhile."""


def gather(store: FileStore, cell: Cell, listing: Listing | None = None) -> Piece | None:
    """Put the rows of a cell into as few files as they fit in; the last new file, None if there is none.

    A new file is there, and on the disk, before the old ones go: whoever reads meanwhile finds every row,
    and whoever is killed meanwhile leaves rows that are there twice, are read once, and are gathered by
    the next run. A file that cannot be read now, or is of a newer format, keeps all files as they are. Where
    another process gathers at the same time, this one looks again for what is left.
    """
    for _ in range(_TRIES):
        pieces = (store.listing() if listing is None else listing).get(cell.fingerprint, [])
        try:
            return _gather(store, cell, pieces) if len(pieces) > 1 else None
        except FileNotFoundError:
            listing = None
        except FaultyFileError:
            return None  # nobody can now
    return None


def _gather(store: FileStore, cell: Cell, pieces: Sequence[Piece]) -> Piece | None:
    sound = dict(_read(store.disk, pieces))
    tables = {piece: table for piece, (table, _) in sound.items()}
    origins = [origin for _, provenance in sound.values() for origin in flat_origins(provenance)]
    kept = {
        group[0].piece
        if len(group) == 1 and not group[0].skip
        else _write(store, cell, group, tables, origins)
        for group in _groups(cover(sound), tables)
    }
    for piece in sound.keys() - kept:
        store.disk.remove(piece.path)
    for piece in set(pieces) - sound.keys() - kept:
        if any(one.start <= piece.start and piece.stop <= one.stop for one in kept):
            store.disk.move(piece.path, QUARANTINE)  # damaged, and made anew in another file
    return max(kept - sound.keys(), key=lambda piece: piece.stop, default=None)


def flat_origins(provenance: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Where the rows of a file came from; a gathered one has the origins of its parts."""
    parts = provenance.get("of")
    if isinstance(parts, list):
        for part in parts:
            if isinstance(part, Mapping):
                yield from flat_origins(part)
    elif provenance:
        yield dict(provenance)


def _read(disk: Disk, pieces: Iterable[Piece]) -> Iterator[tuple[Piece, tuple[pa.Table, dict[str, Any]]]]:
    for piece in pieces:
        try:
            table, footer = read_table(disk, piece)
            yield piece, (table, footer.provenance)
        except FaultyFileError as error:
            if error.finding.kind is not Kind.damaged:
                raise


def _groups(slices: Iterable[Slice], tables: Mapping[Piece, pa.Table]) -> Iterator[list[Slice]]:
    """Slices that follow each other without a gap and have the same columns: some keep logits, some not."""
    group: list[Slice] = []
    for one in slices:
        last = group[-1] if group else None
        if last and (last.stop != one.start or tables[last.piece].schema != tables[one.piece].schema):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _write(
    store: FileStore,
    cell: Cell,
    group: list[Slice],
    tables: Mapping[Piece, pa.Table],
    origins: Iterable[Mapping[str, Any]],
) -> Piece:
    rows = pa.concat_tables(tables[one.piece].slice(one.skip) for one in group)
    distinct = {json.dumps(origin, sort_keys=True): origin for origin in origins}
    return store.write(cell, group[0].start, rows, {"of": list(distinct.values())})
