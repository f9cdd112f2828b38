"""Questions to a store, in SQL.

Views: `cells`, one row a model and condition with its accuracy; `pieces`, one row a file; `predictions`, one
row an answer, with `model` and `condition` as columns (their names as in the paths of the files), by which
DuckDB opens only the files it needs. Each answer is there once, however files overlap.

The database sees these views and nothing else, no file, no network and no extension, unless `unsafe` says so.

DuckDB checks no checksums and reads whole files. So it is given a file system that exists for it alone: its
paths are those of the slices that are read, and what it opens has been read and checked to the last byte.
It cannot write, and knows no other path.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.spec import AbstractFileSystem
from pyarrow import csv

from beaufort._core.errors import MissingExtraError
from beaufort._core.text import spreadsheet_cell
from beaufort.store._footer import read_content
from beaufort.store._format import decode, encode, is_sealed
from beaufort.store._index import read_pieces
from beaufort.store.files import FileStore
from beaufort.store.findings import FaultyFileError, StoreError
from beaufort.store.pieces import Slice

if TYPE_CHECKING:
    import duckdb

PROTOCOL = "beaufort"

_ROOM = 256 << 20
"""Bytes of files that are kept in memory, because a database opens a file several times."""
T = TypeVar("T")

_CELLS = """
create view cells as
select fingerprint, any_value(model) as model, any_value(condition) as condition,
    any_value(dataset) as dataset, any_value(corruption) as corruption, any_value(severity) as severity,
    sum(rows)::bigint as images, sum(unread)::bigint as unread,
    sum(correct) / sum(rows) as accuracy, sum(correct5) / sum(rows) as accuracy5,
    sum(nll) / sum(rows) as nll, sum(brier) / sum(rows) as brier, sum(entropy) / sum(rows) as entropy,
    sum(confidence) / sum(rows) as confidence
from pieces group by fingerprint
"""
_PREDICTIONS = f"""
create view predictions as select * from read_parquet('{PROTOCOL}://*', hive_partitioning = true,
    hive_types = {{'model': varchar, 'condition': varchar}})
