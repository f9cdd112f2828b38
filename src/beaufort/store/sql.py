"""Questions to a store, in SQL.

Views: `cells`, one row a model and condition with its accuracy; `pieces`, one row a file; `predictions`, one
row an answer, with `model` and `condition` as columns (their names as in the paths of the files), by which
DuckDB opens only the files it needs. Each answer is there once, however files overlap.

The database sees these views and nothing else, no file, no network and no extension, unless `unsafe` says so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from beaufort._core.errors import MissingExtraError
from beaufort.store._index import read_pieces
from beaufort.store._served import PROTOCOL, Served
from beaufort.store.files import FileStore
from beaufort.store.findings import StoreError

if TYPE_CHECKING:
    import duckdb

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
