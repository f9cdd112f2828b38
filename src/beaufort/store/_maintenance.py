"""Maintenance of a store: gathering files, verification, quarantine, merging."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from beaufort._core.files import is_in_use, is_leftover, remove_leftover
from beaufort.store._disk import for_each
from beaufort.store._footer import read_content, read_table
from beaufort.store._index import check_index
from beaufort.store._records import is_record
from beaufort.store.cells import Cell
from beaufort.store.findings import TO_SET_ASIDE, FaultyFileError, Finding, Kind
from beaufort.store.pieces import Listing, Piece, Slice, by_cell, cover, gaps

if TYPE_CHECKING:
    from beaufort.store._disk import Disk
    from beaufort.store.files import FileStore

QUARANTINE = "quarantine"
"""Folder of quarantined files."""

_TRIES = 5
"""An attempt fails only if another process has gathered files in the meantime."""


def gather(store: FileStore, cell: Cell, listing: Listing | None = None) -> Piece | None:
    """Join the files of a cell where possible; return the last new file, or None if nothing was joined.

    A new file is written and synced before the old ones are removed. Concurrent readers find every row, and
    a process killed in between leaves duplicate rows that are read once and joined by the next run. If a file
    cannot be read at the moment, or has a newer format, nothing changes.
    """
    for _ in range(_TRIES):
        pieces = (store.listing() if listing is None else listing).get(cell.fingerprint, [])
        try:
            return _gather(store, cell, pieces) if len(pieces) > 1 else None
        except FileNotFoundError:
            listing = None
        except FaultyFileError:
            return None  # not possible at the moment
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
            store.disk.move(piece.path, QUARANTINE)  # damaged, and recomputed in another file
    return max(kept - sound.keys(), key=lambda piece: piece.stop, default=None)


def flat_origins(provenance: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the provenance of the rows of a file; a gathered file has that of each part."""
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
    """Yield groups of adjacent slices with the same columns (some files have logits, some do not)."""
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


class Merged(NamedTuple):
    """The result of merging another store."""

    copied: list[Piece]
    left: list[Finding]
    """Damaged files of the other store, which were not copied."""


def verify(store: FileStore) -> list[Finding]:
    """Read every file completely, and return what is wrong."""
    findings: list[Finding] = []
    sound: list[Piece] = []
    for piece, finding in for_each(lambda piece: (piece, _examine(store, piece)), store.pieces(), store.disk):
        if isinstance(finding, Finding):
            findings.append(finding)
        elif finding:
            sound.append(piece)
    for same in by_cell(sound).values():
        findings += _overlaps(same)
    for path in store.records():
        try:
            store.record(path)
        except FaultyFileError as error:
            findings.append(error.finding)
    findings += check_index(store)
    findings += [
        Finding(path, "is a partial file of a process that was killed", Kind.draft)
        for path in _partial_files(store)
    ]
    return findings


def _examine(store: FileStore, piece: Piece) -> Finding | bool:
    """Return what is wrong with a file, else whether it still exists."""
    try:
        ids = store.table(piece)["id"].to_pylist()
    except FileNotFoundError:
        return False
    except FaultyFileError as error:
        return error.finding
    return Finding(piece.path, "is damaged (an id occurs twice)") if len(set(ids)) != len(ids) else True


def _overlaps(pieces: list[Piece]) -> list[Finding]:
    """Return findings on files of one cell that share rows; no row is read twice."""
    findings = []
    chosen = {one.piece: one for one in cover(pieces)}
    for piece in pieces:
        if piece not in chosen:
            others = ", ".join(PurePosixPath(one.path).name for one in chosen if _overlap(one, piece))
            findings.append(Finding(piece.path, f"has only rows that are in {others} as well", Kind.twice))
        elif skip := chosen[piece].skip:
            findings.append(
                Finding(
                    piece.path,
                    f"has {skip} rows that are in another file as well; they count once",
                    Kind.overlap,
                )
            )
    return findings


def _overlap(one: Piece, other: Piece) -> bool:
    return one.start < other.stop and other.start < one.stop


def _partial_files(store: FileStore) -> list[str]:
    """Return the partial files of killed writers, without those that are still being written."""
    if not store.disk.local:
        return []
    paths = sorted(path.removeprefix("./") for path in store.disk.files("."))
    drafts = [path for path in paths if is_leftover(PurePosixPath(path).name)]
    return [path for path in drafts if not is_in_use(Path(store.disk.full(path)))]


