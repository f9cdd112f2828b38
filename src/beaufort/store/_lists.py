"""Lists of one length with gaps, as every Arrow can write and read them.

In memory the classes and probabilities of an answer are lists of a fixed size. Parquet has no such type;
releases of Arrow before 26 cannot write one that has nulls, or cannot read it back. So a column with nulls,
which unread images leave, lies in a file as lists of any size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["from_stored", "to_stored"]


def to_stored(table: pa.Table) -> pa.Table:
    """The table with lists of any size where lists of a fixed size have nulls."""
    for place, field in enumerate(table.schema):
        if pa.types.is_fixed_size_list(field.type) and table[field.name].null_count:
            table = table.set_column(place, field.name, _loose(table[field.name].combine_chunks()))
    return table


def from_stored(table: pa.Table) -> pa.Table:
    """The table with lists of a fixed size again."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            table = table.set_column(place, field.name, _fixed(table[field.name].combine_chunks()))
    return table


def _loose(column: Any) -> Any:
    valid = np.asarray(column.is_valid())
    offsets = np.concatenate([[0], np.cumsum(valid * column.type.list_size)]).astype(np.int32)
    values = column.filter(pa.array(valid)).flatten()
    lists: Any = pa.ListArray
    return lists.from_arrays(pa.array(offsets), values, mask=pa.array(~valid))


def _fixed(column: Any) -> Any:
    valid = np.asarray(column.is_valid())
    answered = column.filter(pa.array(valid))
    values = np.asarray(answered.flatten())
    size = len(values) // len(answered) if len(answered) else 1
    whole = np.zeros((len(column), size), values.dtype)
    whole[valid] = values.reshape(len(answered), size)
    child = pa.array(whole.ravel(), column.type.value_type)
    return pa.FixedSizeListArray.from_arrays(child, size, mask=pa.array(~valid))
