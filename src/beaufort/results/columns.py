"""A column of a CSV file: one value for each image, such as its patient, its camera, its photographer."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from beaufort.errors import OptionError
from beaufort.registry import unknown

__all__ = ["read_column"]

_ID = "id"


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


def _places(file: str, header: list[str], column: str) -> tuple[int, int]:
    """Where the ids stand, and where the values."""
    if not header:
        raise OptionError(f"{file} must have a line with the names of its columns, got an empty file")
    if twice := [name for name in header if header.count(name) > 1]:
        raise OptionError(f"{file} must name each column once, got {twice[0]!r} twice")
    if column not in header:
        raise OptionError(unknown(f"column of {file}", column, dict.fromkeys(header)))
    ids = header.index(_ID) if _ID in header else 0
    return ids, header.index(column)
