"""Small stores with known results, and files of the first format."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from beaufort.evaluation import predictions
from beaufort.store import Cell, FileStore, query, summarize

__all__ = ["cell", "make_predictions", "old_bytes", "rows_in_python", "rows_in_sql", "write_old"]

CLASSES = 10


def cell(
    model: str = "net", corruption: str | None = "fog", severity: int | None = 3, **facts: object
) -> Cell:
    """A cell of a made-up model."""
    return Cell(
        {"name": model, "digest": f"of {model}", **facts},
        {"name": "digits", "digest": "x"},
        {"corruption": corruption, "severity": severity},
    )


def make_predictions(start: int, stop: int, *, seed: int = 0, **options: Any) -> pa.Table:
    """Return predictions for a range of images; those for an image do not depend on the range."""
    logits = np.array(
        [np.random.default_rng([seed, image]).normal(0, 2, CLASSES) for image in range(start, stop)]
    )
    labels = np.arange(start, stop) * 7 % CLASSES
    return predictions([f"test/{i}" for i in range(start, stop)], labels, logits, **options)


def old_bytes(cell: Cell, table: pa.Table, **changes: str) -> bytes:
    """A file of the first format: notes in Arrow's schema, no digests."""
    notes = {
        "beaufort.format": "1",
        "beaufort.cell": cell.to_json(),
        "beaufort.summary": json.dumps(summarize(table)),
        "beaufort.provenance": "{}",
        **{f"beaufort.{name}": value for name, value in changes.items()},
    }
    buffer = io.BytesIO()
    noted = table.replace_schema_metadata(notes)
    pq.write_table(noted, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


def write_old(root: Path, cell: Cell, start: int, table: pa.Table, **changes: str) -> Path:
    """Put such a file where it belongs."""
    name = f"{cell.fingerprint}-{start}-{start + len(table)}.parquet"
    path = root / "predictions" / cell.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(old_bytes(cell, table, **changes))
    return path


def rows_in_python(store: FileStore) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that can be read, by cell."""
    listing = store.listing()
    columns = ("place", "id", "label", "top", "p", "nll")
    found = {}
    for fingerprint, one in store.cells().items():
        table = store.read(one, listing)
        found[fingerprint] = list(zip(*(table[name].to_pylist() for name in columns), strict=True))
    return found


def rows_in_sql(store: FileStore) -> dict[str, Any]:
    """Return the results of SQL queries: the cells with their sums, and every row."""
    cells = "select fingerprint, images, unread, accuracy, accuracy5, nll, confidence from cells order by all"
    rows = "select model, condition, id, label, top, p, nll from predictions order by condition, model, id"
    sql = f"""
        select (select list(c) from ({cells}) c) as cells, (select list(r) from ({rows}) r) as rows,
            (select sum(stop - start)::int from pieces) as pieces
    """
    return dict(query(store, sql).to_pylist()[0])
