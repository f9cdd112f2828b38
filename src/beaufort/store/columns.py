"""Conversion between NumPy arrays, columns of tables, and columns of files.

Arrays are converted without `pa.array`, which imports pandas wherever it is installed: that takes half a
second.

In memory, the classes and probabilities of a prediction are fixed-size lists. Parquet has no such type, and
Arrow before version 26 cannot store one with nulls. A column with nulls (of images that cannot be read) is
therefore stored as variable-size lists. Logits are float32 in memory and float16 (three digits) in a file,
unless they are too large.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def column_of(values: NDArray[Any]) -> Any:
    """Return an array of numbers or Booleans as a column.

    >>> column_of(np.array([3, 4], np.int32)).to_pylist(), column_of(np.array([True, False])).to_pylist()
    ([3, 4], [True, False])
    """
    packed: Any = (
        np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    )
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(packed)])


def text_column(values: Iterable[str]) -> Any:
    """Return strings as a column.

    >>> text_column(["a", "", "né"]).to_pylist()
    ['a', '', 'né']
    """
    encoded = [value.encode() for value in values]
    ends: Any = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def numbers_of(column: Any) -> NDArray[Any]:
    """Return the numbers or Booleans of a column, as a read-only array; nulls become NaN.

    >>> numbers_of(pa.chunked_array([[3, 4], [5]])), numbers_of(pa.array([True, False]))
    (array([3, 4, 5]), array([ True, False]))
    """
    whole: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if whole.null_count or not len(whole):
        return np.asarray(whole)
    if pa.types.is_boolean(whole.type):
        bits = np.unpackbits(np.frombuffer(whole.buffers()[1], np.uint8), bitorder="little")
        return np.asarray(bits[whole.offset : whole.offset + len(whole)], np.bool_)
    return np.from_dlpack(whole)


def to_stored(table: pa.Table) -> pa.Table:
    """Return a table as it is stored."""
    if "logits" in table.column_names:
        table = _replace_column(table, "logits", _as_float16(table["logits"].combine_chunks()))
    for place, field in enumerate(table.schema):
        if pa.types.is_fixed_size_list(field.type) and table[field.name].null_count:
            table = table.set_column(place, field.name, _as_lists(table[field.name].combine_chunks()))
    return table


def from_stored(table: pa.Table) -> pa.Table:
    """Return the table of a `to_stored`, up to the rounding of logits."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            table = table.set_column(
                place, field.name, _as_fixed_size_lists(table[field.name].combine_chunks())
            )
    if "logits" in table.column_names:
        table = _replace_column(table, "logits", _with_dtype(table["logits"].combine_chunks(), np.float32))
    return table


def _replace_column(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _as_float16(column: Any) -> Any:
    values = numbers_of(column.flatten())
    finite = values[np.isfinite(values)]
    fits = np.abs(finite).max(initial=0) <= np.finfo(np.float16).max
    return _with_dtype(column, np.float16) if fits else column


def _with_dtype(column: Any, dtype: type[np.floating[Any]]) -> Any:
    """Return the lists with values of another type; null rows stay null."""
    size = column.type.list_size
    values = np.zeros((len(column), size), dtype)
    valid = numbers_of(column.is_valid())
    values[valid] = numbers_of(column.filter(column_of(valid)).flatten()).reshape(-1, size)
    mask = None if valid.all() else column_of(~valid)
    return pa.FixedSizeListArray.from_arrays(column_of(values.ravel()), size, mask=mask)


def _as_lists(column: Any) -> Any:
    valid = numbers_of(column.is_valid())
    offsets = np.concatenate([[0], np.cumsum(valid * column.type.list_size)]).astype(np.int32)
    values = column.filter(column_of(valid)).flatten()
    lists: Any = pa.ListArray
    return lists.from_arrays(column_of(offsets), values, mask=column_of(~valid))


def _as_fixed_size_lists(column: Any) -> Any:
    valid = numbers_of(column.is_valid())
    rows = column.filter(column_of(valid))
    values = numbers_of(rows.flatten())
    size = len(values) // len(rows) if len(rows) else 1
    whole = np.zeros((len(column), size), values.dtype)
    whole[valid] = values.reshape(len(rows), size)
    child = column_of(whole.ravel())
    return pa.FixedSizeListArray.from_arrays(child, size, mask=column_of(~valid))
