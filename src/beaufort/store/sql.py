"""SQL queries on a store.

Views: `cells`, one row per model and condition with its accuracy; `pieces`, one row per file; `predictions`,
one row per prediction, with `model` and `condition` (as in the paths of the files) as partition columns. Each
prediction occurs once, even if files overlap.

The database has access to these views only, and not to files, the network or extensions, unless `unsafe`.

DuckDB does not verify checksums. It therefore reads through a file system of its own: the paths are those of
slices, and the content of each file is checked before DuckDB gets it. Nothing can be written.
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
from beaufort.store._format import decode, encode, is_current
from beaufort.store._index import read_pieces
from beaufort.store.files import FileStore
from beaufort.store.findings import FaultyFileError, StoreError
from beaufort.store.pieces import Slice

if TYPE_CHECKING:
    import duckdb

PROTOCOL = "beaufort"

_ROOM = 256 << 20
"""Bytes of files cached in memory, because a database opens a file several times."""
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
    "set temp_directory = ''",  # otherwise DuckDB may write to .tmp of the working folder
    "set python_enable_replacements = false",  # Python variables are not tables
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set enable_external_access = false",
    "set lock_configuration = true",
)
_ATTEMPTS = 60


def connect(store: FileStore, *, unsafe: bool = False) -> duckdb.DuckDBPyConnection:
    """Return an in-memory database with views of a store, as it is at the time of the call.

    Args:
        store: the store.
        unsafe: allow queries to read and write any file, and to load extensions.
    """
    database, files = _retry(lambda: _connect(store, unsafe), store)
    if files.first_fault is not None:
        database.close()
        raise files.first_fault
    return database


def query(store: FileStore, sql: str, *, unsafe: bool = False) -> pa.Table:
    """Return the result of a query.

    Args:
        store: the store.
        sql: one or more statements; the result is that of the last.
        unsafe: allow the query to read and write any file, and to load extensions.
    """
    return _retry(lambda: _query(store, sql, unsafe), store)


def _retry(run: Callable[[], T], store: FileStore) -> T:
    """Run a query again if a file was gathered into another one in the meantime."""
    for attempt in range(_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            return run()
        time.sleep(0.005 * attempt)
    raise StoreError(f"{store.location} changes too fast to be read; try again with fewer writers")


def _query(store: FileStore, sql: str, unsafe: bool) -> pa.Table:
    database, files = _connect(store, unsafe)
    import duckdb

    try:
        result = database.sql(sql)
        table: pa.Table = pa.table({}) if result is None else result.to_arrow_table()
        return table
    except duckdb.Error as error:
        reason = str(error)
    finally:
        database.close()
    # Raised here: an error with DuckDB's as context would keep the database alive until the program ends.
    fault = files.fault or (files.first_fault if "predictions" in reason else None)
    raise fault or StoreError(f"the query failed: {reason}")


def _connect(store: FileStore, unsafe: bool) -> tuple[duckdb.DuckDBPyConnection, SliceFileSystem]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("SQL queries require DuckDB: pip install duckdb") from None
    store.check_exists()
    read = read_pieces(store)
    files = SliceFileSystem.of(store, read.slices)
    database = duckdb.connect()
    database.register_filesystem(files)
    database.register("pieces", read.pieces)
    for statement in () if unsafe else _SAFE:
        database.execute(statement)
    database.execute(_CELLS)
    if read.slices:
        try:
            database.execute(_PREDICTIONS)
        except duckdb.Error as error:  # its first file is faulty; raised by queries of predictions
            if files.fault is None:
                raise StoreError(f"cannot query {store.location}: {error}") from None
            files.fault, files.first_fault = None, files.fault
    return database, files


class SliceFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """A read-only file system of the slices of a store."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, store: FileStore) -> None:
        super().__init__()
        self._store = store
        self._slices: Mapping[str, Slice] = {}
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()
        self.fault: Exception | None = None
        """The first error; the database reports only that there was one."""
        self.first_fault: Exception | None = None
        """The error of the file from which the view of predictions takes its columns."""

    @classmethod
    def of(cls, store: FileStore, slices: Mapping[str, Slice]) -> SliceFileSystem:
        """Return the file system of slices by their paths.

        They are not an argument of the constructor, because fsspec converts arguments to text.
        """
        files = cls(store)
        files._slices = slices
        return files

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BytesIO:
        if mode != "rb":
            raise PermissionError(f"{path} is read-only")
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
        """Return the content of a file; encoded again for a part of it, and if it is not current."""
        content = read_content(self._store.disk, one.piece)
        if not one.skip and is_current(content):
            return content
        return encode(decode(content)[0].slice(one.skip), {})


def to_bytes(table: pa.Table, suffix: str) -> bytes:
    """Return a table as the content of a file: `.parquet`, `.csv`, or `.json` (a list of rows)."""
    if suffix == ".json":
        return to_json(table).encode()
    buffer = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(table, buffer)
    else:
        flat = [_as_text(column) for column in table.columns]
        csv.write_csv(pa.table(flat, names=list(map(spreadsheet_cell, table.column_names))), buffer)
    return buffer.getvalue()


def to_json(table: pa.Table) -> str:
    """Return a table as a JSON list of rows; infinite numbers become null."""
    return json.dumps(_finite(table.to_pylist()), indent=1, default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_text(column: Any) -> Any:
    """Return a column for CSV: lists become JSON, and no text is a formula."""
    if pa.types.is_nested(column.type):
        return pa.array([json.dumps(_finite(value), default=str) for value in column.to_pylist()])
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return pa.array([None if value is None else spreadsheet_cell(value) for value in column.to_pylist()])
    return column
