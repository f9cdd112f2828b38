"""Pictures in a folder or in zips, and a `labels.csv` that lists them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError
from beaufort.data._dataset import Dataset, numbered
from beaufort.data._files import MOST_BYTES, Absent, Member, Members, OnDisk, ZipMember, zip_members
from beaufort.data._reader import reader, unsafe_path_reason

_LIST = "labels.csv"
_OWN = ("file", "label", "zip", "name")
_OTHER_NUMBER = re.compile(r"[+-]\d+|[+-]?(\d+\.\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
"""A number that is not written as a class number."""
_FORM = "columns are file, label and, for pictures in zips, zip; name may tell what a label is called"


class _Row(NamedTuple):
    line: int
    file: str
    label: str
    zip: str
    name: str
    others: dict[str, str]
    """What the list says in other columns: a camera, a season."""


def _detect(path: Path) -> bool:
    if path.suffix.lower() == ".zip":
        return path.is_file() and _LIST in zip_members(path)
    return path.suffix.lower() == ".csv" or (path / _LIST).is_file()


@reader("csv", f"a folder or zip with {_LIST}, or a .csv file with pictures beside it", _detect)
def open_csv(location: str, part: str) -> Dataset:
    """Pictures in the order of the list; ids are the names in its column `file`, other columns are kept."""
    path = Path(location)
    if path.suffix.lower() == ".zip" and path.is_file():
        inside = zip_members(path)
        if _LIST not in inside:
            raise ImageFileError(f"{path} must contain a file {_LIST}")
        rows = list(_rows(inside[_LIST].read(), f"{path}/{_LIST}"))
        members: list[Member] = [_in_zip(row, inside, path.name) for row in rows]
    else:
        table = path / _LIST if path.is_dir() else path
        rows = list(_rows(_content(table), str(table)))
        members = list(_find(rows, table))
    labels, classes = _labels(rows, location)
    return Dataset(
        path.stem if path.is_file() else path.name,
        classes,
        [r.file for r in rows],
        labels,
        Members(members),
        by_name=not rows[0].label.isdigit(),
        columns={name: {row.file: row.others[name] for row in rows} for name in rows[0].others},
    )


def _content(table: Path) -> bytes:
    try:
        with table.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ImageFileError(f"{table} cannot be read ({error.strerror or error})") from None
    if len(content) > MOST_BYTES:
        raise ImageFileError(f"{table} must have at most {MOST_BYTES:,} bytes")
    return content


def _rows(content: bytes, where: str) -> Iterator[_Row]:
    """The rows of a list, each with a file of its own that lies in the data set."""
    seen: dict[str, int] = {}
    try:
        lines = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        if not {"file", "label"} <= set(lines.fieldnames or ()):
            raise ImageFileError(f"{where} has the columns {lines.fieldnames}; {_FORM}")
        columns = [name for name in lines.fieldnames or () if name]
        if twice := [name for name in columns if columns.count(name) > 1]:
            raise ImageFileError(f"{where} must have each column once, got {twice[0]!r} more often")
        others = [name for name in columns if name not in _OWN]
        for fields in lines:
            if beyond := [cell for cell in fields.get(None, ()) if cell.strip()]:
                raise ImageFileError(
                    f"{where}, line {lines.line_num}: a line must have no more cells than there are columns, "
                    f"got {beyond[0]!r:.60} beyond them; put a value with a comma in quotation marks"
                )
            file, label, packed, name = ((fields.get(key) or "").strip() for key in _OWN)
            more = {key: (fields[key] or "").strip() for key in others}
            row = _Row(lines.line_num, file, label, packed, name, more)
            reason = unsafe_path_reason(row.file) or (unsafe_path_reason(row.zip) if row.zip else None)
            if reason is None and row.file in seen:
                reason = f"it is listed in line {seen[row.file]} already"
            if reason is not None:
                raise ImageFileError(f"{where}, line {row.line}: {row.file!r}: {reason}")
            seen[row.file] = row.line
            yield row
    except (UnicodeDecodeError, csv.Error) as error:
        raise ImageFileError(f"{where} cannot be read as a table in UTF-8 ({error}); {_FORM}") from None
    if not seen:
        raise ImageFileError(f"{where} lists no pictures; {_FORM}")


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
    return inside.get(row.file) or Absent(f"the file is listed and is not in {name}")


def _labels(rows: list[_Row], where: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Whole numbers as they are, or names by their place in sorted order; never a mixture.

    Other numbers are not names: in their sorted order 10.0 would come before 2.0.
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
    """Class names from the column `name`, unless it says different things about a label."""
    names: dict[int, str] = {}
    for row, label in zip(rows, labels.tolist(), strict=True):
        if row.name and names.setdefault(label, row.name) != row.name:
            return numbers
    return tuple(names.get(label, number) for label, number in enumerate(numbers))
