"""CSV files that people write: a value for each image, such as its patient, or for each sequence."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown

_ID, _SEQUENCE = "id", "sequence"

MOVEMENTS = {"flip_probability": 1.0, "top5_distance": 15.0}
"""What a baseline's file may say about a sequence, and the largest value of it."""


def read_column(text: str) -> dict[str, str]:
    """The values of a column by image id.

    Args:
        text: `FILE.csv:COLUMN`. The ids of the images stand in the column `id`, or in the first one if none
            has that name. `beaufort query "select distinct id from predictions"` says what they are.
    """
    file, between, column = text.rpartition(":")
    if not between or not file or not column:
        raise OptionError(f"a column must be given as FILE.csv:COLUMN, got {text!r}")
    rows = _rows(Path(file))
    header = next(rows, (0, []))[1]
    ids, values = _places(file, header, column)
    found: dict[str, str] = {}
    for line, row in rows:
        if len(row) != len(header):
            raise OptionError(f"{file}, line {line}: must have {len(header)} fields, got {len(row)}")
        image, value = row[ids], row[values]
        if not value:
            raise OptionError(f"{file}, line {line}: {column} must not be empty")
        if image in found:
            raise OptionError(f"{file}, line {line}: each id must come once, got {image!r} again")
        found[image] = value
    if not found:
        raise OptionError(f"{file} must have a row for each image, got none")
    return found


def read_movement(file: str, sequences: Sequence[str]) -> dict[str, dict[str, float]]:
    """A baseline's values over some sequences, by column of `MOVEMENTS`; a file has one of them or both.

    Args:
        file: with the columns `sequence` and `flip_probability`, `top5_distance` or both.
        sequences: those that it must have; others are passed over.
    """
    rows = _rows(Path(file))
    header = next(rows, (0, []))[1]
    columns = [name for name in MOVEMENTS if name in header]
    if not columns:
        raise OptionError(f"{file} must have the column {' or '.join(MOVEMENTS)}, got {', '.join(header)}")
    found: dict[str, dict[str, float]] = {name: {} for name in columns}
    for line, row in rows:
        if len(row) != len(header):
            raise OptionError(f"{file}, line {line}: must have {len(header)} fields, got {len(row)}")
        for name in columns:
            key, value = _places(file, header, name, _SEQUENCE)
            if row[key] in found[name]:
                raise OptionError(
                    f"{file}, line {line}: each sequence must come once, got {row[key]!r} again"
                )
            found[name][row[key]] = _positive(f"{file}, line {line}: {name}", row[value], MOVEMENTS[name])
    for name, values in found.items():
        if absent := [one for one in sequences if one not in values]:
            raise OptionError(f"{file} must have {name} for every sequence, got none for {', '.join(absent)}")
    return found


def _positive(where: str, text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= most:
        raise OptionError(f"{where} must be a number above 0 and at most {most:g}, got {text!r:.40}")
    return value


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not empty, each with its number."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                if row:
                    yield reader.line_num, row
    except OSError as error:
        raise OptionError(f"{path} cannot be read ({error.strerror or error})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise OptionError(f"{path} must be a CSV file in UTF-8, got one that is not ({error})") from None


def _places(file: str, header: list[str], column: str, named: str = _ID) -> tuple[int, int]:
    """Where the ids, or other names, stand, and where the values."""
    if not header:
        raise OptionError(f"{file} must have a line with the names of its columns, got an empty file")
    if twice := [name for name in header if header.count(name) > 1]:
        raise OptionError(f"{file} must name each column once, got {twice[0]!r} twice")
    if column not in header:
        raise OptionError(unknown(f"column of {file}", column, dict.fromkeys(header)))
    ids = header.index(named) if named in header else 0
    return ids, header.index(column)