"""
_SAFE = (
    f"set allowed_directories = ['{PROTOCOL}://']",
    "set temp_directory = ''",  # else DuckDB may write to .tmp of the working folder
    "set python_enable_replacements = false",  # no table out of a variable of ours
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set enable_external_access = false",
    "set lock_configuration = true",
)
_LOOKS = 60


def connect(store: FileStore, *, unsafe: bool = False) -> duckdb.DuckDBPyConnection:
    """A database in memory with views of a store; it reads the store's files and writes nothing.

    Args:
        store: which store; it is looked at once, now.
        unsafe: let questions read and write any file, and load extensions.
    """
    database, served = _looking(lambda: _connect(store, unsafe), store)
    if served.first_fault is not None:
        database.close()
        raise served.first_fault
    return database


def query(store: FileStore, sql: str, *, unsafe: bool = False) -> pa.Table:
    """The answer to a question, as a table.

    Args:
        store: which store.
        sql: one or more statements; the answer is that of the last.
        unsafe: let the question read and write any file, and load extensions.
    """
    return _looking(lambda: _answer(store, sql, unsafe), store)


def _looking(ask: Callable[[], T], store: FileStore) -> T:
    """Ask again while a file was gathered into another one meanwhile."""
    for look in range(_LOOKS):
        with contextlib.suppress(FileNotFoundError):
            return ask()
        time.sleep(0.005 * look)
    raise StoreError(f"{store.location} changes faster than it can be read; try again when fewer write")


def _answer(store: FileStore, sql: str, unsafe: bool) -> pa.Table:
    database, served = _connect(store, unsafe)
    import duckdb

    try:
        answer = database.sql(sql)
        table: pa.Table = pa.table({}) if answer is None else answer.to_arrow_table()
        return table
    except duckdb.Error as error:
        reason = str(error)
    finally:
        database.close()
    # Out of the block: an error that remembers DuckDB's keeps the database alive until the program ends.
    fault = served.fault or (served.first_fault if "predictions" in reason else None)
    raise fault or StoreError(f"the question could not be answered: {reason}")


def _connect(store: FileStore, unsafe: bool) -> tuple[duckdb.DuckDBPyConnection, Served]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("questions in SQL need DuckDB: pip install duckdb") from None
    store.check_exists()
    read = read_pieces(store)
    served = Served.of(store, read.slices)
    database = duckdb.connect()
    database.register_filesystem(served)
    database.register("pieces", read.pieces)
    for statement in () if unsafe else _SAFE:
        database.execute(statement)
    database.execute(_CELLS)
    if read.slices:
        try:
            database.execute(_PREDICTIONS)
        except duckdb.Error as error:  # its first file is faulty: a matter of those who ask for predictions
            if served.fault is None:
                raise StoreError(f"{store.location} cannot be asked: {error}") from None
            served.fault, served.first_fault = None, served.fault
    return database, served


class Served(AbstractFileSystem):  # type: ignore[misc]
    """Slices of a store as files that can be read."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, store: FileStore) -> None:
        super().__init__()
        self._store = store
        self._slices: Mapping[str, Slice] = {}
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()
        self.fault: Exception | None = None
        """What went wrong first; the database only says that something did."""
        self.first_fault: Exception | None = None
        """What went wrong with the file that the view of predictions takes its columns from."""

    @classmethod
    def of(cls, store: FileStore, slices: Mapping[str, Slice]) -> Served:
        """The slices of a store by their paths.

        They are no argument of the file system: fsspec makes a text of each, and there may be very many.
        """
        served = cls(store)
        served._slices = slices
        return served

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BytesIO:
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        return io.BytesIO(self._content(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return {"name": path, "size": len(self._content(path)), "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        return self._strip_protocol(path) in self._slices

    def glob(self, path: str, **_: Any) -> list[str]:
        pattern = self._strip_protocol(path)
        if pattern == "*":
            return list(self._slices)
        return [one for one in self._slices if fnmatchcase(one, pattern)]

    def modified(self, path: str) -> datetime:  # noqa: ARG002
        return datetime.fromtimestamp(0, UTC)

    def _content(self, path: str) -> bytes:
        with self._lock:
            if path in self._kept:
                self._kept.move_to_end(path)
                return self._kept[path]
        if path not in self._slices:
            raise FileNotFoundError(path)
        try:
            content = self._read(self._slices[path])
        except (FileNotFoundError, FaultyFileError) as error:
            self.fault = self.fault or error
            raise
        with self._lock:
            self._kept[path] = content
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > _ROOM:
                self._kept.popitem(last=False)
        return content

    def _read(self, one: Slice) -> bytes:
        """The bytes of a file; new ones for a part of it, and where nothing vouches for all of its footer."""
        content = read_content(self._store.disk, one.piece)
        if not one.skip and is_sealed(content):
            return content
        return encode(decode(content)[0].slice(one.skip), {})


def to_bytes(answer: pa.Table, suffix: str) -> bytes:
    """An answer as a file: `.parquet`, `.csv`, or `.json` (a list of rows)."""
    if suffix == ".json":
        return to_json(answer).encode()
    buffer = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(answer, buffer)
    else:
        flat = [_as_text(column) for column in answer.columns]
        csv.write_csv(pa.table(flat, names=list(map(spreadsheet_cell, answer.column_names))), buffer)
    return buffer.getvalue()


def to_json(answer: pa.Table) -> str:
    """An answer as a list of rows; JSON has no infinite numbers, which become null."""
    return json.dumps(_finite(answer.to_pylist()), indent=1, default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_text(column: Any) -> Any:
    """A column that CSV can hold: lists become JSON, and no text is a formula."""
    if pa.types.is_nested(column.type):
        return pa.array([json.dumps(_finite(value), default=str) for value in column.to_pylist()])
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return pa.array([None if value is None else spreadsheet_cell(value) for value in column.to_pylist()])
    return column
