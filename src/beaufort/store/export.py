"""An answer as a file that other programs read."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from beaufort._core.text import spreadsheet_cell


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