def collect(store: FileStore, *, dry_run: bool = False, delete: bool = False) -> list[Finding]:
    """Quarantine damaged and redundant files, gather overlapping ones, delete partial files.

    Only files that are certainly damaged are moved to the folder `quarantine`; `delete` empties it. A file
    that cannot be read at the moment, or has a newer format, is kept.
    """
    findings = verify(store)
    if dry_run:
        return findings
    for finding in findings:
        if finding.kind is Kind.draft:
            remove_leftover(Path(store.disk.full(finding.path)))
        elif finding.kind in TO_SET_ASIDE:
            _quarantine(store, finding)
    listing = store.listing()
    for fingerprint in _overlapping(findings):
        _gather_pieces(store, listing.get(fingerprint, []))
    if delete:
        for path in store.disk.files(QUARANTINE):
            store.disk.remove(path)
    return findings


def _overlapping(findings: list[Finding]) -> set[str]:
    pieces = (Piece.parse(finding.path) for finding in findings if finding.kind is Kind.overlap)
    return {piece.fingerprint for piece in pieces if piece is not None}


def _quarantine(store: FileStore, finding: Finding) -> None:
    """Quarantine a file, unless a run has just replaced it by an intact one."""
    if finding.kind is Kind.damaged and not _is_reproduced(store, finding):
        return
    moved = store.disk.move(finding.path, QUARANTINE)
    piece = Piece.parse(finding.path)
    if finding.kind is Kind.damaged and piece is not None:  # a run may have replaced it before the move
        with contextlib.suppress(FileNotFoundError, FaultyFileError):
            store.disk.write(finding.path, read_content(store.disk, piece._replace(path=moved)))


def _is_reproduced(store: FileStore, finding: Finding) -> bool:
    """Return whether a second reading has the same result; the first may have been a transient error."""
    try:
        if piece := Piece.parse(finding.path):
            return _examine(store, piece) == finding
        if is_record(finding.path):
            store.record(finding.path)
            return False
        return finding in check_index(store)
    except FileNotFoundError:
        return False
    except FaultyFileError as error:
        return error.finding == finding


def merge(store: FileStore, other: FileStore) -> Merged:
    """Copy the predictions that this store lacks from another one; damaged files are not copied.

    Files are copied whole, even if this store has some of their rows; overlapping files are then gathered.
    """
    other.check_exists()
    if not store.disk.is_empty():
        store.check_exists()
    merged = Merged([], [])
    ours = store.listing()

    def merge_cell(cell: tuple[str, list[Piece]]) -> None:
        fingerprint, theirs = cell
        mine = [piece for piece in ours.get(fingerprint, []) if _may_be_intact(store, piece)]
        copied = [piece for piece in theirs if _lacks(mine, piece) and _copy(store, other, piece, merged)]
        _gather_pieces(store, [*copied, *mine])

    for _ in for_each(merge_cell, other.listing().items(), store.disk, other.disk):
        pass
    for path in other.records():
        if not _has_record(store, path):
            _copy_record(store, other, path, merged)
    return merged


def _gather_pieces(store: FileStore, pieces: list[Piece]) -> None:
    """Gather the pieces of a cell if there are several."""
    if len(pieces) > 1:
        for _, cell, *_ in store.summaries(pieces):
            store.gather(cell)
            return


def _may_be_intact(store: FileStore, piece: Piece) -> bool:
    """Return whether a file of this store is kept: all that are not certainly damaged."""
    try:
        finding = store.examine(piece)
    except FileNotFoundError:
        return False
    return finding is None or finding.kind is not Kind.damaged


def _lacks(mine: list[Piece], piece: Piece) -> bool:
    return any(stop > piece.start for _, stop in gaps(mine, piece.stop))


def _copy(store: FileStore, other: FileStore, piece: Piece, merged: Merged) -> bool:
    try:
        content = read_content(other.disk, piece)
    except FileNotFoundError:
        return False
    except FaultyFileError as error:
        merged.left.append(error.finding)
        return False
    store.disk.write(piece.path, content)
    merged.copied.append(piece)
    return True


def _has_record(store: FileStore, path: str) -> bool:
    try:
        return store.record(path) is not None
    except FaultyFileError as error:
        return error.finding.kind is not Kind.damaged


def _copy_record(store: FileStore, other: FileStore, path: str, merged: Merged) -> None:
    try:
        if other.record(path) is not None:
            store.disk.write(path, other.disk.read(path))
    except FaultyFileError as error:
        merged.left.append(error.finding)
    except FileNotFoundError:
        return
