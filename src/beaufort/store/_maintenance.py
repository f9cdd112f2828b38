"""Maintenance of a store: joining files, finding what is wrong, setting it aside, merging another store."""

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


class Merged(NamedTuple):
    """The result of merging another store."""

    copied: list[Piece]
    left: list[Finding]
    """Damaged files of the other store, which were not copied."""


def verify(store: FileStore) -> list[Finding]:
    """Read every file to the last byte, and return what is wrong."""
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
    findings += [Finding(path, "was left by a writer that was killed", Kind.draft) for path in _drafts(store)]
    return findings


def _examine(store: FileStore, piece: Piece) -> Finding | bool:
    """What is wrong with a file, else whether it is there; it may be gathered into another meanwhile."""
    try:
        ids = store.table(piece)["id"].to_pylist()
    except FileNotFoundError:
        return False
    except FaultyFileError as error:
        return error.finding
    return Finding(piece.path, "is damaged (it has an id twice)") if len(set(ids)) != len(ids) else True


def _overlaps(pieces: list[Piece]) -> list[Finding]:
    """Files of one cell that share rows: no row is read twice, and the next run puts them together."""
    findings = []
    chosen = {one.piece: one for one in cover(pieces)}
    for piece in pieces:
        if piece not in chosen:
            others = ", ".join(PurePosixPath(one.path).name for one in chosen if _meet(one, piece))
            findings.append(Finding(piece.path, f"has rows that are all in {others} too", Kind.twice))
        elif skip := chosen[piece].skip:
            findings.append(
                Finding(
                    piece.path, f"has {skip} rows that another file has too; they count once", Kind.overlap
                )
            )
    return findings


def _meet(one: Piece, other: Piece) -> bool:
    return one.start < other.stop and other.start < one.stop


def _drafts(store: FileStore) -> list[str]:
    """What killed writers left; drafts that may still be written to are nobody's business."""
    if not store.disk.local:
        return []
    paths = sorted(path.removeprefix("./") for path in store.disk.files("."))
    drafts = [path for path in paths if is_leftover(PurePosixPath(path).name)]
    return [path for path in drafts if not is_in_use(Path(store.disk.full(path)))]


def collect(store: FileStore, *, dry_run: bool = False, delete: bool = False) -> list[Finding]:
    """Set aside what is damaged or there twice, put overlaps together, delete drafts of killed writers.

    Only what is proved damaged goes, into the folder `quarantine` of the store; `delete` empties it. A file
    that cannot be read now, or is of a newer format, stays where it is.
    """
    findings = verify(store)
    if dry_run:
        return findings
    for finding in findings:
        if finding.kind is Kind.draft:
            remove_leftover(Path(store.disk.full(finding.path)))
        elif finding.kind in TO_SET_ASIDE:
            _set_aside(store, finding)
    listing = store.listing()
    for fingerprint in _overlapping(findings):
        _put_together(store, listing.get(fingerprint, []))
    if delete:
        for path in store.disk.files(QUARANTINE):
            store.disk.remove(path)
    return findings


def _overlapping(findings: list[Finding]) -> set[str]:
    pieces = (Piece.parse(finding.path) for finding in findings if finding.kind is Kind.overlap)
    return {piece.fingerprint for piece in pieces if piece is not None}


def _set_aside(store: FileStore, finding: Finding) -> None:
    """Move a file into the quarantine, unless a run has just put a sound one in its place."""
    if finding.kind is Kind.damaged and not _is_still(store, finding):
        return
    moved = store.disk.move(finding.path, QUARANTINE)
    piece = Piece.parse(finding.path)
    if finding.kind is Kind.damaged and piece is not None:  # a run may have been quicker than the move
        with contextlib.suppress(FileNotFoundError, FaultyFileError):
            store.disk.write(finding.path, read_content(store.disk, piece._replace(path=moved)))


def _is_still(store: FileStore, finding: Finding) -> bool:
    """Whether a second reading says the same: what a disk or a network got wrong once proves nothing."""
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
    """Copy the answers that the other store has and this one lacks; damaged files are left behind.

    Rows that both have are copied with the files they are in, if these have others too; what then overlaps
    is put together.
    """
    other.check_exists()
    if not store.disk.is_empty():
        store.check_exists()
    merged = Merged([], [])
    ours = store.listing()

    def merge_cell(cell: tuple[str, list[Piece]]) -> None:
        fingerprint, theirs = cell
        mine = [piece for piece in ours.get(fingerprint, []) if _may_be_sound(store, piece)]
        copied = [piece for piece in theirs if _lacks(mine, piece) and _copy(store, other, piece, merged)]
        _put_together(store, [*copied, *mine])

    for _ in for_each(merge_cell, other.listing().items(), store.disk, other.disk):
        pass
    for path in other.records():
        if not _has_record(store, path):
            _copy_record(store, other, path, merged)
    return merged


def _put_together(store: FileStore, pieces: list[Piece]) -> None:
    """Gather the pieces of a cell, if they are several and one says which cell it is."""
    if len(pieces) > 1:
        for _, cell, *_ in store.summaries(pieces):
            store.gather(cell)
            return


def _may_be_sound(store: FileStore, piece: Piece) -> bool:
    """Whether a file of ours is not to be replaced: all that are not proved damaged."""
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
