"""Numbers from CSV files that people wrote, with errors that name the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from beaufort._core.errors import OptionError

_TEXTS = ("model", "type", "used_for_fit")


def read_rows(path: Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file that must have some columns."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} cannot be read as CSV: {error}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        return _checked_rows(path, reader, needed)
    except csv.Error as error:
        raise OptionError(f"{path} cannot be read as CSV: line {reader.line_num}: {error}") from None


def _checked_rows(path: Path, reader: csv.DictReader[str], needed: Sequence[str]) -> list[dict[str, str]]:
    head = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = head
    if missing := [name for name in needed if name not in head]:
        raise OptionError(
            f"{path} must have the column {missing[0]!r}, got {', '.join(head) or 'no columns'}"
        )
    if len(set(head)) < len(head):
        twice = next(name for name in head if head.count(name) > 1)
        raise OptionError(f"{path} must have distinct columns, got {twice!r} twice")
    rows = []
    for row in reader:
        if None in row or None in row.values():
            raise OptionError(f"{path}, line {reader.line_num} must have {len(head)} values")
        rows.append({name: value.strip() for name, value in row.items()})
    if not rows:
        raise OptionError(f"{path} must have at least one row under its columns, got none")
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
        raise OptionError(f"{path} must have a name in the column 'model' of every row, got none in some")
    if set(rows[0]) <= set(_TEXTS):
        raise OptionError(
            f"{path} must have a column of accuracies for each setting, got {', '.join(rows[0])} alone"
        )
    columns: dict[str, list[str] | list[float]] = {}
    for name in rows[0]:
        if name in _TEXTS:
            columns[name] = [row[name] for row in rows]
        else:
            columns[name] = [number(row[name], f"{name!r} of {row['model']!r} in {path}") for row in rows]
    return columns
