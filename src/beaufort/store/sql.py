"""Questions to a store, in SQL.

Views: `cells`, one row a model and condition with its accuracy; `pieces`, one row a file; `predictions`, one
row an answer, with `model` and `condition` as columns (their names as in the paths of the files), by which
DuckDB opens only the files it needs.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from beaufort.errors import MissingExtraError
from beaufort.store.files import FileStore, StoreError

if TYPE_CHECKING:
    import duckdb

__all__ = ["connect", "query", "to_bytes"]

_COLUMNS: dict[str, pa.DataType] = {
    "fingerprint": pa.string(),
    "model": pa.string(),
    "condition": pa.string(),
    "dataset": pa.string(),
    "corruption": pa.string(),
    "severity": pa.int32(),
    "start": pa.int64(),
    "stop": pa.int64(),
    "rows": pa.float64(),
    "unread": pa.float64(),
    "correct": pa.float64(),
    "correct5": pa.float64(),
    "nll": pa.float64(),
    "brier": pa.float64(),
    "entropy": pa.float64(),
    "confidence": pa.float64(),
    "file": pa.string(),
}

_WORTH_AN_INDEX = 500
"""How many footers must have been read anew before the index is written again."""

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


def connect(store: FileStore) -> duckdb.DuckDBPyConnection:
    """A database in memory with views of a store; it reads the store's files and writes nothing."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError(
            "questions in SQL need DuckDB: pip install -c constraints.txt 'beaufort[query]'"
        ) from None
    database = duckdb.connect()
    database.register("pieces", _pieces(store))
    database.execute(_CELLS)
    if store.pieces():
        if store.filesystem is not None:
            database.register_filesystem(store.filesystem)
        pattern = store.pattern.replace("'", "''")
        database.execute(
            f"create view predictions as select * from read_parquet('{pattern}', hive_partitioning = true)"
        )
    return database


def query(store: FileStore, sql: str) -> pa.Table:
    """The answer to a question, as a table."""
    import duckdb

    try:
        answer = connect(store).sql(sql)
        table: pa.Table = pa.table({}) if answer is None else answer.to_arrow_table()
    except duckdb.Error as error:
        raise StoreError(f"the question could not be answered: {error}") from error
    return table


def to_bytes(answer: pa.Table, suffix: str) -> bytes:
    """An answer as a file: `.parquet`, `.csv`, or `.json` (a list of rows)."""
    if suffix == ".json":
        return json.dumps(answer.to_pylist(), indent=1, default=str).encode()
    buffer = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(answer, buffer)
    else:
        flat = [_as_text(column) for column in answer.columns]
        csv.write_csv(pa.table(flat, names=answer.column_names), buffer)
    return buffer.getvalue()


def _as_text(column: Any) -> Any:
    """A column that CSV can hold: lists become JSON."""
    if not pa.types.is_nested(column.type):
        return column
    return pa.array([json.dumps(value) for value in column.to_pylist()])


def _pieces(store: FileStore) -> pa.Table:
    """One row a file, from the index where the file has not changed since, else from its footer."""
    files = store.files()
    states = {piece.path: state for piece, state in files.items()}
    schema = pa.schema({**_COLUMNS, "state": pa.string()})
    known = store.read_index(schema)
    if known is None:
        known = schema.empty_table()
    pairs: list[Any] = known.select(["file", "state"]).to_pylist()
    known = known.filter(pa.array([states.get(one["file"]) == one["state"] for one in pairs], pa.bool_()))
    seen = set(known["file"].to_pylist())
    rows: list[dict[str, Any]] = []
    for piece, cell, summary, _ in store.summaries([piece for piece in files if piece.path not in seen]):
        rows.append(
            {
                "state": states[piece.path],
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
        )
    table = pa.concat_tables([known, pa.Table.from_pylist(rows, schema)])
    if len(rows) >= _WORTH_AN_INDEX:
        store.write_index(table)
    return table.drop_columns(["state"]).sort_by("file")
