"""Accuracies from files: CSV files that people wrote, and the Parquet files of the package."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_unique
from beaufort.testbed.grid import Setting

TEXT_COLUMNS = ("model", "type", "used_for_fit")


def read_rows(path: Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """Read the rows of a CSV file that must have some columns; errors name the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read {path} as CSV: {error}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows = []
    try:
        reader.fieldnames = head = [name.strip() for name in reader.fieldnames or ()]
        if missing := [name for name in needed if name not in head]:
            raise OptionError(
                f"{path} has no column {missing[0]!r}; its columns are {', '.join(head) or 'none'}"
            )
        validate_unique(f"columns of {path}", head)
        for row in reader:
            if None in row or None in row.values():
                raise OptionError(f"{path}, line {reader.line_num} must have {len(head)} values")
            rows.append({name: value.strip() for name, value in row.items()})
    except csv.Error as error:
        raise OptionError(f"cannot read {path} as CSV: line {reader.line_num}: {error}") from None
    if not rows:
        raise OptionError(f"{path} has no rows")
    return rows


def number(text: str, what: str) -> float:
    """A finite number; NaN if there is none."""
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
    """The columns of a grid: texts for `model`, `type` and `used_for_fit`, numbers for all others."""
    rows = read_rows(path, ["model"])
    if not all(row["model"] for row in rows):
        raise OptionError(f"{path} has a row without a name in the column 'model'")
    if set(rows[0]) <= set(TEXT_COLUMNS):
        raise OptionError(f"{path} has no column of accuracies, only {', '.join(rows[0])}")
    columns: dict[str, list[str] | list[float]] = {}
    for name in rows[0]:
        if name in TEXT_COLUMNS:
            columns[name] = [row[name] for row in rows]
        else:
            columns[name] = [number(row[name], f"{name!r} of {row['model']!r} in {path}") for row in rows]
    return columns


# The files of the package, which `tools/pack_testbed.py` makes

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


@cache
def known_settings(grid: str) -> Mapping[str, Setting]:
    """The settings of `testbed`, `timm` or a leaderboard `robustbench-…`, by name."""
    return {row["setting"]: _setting(row) for row in read_table("settings").rows() if row["grid"] == grid}


def _setting(row: Mapping[str, str]) -> Setting:
    def integer(text: str) -> int | None:
        return int(text) if text else None

    return Setting(
        row["setting"],
        row["kind"],
        row["group"],
        row["corruption"],
        integer(row["severity"]),
        row["storage"],
        integer(row["n_images"]),
        integer(row["n_images_reduced"]),
        row["s1_setting"] or None,
        row["class_subset"],
        row["filter"],
    )
