"""Predictions in files: one immutable Parquet file a piece of a cell, whole or absent.

```
STORE/predictions/model=NAME/condition=NAME/FINGERPRINT-START-STOP.parquet
STORE/runs/DIGEST.json
```

A file holds the answers to the images START … STOP - 1 of the data set, and in its footer the facts of its
cell, the sums of its rows and where it came from: it explains itself, so that stores are merged by copying
files. It is written beside its place and renamed; on an object store it is put in one piece. Two processes,
or two machines, may fill one store: the same piece has the same name, and whoever comes last replaces it by
the same rows. A record of each run says what was asked for: the suite, the data set, the models.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from beaufort.errors import BeaufortError
from beaufort.store._lists import from_stored, to_stored
from beaufort.store.cells import Cell
from beaufort.store.predictions import Summary, summarize

__all__ = ["FileStore", "Finding", "Listing", "Piece", "StoreError"]

FORMAT = 1
"""Version of the files; every past one stays readable."""

_ROOT = "predictions"
_RUNS = "runs"
_INDEX = "index.parquet"
_NAME = re.compile(r"([0-9a-f]{32})-(\d+)-(\d+)\.parquet")
_DRAFT = ".draft-"
_TRIES = 5


class StoreError(BeaufortError, OSError):
    """A store that cannot be read or written."""


@dataclass(frozen=True, order=True)
class Piece:
    """One file: the images `start` to `stop` of a cell."""

    path: str
    """In the store."""
    fingerprint: str
    start: int
    stop: int

    @classmethod
    def parse(cls, path: str) -> Piece | None:
        """The piece of a path; None if it is the path of something else."""
        found = _NAME.fullmatch(PurePosixPath(path).name)
        return cls(path, found[1], int(found[2]), int(found[3])) if found else None


Listing = dict[str, list[Piece]]
"""Pieces by the fingerprint of their cell."""


@dataclass(frozen=True)
class Finding:
    """A file that is not what it should be."""

    path: str
    message: str


class FileStore:
    """A folder, or any URL that fsspec knows, that keeps predictions."""

    def __init__(self, location: str | os.PathLike[str]) -> None:
        self.location = os.fspath(location)
        try:
            self._fs, root = fsspec.core.url_to_fs(self.location)
        except (ValueError, ImportError) as error:
            raise StoreError(f"the store {self.location!r} cannot be opened: {error}") from error
        self._root = str(root).rstrip("/")
        self._local = "file" in (
            self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        )

    def __repr__(self) -> str:
        return f"FileStore({self.location!r})"

    @property
    def filesystem(self) -> Any:
        """What opens the files, where they are not on a disk of this machine; else None."""
        return None if self._local else self._fs

    @property
    def pattern(self) -> str:
        """A glob of all files, as a database takes it."""
        root = self._root if self._local else self._fs.unstrip_protocol(self._root)
        return f"{root}/{_ROOT}/*/*/*.parquet"

    # Writing

    def write(
        self,
        cell: Cell,
        start: int,
        table: pa.Table,
        provenance: Mapping[str, Any] | None = None,
    ) -> Piece:
        """Keep the answers to the images from `start` on; they are there whole when this returns."""
        stop = start + len(table)
        path = f"{_ROOT}/{cell.folder}/{cell.fingerprint}-{start}-{stop}.parquet"
        notes = {
            "beaufort.format": str(FORMAT),
            "beaufort.cell": cell.to_json(),
            "beaufort.summary": json.dumps(summarize(table)),
            "beaufort.provenance": json.dumps(dict(provenance or {}), sort_keys=True),
        }
        buffer = io.BytesIO()
        pq.write_table(
            to_stored(table).replace_schema_metadata(notes),
            buffer,
            compression="zstd",
            write_page_checksum=True,
        )
        self._put(path, buffer.getvalue())
        return Piece(path, cell.fingerprint, start, stop)

    def _put(self, path: str, content: bytes) -> None:
        full = f"{self._root}/{path}"
        try:
            if not self._local:
                self._fs.pipe_file(full, content)
                return
            target = Path(full)
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f"{_DRAFT}{os.getpid()}-{secrets.token_hex(4)}")
            try:
                with draft.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(target)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path} cannot be written to {self.location}: {error}") from error

    def write_run(self, facts: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        """Keep what a run was asked for; the same facts replace what was kept of them."""
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        record = json.dumps({**facts, **notes}, sort_keys=True, indent=1)
        self._put(f"{_RUNS}/{digest}.json", record.encode())

    # Reading

    def runs(self) -> list[dict[str, Any]]:
        """What the runs of this store were asked for, the oldest first; damaged records are passed over."""
        found: list[dict[str, Any]] = []
        for path in self._fs.glob(f"{self._root}/{_RUNS}/*.json"):
            with contextlib.suppress(OSError, ValueError):
                record = json.loads(self._fs.cat_file(path))
                if isinstance(record, dict):
                    found.append(record)
        return sorted(found, key=lambda record: str(record.get("time", "")))

    def pieces(self) -> list[Piece]:
        """The files that are there, by name alone."""
        return sorted(self.files())

    def files(self) -> dict[Piece, str]:
        """The files that are there, each with a word that changes when the file does; none is opened."""
        found = {}
        for path, state in self._walk() if self._local else self._find():
            if piece := Piece.parse(path):
                found[piece] = state
        return found

    def _walk(self) -> Iterator[tuple[str, str]]:
        folders = [_ROOT]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(f"{self._root}/{folder}") as entries:
                    for entry in entries:
                        if entry.is_dir():
                            folders.append(f"{folder}/{entry.name}")
                        else:
                            state = entry.stat()
                            yield f"{folder}/{entry.name}", f"{state.st_size} {state.st_mtime_ns}"
            except (FileNotFoundError, NotADirectoryError):
                continue

    def _find(self) -> Iterator[tuple[str, str]]:
        prefix = len(self._root) + 1
        for path, facts in self._fs.find(f"{self._root}/{_ROOT}", detail=True).items():
            state = [facts.get(key) for key in ("size", "mtime", "created", "LastModified", "ETag", "etag")]
            yield str(path)[prefix:], " ".join(map(str, state))

    def listing(self) -> Listing:
        """The files by cell, as they are now: many questions about cells need only one look at the store."""
        listing: Listing = {}
        for piece in self.pieces():
            listing.setdefault(piece.fingerprint, []).append(piece)
        return listing

    def sound(self, cell: Cell, listing: Listing | None = None) -> list[Piece]:
        """The pieces of a cell, whatever its model is called, that are whole as far as their footers tell."""
        listed = self.listing() if listing is None else listing
        pieces = listed.get(cell.fingerprint, [])
        return [piece for piece in pieces if not isinstance(self._footer(piece), Finding)]

    def missing(self, cell: Cell, count: int, listing: Listing | None = None) -> list[tuple[int, int]]:
        """The ranges of images below `count` that have no answer yet.

        >>> FileStore("memory://nothing").missing(Cell({"name": "m"}, {"name": "d"}, {}), 10)
        [(0, 10)]
        """
        gaps, at = [], 0
        for start, stop in sorted((piece.start, piece.stop) for piece in self.sound(cell, listing)):
            if start >= count:
                break
            if start > at:
                gaps.append((at, start))
            at = max(at, stop)
        return [*gaps, (at, count)] if at < count else gaps

    def __contains__(self, cell: Cell) -> bool:
        return bool(self.sound(cell))

    def cells(self) -> dict[str, Cell]:
        """Every cell of the store by its fingerprint."""
        found: dict[str, Cell] = {}
        for piece in self.pieces():
            if piece.fingerprint not in found and not isinstance(footer := self._footer(piece), Finding):
                found[piece.fingerprint] = footer.cell
        return found

    def read(
        self, cell: Cell, listing: Listing | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """All answers of a cell in the order of the data set, each image once, with its `place` in it.

        Only the `columns` asked for, if some are. Another process may gather files meanwhile: if a listed
        one is gone, the store is looked at again.
        """
        if listing is not None and len(self.sound(cell, listing)) < len(listing.get(cell.fingerprint, ())):
            listing = None
        for _ in range(_TRIES - 1):
            try:
                return self._read(cell, listing, columns)
            except FileNotFoundError:
                listing = None
        return self._read(cell, None, columns)

    def _read(self, cell: Cell, listing: Listing | None, columns: Sequence[str] | None) -> pa.Table:
        tables, at = [], 0
        for piece in sorted(self.sound(cell, listing), key=lambda piece: (piece.start, -piece.stop)):
            if piece.stop <= at:
                continue  # another file has these rows too
            skip = max(at - piece.start, 0)
            table = self._table(piece, columns).slice(skip)
            places = pa.array(range(piece.start + skip, piece.stop), pa.int64())
            tables.append(table.add_column(0, "place", places).replace_schema_metadata(None))
            at = piece.stop
        if not tables:
            raise StoreError(
                f"{self.location} has no answers of {cell.model['name']} under {cell.condition_name}"
            )
        return pa.concat_tables(tables)

    def summaries(
        self, pieces: Iterable[Piece] | None = None
    ) -> Iterator[tuple[Piece, Cell, Summary, dict[str, Any]]]:
        """Each sound file with its cell, the sums of its rows and its provenance; only footers are read."""
        for piece in self.pieces() if pieces is None else pieces:
            footer = self._footer(piece)
            if not isinstance(footer, Finding):
                yield piece, footer.cell, footer.summary, footer.provenance

    def _bytes(self, piece: Piece) -> Any:
        return self._fs.open(f"{self._root}/{piece.path}", "rb")

    def _table(self, piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
        with self._bytes(piece) as file:
            return _parse(file.read(), columns)

    def _footer(self, piece: Piece) -> _Footer | Finding:
        try:
            with self._bytes(piece) as file:
                metadata = pq.read_metadata(file)
            notes = {key.decode(): value.decode() for key, value in (metadata.metadata or {}).items()}
            cell = Cell.from_json(notes["beaufort.cell"])
            if int(notes["beaufort.format"]) > FORMAT:
                return Finding(piece.path, "was written by a newer version; update Beaufort")
            if cell.fingerprint != piece.fingerprint:
                return Finding(piece.path, "holds another cell than its name says")
            if metadata.num_rows != piece.stop - piece.start:
                return Finding(piece.path, f"holds {metadata.num_rows} rows, and its name says otherwise")
            return _Footer(
                cell, json.loads(notes["beaufort.summary"]), json.loads(notes["beaufort.provenance"])
            )
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            return Finding(
                piece.path, f"is damaged ({str(error).splitlines()[0][:120] or type(error).__name__})"
            )

    # The index: what footers say, kept in one file; it may be deleted at any time.

    def read_index(self, schema: pa.Schema) -> pa.Table | None:
        """The index, if there is one of this form."""
        try:
            with self._fs.open(f"{self._root}/{_INDEX}", "rb") as file:
                table = _parse(file.read())
        except (OSError, pa.ArrowException):
            return None
        return table if table.schema.remove_metadata().equals(schema) else None

    def write_index(self, table: pa.Table) -> None:
        """Keep an index; a store that cannot be written to does without."""
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        with contextlib.suppress(StoreError):
            self._put(_INDEX, buffer.getvalue())

    # Keeping house

    def verify(self) -> list[Finding]:
        """Read every file to the last byte; what is not right is named."""
        findings = [found for piece in self.pieces() if (found := self._verify(piece))]
        return findings + [Finding(path, "is a draft of a run that was killed") for path in self._drafts()]

    def _verify(self, piece: Piece) -> Finding | None:
        footer = self._footer(piece)
        if isinstance(footer, Finding):
            return footer
        try:
            table = self._table(piece)
        except (OSError, pa.ArrowException) as error:
            return Finding(piece.path, f"is damaged ({str(error).splitlines()[0][:120]})")
        if len(set(table["id"].to_pylist())) != len(table):
            return Finding(piece.path, "has an id twice")
        if summarize(table) != footer.summary:
            return Finding(piece.path, "has sums in its footer that are not those of its rows")
        return None

    def merge(self, other: FileStore) -> list[Piece]:
        """Copy what the other store has and this one has not; files that are not sound stay behind."""
        ours = {piece.path for piece in self.pieces() if not isinstance(self._footer(piece), Finding)}
        copied = []
        for piece in other.pieces():
            if piece.path not in ours and other._verify(piece) is None:
                with other._bytes(piece) as file:
                    self._put(piece.path, file.read())
                copied.append(piece)
        for path in other._fs.glob(f"{other._root}/{_RUNS}/*.json"):
            self._put(f"{_RUNS}/{PurePosixPath(path).name}", other._fs.cat_file(path))
        return copied

    def gather(self, cell: Cell, listing: Listing | None = None) -> Piece | None:
        """Put the rows of a cell that lie in several files, end to end, into one; None if they cannot be.

        The new file is there before the old ones go: whoever reads meanwhile finds every row, some twice.
        """
        pieces = sorted(self.sound(cell, listing), key=lambda piece: piece.start)
        if len(pieces) < 2 or any(a.stop != b.start for a, b in itertools.pairwise(pieces)):
            return None
        try:
            tables = [self._table(piece) for piece in pieces]
        except FileNotFoundError:
            return None  # another process has gathered them
        if any(not table.schema.equals(tables[0].schema, check_metadata=False) for table in tables):
            return None  # some with logits, some without
        origins = [origin for *_, origin in self.summaries(pieces)]
        distinct = list({json.dumps(origin, sort_keys=True): origin for origin in origins}.values())
        gathered = self.write(
            cell,
            pieces[0].start,
            pa.concat_tables(t.replace_schema_metadata(None) for t in tables),
            {"of": distinct},
        )
        for piece in pieces:
            if piece.path != gathered.path:
                with contextlib.suppress(FileNotFoundError):
                    self._fs.rm_file(f"{self._root}/{piece.path}")
        return gathered

    def collect(self, *, dry_run: bool = False) -> list[Finding]:
        """Delete drafts, damaged files, and files all of whose rows another one has too."""
        findings = self.verify()
        damaged = {finding.path for finding in findings}
        by_cell: dict[str, list[Piece]] = {}
        for piece in self.pieces():
            if piece.path not in damaged:
                by_cell.setdefault(piece.fingerprint, []).append(piece)
        for pieces in by_cell.values():
            at = 0
            for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.stop)):
                if piece.stop <= at:
                    findings.append(Finding(piece.path, "has rows that another file has too"))
                at = max(at, piece.stop)
        if not dry_run:
            for finding in findings:
                self._fs.rm_file(f"{self._root}/{finding.path}")
        return findings

    def _drafts(self) -> Sequence[str]:
        if not self._local:
            return []
        root = Path(self._root)
        return sorted(path.relative_to(root).as_posix() for path in root.glob(f"{_ROOT}/*/*/{_DRAFT}*"))


def _parse(content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """A table from the bytes of its file.

    In this thread and from memory: Arrow's own threads, if they hold a Python file when the interpreter
    ends, abort the process.
    """
    file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    return from_stored(file.read(columns=None if columns is None else list(columns), use_threads=False))


@dataclass(frozen=True)
class _Footer:
    cell: Cell
    summary: Summary
    provenance: dict[str, Any]
