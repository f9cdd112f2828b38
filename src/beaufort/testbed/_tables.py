"""The figures that come with the package: Parquet files made by `tools/pack_testbed.py`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_UNIT = 100_000
"""Accuracies are stored as whole steps of this many to a percent."""


class FigureTable(NamedTuple):
    """A file of figures."""

    facts: dict[str, str]
    """Source, date, license, and what to beware of."""
    columns: dict[str, list[Any]]

    def percent(self, name: str) -> NDArray[np.float64]:
        """A column of accuracies in percent, NaN where there is none."""
        steps = [np.nan if step is None else step for step in self.columns[name]]
        return np.array(steps, np.float64) / _UNIT

    def rows(self) -> list[dict[str, Any]]:
        """The rows as mappings from column to value."""
        return [
            dict(zip(self.columns, values, strict=True))
            for values in zip(*self.columns.values(), strict=True)
        ]


@cache
def read_table(name: str) -> FigureTable:
    """The file `data/<name>.parquet`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = (files("beaufort.testbed") / "data" / f"{name}.parquet").read_bytes()
    opened = pq.ParquetFile(pa.BufferReader(content))
    stored = opened.metadata.metadata or {}
    table = opened.read(use_threads=False)  # Arrow's threads may abort a process that ends at once
    facts = {key.decode(): text.decode() for key, text in stored.items()}
    return FigureTable(facts, {column: table[column].to_pylist() for column in table.column_names})
