"""Files of accuracies: CSV files of users, and the Parquet files of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.files import read_csv
from beaufort.testbed.grid import Setting

TEXT_COLUMNS = ("model", "type", "used_for_fit")


def read_rows(path: Path, required: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file, without spaces around values; an error if it has none."""
    rows = [{name: value.strip() for name, value in row.items()} for _, row in read_csv(path, required)]
    if not rows:
        raise OptionError(f"{path} has no rows")
    return rows


def parse_number(text: str, what: str) -> float:
    """Return a finite number, or NaN for empty text, `nan` and `na`."""
    if not text or text.lower() in {"nan", "na"}:
        return np.nan
    try:
        value = float(text)
    except ValueError:
        value = np.inf
    if not np.isfinite(value):
        raise OptionError(f"{what} must be a number or empty, got {text!r}")
    return value


def read_grid_csv(path: Path) -> dict[str, list[str] | list[float]]:
    """Read the columns of a grid: text for `model`, `type` and `used_for_fit`, numbers for the others."""
    rows = read_rows(path, ["model"])
    if not all(row["model"] for row in rows):
        raise OptionError(f"{path} has a row without a name in the column 'model'")
    if set(rows[0]) <= set(TEXT_COLUMNS):
        raise OptionError(f"{path} has no column of accuracies, only {', '.join(rows[0])}")
    return {
        name: [row[name] for row in rows]
        if name in TEXT_COLUMNS
        else [parse_number(row[name], f"{name!r} of {row['model']!r} in {path}") for row in rows]
        for name in rows[0]
    }


def csv_columns(path: Path) -> list[str]:
    """Return the names of the columns of a CSV file."""
    rows = read_csv(path, [])
    return list(rows[0][1]) if rows else []


# Files of the package, written by `tools/pack_testbed.py`

_STEPS_PER_PERCENT = 100_000


class PackageTable(NamedTuple):
    """A Parquet file of the package."""

    facts: dict[str, str]
    """Source, date, license and caveats."""
    columns: dict[str, list[Any]]

    def percent(self, name: str) -> NDArray[np.float64]:
        """Return a column of accuracies in percent, NaN where missing."""
        return np.array(self.columns[name], np.float64) / _STEPS_PER_PERCENT

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as mappings from column to value."""
        rows = zip(*self.columns.values(), strict=True)
        return [dict(zip(self.columns, values, strict=True)) for values in rows]


@cache
def read_table(name: str) -> PackageTable:
    """Read the file `data/<name>.parquet`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = (files("beaufort.testbed") / "data" / f"{name}.parquet").read_bytes()
    opened = pq.ParquetFile(pa.BufferReader(content))
    stored = opened.metadata.metadata or {}
    table = opened.read(use_threads=False)  # Arrow's threads may abort a process that ends at once
    facts = {key.decode(): text.decode() for key, text in stored.items()}
    return PackageTable(facts, {column: table[column].to_pylist() for column in table.column_names})


@cache
def known_settings(grid: str) -> Mapping[str, Setting]:
    """Return the settings of `testbed`, `timm` or a leaderboard `robustbench-…`, by name."""
    return {
        row["setting"]: Setting(
            row["setting"],
            row["kind"],
            row["group"],
            row["corruption"],
            int(row["severity"]) if row["severity"] else None,
            row["storage"],
            int(row["n_images"]) if row["n_images"] else None,
            int(row["n_images_reduced"]) if row["n_images_reduced"] else None,
            row["s1_setting"] or None,
            row["class_subset"],
            row["filter"],
        )
        for row in read_table("settings").rows()
        if row["grid"] == grid
    }
