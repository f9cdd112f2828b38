"""Images in a directory or in zips, listed in a `labels.csv`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError
from beaufort.data._checks import check_at_most, reading, unsafe_path_reason
from beaufort.data._dataset import Dataset, numbered
from beaufort.data._files import (
    MAX_MEMBER_BYTES,
    Member,
    Members,
    MissingFile,
    OnDisk,
    ZipMember,
    zip_members,
)
from beaufort.data._reader import reader

_LIST = "labels.csv"
_OWN = ("file", "label", "zip", "name")
_OTHER_NUMBER = re.compile(r"[+-]\d+|[+-]?(\d+\.\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
"""A number that is not a non-negative integer."""
_FORM = "columns are file, label and, optionally, zip (for images in zips) and name (of the class)"
_MAX_EMPTY_LINES = 10_000


class _Row(NamedTuple):
    line: int
    file: str
    label: str
    zip: str
    name: str
    others: dict[str, str]
    """Values of other columns, such as a camera."""


def _detect(path: Path) -> bool:
    if path.suffix.lower() == ".zip":
        return path.is_file() and _LIST in zip_members(path)
    return path.suffix.lower() == ".csv" or (path / _LIST).is_file()


@reader("csv", f"a directory or zip with {_LIST}, or a .csv file with images beside it", _detect)
def open_csv(location: str, part: str) -> Dataset:
    """Open images in the order of the list; ids are the names in column `file`."""
    path = Path(location)
    if path.suffix.lower() == ".zip" and path.is_file():
        inside = zip_members(path)
        if _LIST not in inside:
            raise ImageFileError(f"{_LIST} not found in {path}")
        rows = list(_rows(inside[_LIST].read(), f"{path}/{_LIST}"))
        members: list[Member] = [_in_zip(row, inside, path.name) for row in rows]
    else:
        table = path / _LIST if path.is_dir() else path
        with reading(table, OSError), table.open("rb") as file:
            content = file.read(MAX_MEMBER_BYTES + 1)
        check_at_most(table, len(content), MAX_MEMBER_BYTES)
        rows = list(_rows(content, str(table)))
        members = list(_find(rows, table))
    labels, classes = _labels(rows, location)
    return Dataset(
        path.stem if path.is_file() else path.name,
        classes,
        [row.file for row in rows],
        labels,
        Members(members),
        by_name=not rows[0].label.isdigit(),
        columns={name: {row.file: row.others[name] for row in rows} for name in rows[0].others},
    )


def _rows(content: bytes, where: str) -> Iterator[_Row]:
    """Yield the rows of a list; each names a different file inside the dataset."""
    seen: dict[str, int] = {}
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
    with reading(f"{where} as a CSV file in UTF-8", (UnicodeDecodeError, csv.Error)):
        lines = csv.DictReader(_few_empty(text, where), strict=True)
        columns = [name for name in lines.fieldnames or () if name]
        if missing := [name for name in ("file", "label") if name not in columns]:
            raise ImageFileError(f"{where} has no column {missing[0]!r}; {_FORM}")
        if repeated := [name for name in columns if columns.count(name) > 1]:
            raise ImageFileError(f"{where} has two columns {repeated[0]!r}")
        others = [name for name in columns if name not in _OWN]
        for fields in lines:
            if beyond := [cell for cell in fields.get(None, ()) if cell.strip()]:
                raise ImageFileError(
                    f"{where}, line {lines.line_num}: {beyond[0]!r:.60} is beyond the last column; put "
                    "values that contain commas in quotation marks"
                )
            file, label, packed, name = ((fields.get(key) or "").strip() for key in _OWN)
            more = {key: (fields[key] or "").strip() for key in others}
            row = _Row(lines.line_num, file, label, packed, name, more)
            reason = unsafe_path_reason(row.file) or (unsafe_path_reason(row.zip) if row.zip else None)
            if reason is None and row.file in seen:
                reason = f"it is already listed in line {seen[row.file]}"
            if reason is not None:
                raise ImageFileError(f"{where}, line {row.line}: {row.file!r}: {reason}")
            seen[row.file] = row.line
            yield row
    if not seen:
        raise ImageFileError(f"{where} lists no images; {_FORM}")


def _few_empty(lines: Iterable[str], where: str) -> Iterator[str]:
    """Yield lines; raise an error at too many empty ones: a small zip can contain 250 million."""
    empty = 0
    for line in lines:
        if line in ("\n", "\r", "\r\n"):
            empty += 1
            check_at_most(where, empty, _MAX_EMPTY_LINES, "empty lines")
        yield line


def _find(rows: list[_Row], table: Path) -> Iterator[Member]:
    zips: dict[str, dict[str, ZipMember]] = {}
    for row in rows:
        if not row.zip:
            yield OnDisk(table.parent / row.file)
            continue
        if row.zip not in zips:
            zips[row.zip] = zip_members(table.parent / row.zip)
        yield _in_zip(row, zips[row.zip], row.zip)


def _in_zip(row: _Row, inside: dict[str, ZipMember], name: str) -> Member:
    return inside.get(row.file) or MissingFile(f"the file is listed, but missing in {name}")


def _labels(rows: list[_Row], where: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return labels and class names, for labels that are all integers or all names.

    Other numbers are rejected as names: in sorted order 10.0 would come before 2.0.
    """
    whole = [row.label.isascii() and row.label.isdigit() for row in rows]
    odd = next((row for row in rows if not row.label or _OTHER_NUMBER.fullmatch(row.label)), None)
    if odd is None and any(whole) != all(whole):
        odd = next(row for row, number in zip(rows, whole, strict=True) if not number)
    if odd is not None:
        raise ImageFileError(
            f"{where}, line {odd.line}: labels must be all non-negative integers or all names, got "
            f"{odd.label!r}"
        )
    if not all(whole):
        names = tuple(sorted({row.label for row in rows}))
        places = {name: place for place, name in enumerate(names)}
        return np.array([places[row.label] for row in rows], np.int64), names
    if longest := next((row for row in rows if len(row.label) > 9), None):
        raise ImageFileError(f"{where}, line {longest.line}: the label {longest.label} is too large")
    labels = np.array([int(row.label) for row in rows], np.int64)
    return labels, _named(rows, labels, numbered(labels))


def _named(rows: list[_Row], labels: NDArray[np.int64], numbers: tuple[str, ...]) -> tuple[str, ...]:
    """Return class names from the column `name`; numbers if a label has two names."""
    names: dict[int, str] = {}
    for row, label in zip(rows, labels.tolist(), strict=True):
        if row.name and names.setdefault(label, row.name) != row.name:
            return numbers
    return tuple(names.get(label, number) for label, number in enumerate(numbers))
