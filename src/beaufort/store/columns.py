"""NumPy arrays as columns of tables, and columns as they lie in a file.

Arrays are converted without pandas: PyArrow looks whether what it converts is a pandas object, and for that
imports pandas wherever it is installed, which takes half a second.

In memory the classes and probabilities of a prediction are lists of a fixed size. Parquet has no such type;
releases of Arrow before 26 cannot write one that has nulls, or cannot read it back. So a column with nulls,
which unread images leave, lies in a file as lists of any size. Logits are float32 in memory and float16 in a
file, three digits, as long as they are not too large for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def column_of(values: NDArray[Any]) -> Any:
    """A column of numbers, or of true and false.

    >>> column_of(np.array([3, 4], np.int32)).to_pylist(), column_of(np.array([True, False])).to_pylist()
    ([3, 4], [True, False])
    """
    packed: Any = (
        np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    )
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(packed)])


def text_column(values: Iterable[str]) -> Any:
    """A column of text.

    >>> text_column(["a", "", "né"]).to_pylist()
    ['a', '', 'né']
    """
    encoded = [value.encode() for value in values]
    ends: Any = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def numbers_of(column: Any) -> NDArray[Any]:
    """The numbers of a column, or what is true and false in it, not to be written to; nulls become NaN.

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
    """The table as it is written."""
    if "logits" in table.column_names:
        table = _set(table, "logits", _short(table["logits"].combine_chunks()))
    for place, field in enumerate(table.schema):
        if pa.types.is_fixed_size_list(field.type) and table[field.name].null_count:
            table = table.set_column(place, field.name, _loose(table[field.name].combine_chunks()))
    return table


def from_stored(table: pa.Table) -> pa.Table:
    """The table as it was, but for the rounding of logits."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            table = table.set_column(place, field.name, _fixed(table[field.name].combine_chunks()))
    if "logits" in table.column_names:
        table = _set(table, "logits", _of_type(table["logits"].combine_chunks(), np.float32))
    return table


def _set(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _short(column: Any) -> Any:
    values = numbers_of(column.flatten())
    finite = values[np.isfinite(values)]
    fits = np.abs(finite).max(initial=0) <= np.finfo(np.float16).max
    return _of_type(column, np.float16) if fits else column


def _of_type(column: Any, dtype: type[np.floating[Any]]) -> Any:
    """The lists with values of another type; rows that are null stay so."""
    size = column.type.list_size
    values = np.zeros((len(column), size), dtype)
    valid = numbers_of(column.is_valid())
    values[valid] = numbers_of(column.filter(column_of(valid)).flatten()).reshape(-1, size)
    mask = None if valid.all() else column_of(~valid)
    return pa.FixedSizeListArray.from_arrays(column_of(values.ravel()), size, mask=mask)


def _loose(column: Any) -> Any:
    valid = numbers_of(column.is_valid())
    offsets = np.concatenate([[0], np.cumsum(valid * column.type.list_size)]).astype(np.int32)
    values = column.filter(column_of(valid)).flatten()
    lists: Any = pa.ListArray
    return lists.from_arrays(column_of(offsets), values, mask=column_of(~valid))


def _fixed(column: Any) -> Any:
    valid = numbers_of(column.is_valid())
    answered = column.filter(column_of(valid))
    values = numbers_of(answered.flatten())
    size = len(values) // len(answered) if len(answered) else 1
    whole = np.zeros((len(column), size), values.dtype)
    whole[valid] = values.reshape(len(answered), size)
    child = column_of(whole.ravel())
    return pa.FixedSizeListArray.from_arrays(child, size, mask=column_of(~valid))
