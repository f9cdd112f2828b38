"""NumPy arrays as columns of tables, and back, without pandas.

PyArrow looks whether what it converts is a pandas object. For that it imports pandas, wherever that is
installed, which takes half a second.
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
