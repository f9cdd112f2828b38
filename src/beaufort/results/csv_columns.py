"""CSV files with a value for each image, such as its patient, or for each sequence."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort.data.imagenet_x import read_factors

MOVEMENTS = {"flip_probability": 1.0, "top5_distance": 15.0}
"""Columns of a baseline's values over sequences, with their largest value."""


def read_column(text: str) -> dict[str, str]:
    """Read the values of a column by image id.

    Args:
        text: `FILE.csv:COLUMN`. The ids of the images are in the column `id`, or else in the first
            one. `beaufort results query "select distinct id from predictions"` lists them. The annotations of
            ImageNet-X have the column `factor`: `imagenet_x_val_top_factor.jsonl:factor`.
    """
    file, _, column = text.rpartition(":")
    if not file or not column:
        raise OptionError(f"column must be FILE.csv:COLUMN, got {text!r}")
    if file.endswith(".jsonl") and column == "factor":
        return read_factors(file)
    header, rows = _read(file)
    if column not in header:
        raise OptionError(unknown_message(f"column of {file}", column, header))
    found: dict[str, str] = {}
    key = "id" if "id" in header else header[0]
    for line, row in rows:
        if not row[column]:
            raise OptionError(f"{file}, line {line}: {column} is empty")
        _add(found, row[key], row[column], f"{file}, line {line}")
    if not found:
        raise OptionError(f"{file} has no rows")
    return found


def read_movement(file: str, sequences: Sequence[str]) -> dict[str, dict[str, float]]:
    """Read a baseline's values over sequences, by column of `MOVEMENTS`.

    Args:
        file: with the columns `sequence` and `flip_probability`, `top5_distance` or both.
        sequences: required sequences; others are ignored.
    """
    header, rows = _read(file)
    found: dict[str, dict[str, float]] = {name: {} for name in MOVEMENTS if name in header}
    if not found:
        raise OptionError(
            f"{file} has no column {' or '.join(MOVEMENTS)}; its columns are {', '.join(header)}"
        )
    key = "sequence" if "sequence" in header else header[0]
    for line, row in rows:
        for name, values in found.items():
            value = _positive(f"{file}, line {line}: {name}", row[name], MOVEMENTS[name])
            _add(values, row[key], value, f"{file}, line {line}")
    for name, values in found.items():
        if missing := [one for one in sequences if one not in values]:
            raise OptionError(f"{file} has no {name} for {', '.join(missing)}")
    return found


def _add(found: dict[str, Any], key: str, value: Any, where: str) -> None:
    if key in found:
        raise OptionError(f"{where}: duplicate {key!r}")
    found[key] = value


def _positive(where: str, text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= most:
        raise OptionError(f"{where} must be a number above 0 and at most {most:g}, got {text!r:.40}")
    return value


def _read(file: str) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return the header, and each row that is not empty with its line number."""
    try:
        with Path(file).open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.reader(opened, strict=True)
            lines = [(reader.line_num, row) for row in reader if row]
    except OSError as error:
        raise OptionError(f"cannot read {file}: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise OptionError(f"{file} is not a CSV file in UTF-8 ({error})") from None
    if not lines:
        raise OptionError(f"{file} is empty")
    header = lines[0][1]
    if twice := [name for name in header if header.count(name) > 1]:
        raise OptionError(f"duplicate column {twice[0]!r} in {file}")
    for line, row in lines[1:]:
        if len(row) != len(header):
            raise OptionError(f"{file}, line {line}: {len(row)} fields, expected {len(header)}")
    return header, [(line, dict(zip(header, row, strict=True))) for line, row in lines[1:]]
