"""File format: a Parquet table with notes and checksums.

```
rows | footer: schema, offsets of the rows, notes | length of the footer | PAR1
```

Parquet has checksums of pages at most, and none of the footer. Two notes are therefore digests:
`beaufort.content` of everything before the footer, and `beaufort.seal` of the footer itself, computed with
zeros in its place. A footer can be verified alone, and any Parquet reader can read the file.

Files of format 1 lack these notes. Their notes are in the footer twice, because Arrow stores a copy of its
schema there; if the copies differ, the file is damaged. Their rows have page checksums, and must match the
stored sums. In files of formats 1 and 2, the column `label_set` is named `truth`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from beaufort.store.columns import from_stored, to_stored
from beaufort.store.prediction_tables import summarize

FORMAT = 3
"""Version of the format; earlier versions stay readable."""

Notes = dict[str, str]

_END = 8
"""Bytes after the footer: its length, and the magic number."""
_FORMAT, _CONTENT, _SEAL = "beaufort.format", "beaufort.content", "beaufort.seal"
_SUMMARY = "beaufort.summary"
_SEALED = re.compile(rb"beaufort\.seal[^0-9a-f]{1,4}([0-9a-f]{32})", re.DOTALL)
_VERSION = re.compile(rb"beaufort\.format[^0-9]{1,4}([0-9]{1,9})(?![0-9])", re.DOTALL)
_NOTHING = b"0" * 32
_EARLIER_NAMES = {"label_set": "truth"}
"""Names of columns in files of formats 1 and 2."""
_PARSING: tuple[type[Exception], ...] = (
    *(OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError, OverflowError),
    *(AttributeError, RecursionError),
)


class DamagedError(ValueError):
    """The content of a file is not what was written."""


class NewerFormatError(ValueError):
    """The format of a file is newer than this version of Beaufort."""


def encode(table: pa.Table, notes: Mapping[str, str]) -> bytes:
    """Return a table with notes as the content of a file."""
    content_mark, seal_mark = secrets.token_hex(16), secrets.token_hex(16)
    stored = to_stored(table).replace_schema_metadata(None)
    buffer = io.BytesIO()
    repeated: Any = list(_repeated(stored.schema))  # typed as bool in the stubs
    with pq.ParquetWriter(
        buffer,
        stored.schema,
        compression="zstd",
        write_page_checksum=True,
        use_dictionary=repeated,
    ) as writer:
        writer.write_table(stored)
        writer.add_key_value_metadata(
            {**notes, _FORMAT: str(FORMAT), _CONTENT: content_mark, _SEAL: seal_mark}
        )
    whole = buffer.getvalue()
    at = len(whole) - footer_size(whole)
    footer = whole[at:].replace(content_mark.encode(), _digest(whole[:at]))
    footer = footer.replace(seal_mark.encode(), _NOTHING)
    return whole[:at] + _replaced(footer, _seal(footer), _digest(footer))


def _repeated(schema: pa.Schema) -> Iterator[str]:
    """Yield the Parquet names of columns with repeated values; a dictionary makes other columns larger."""
    for field in schema:
        lists = pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type)
        if field.name != "id" and not pa.types.is_floating(field.type.value_type if lists else field.type):
            yield f"{field.name}.list.element" if lists else field.name


def footer_size(tail: bytes) -> int:
    """Return the size of the footer, from the end of a file; it can exceed the length of `tail`."""
    if len(tail) < _END or tail[-4:] != b"PAR1":
        raise DamagedError("it does not end like a Parquet file")
    return int.from_bytes(tail[-_END:-4], "little") + _END


def read_notes(footer: bytes) -> tuple[Notes, int]:
    """Return the checked notes of a footer, and the number of rows."""
    notes, file = _open(footer, footer)
    return notes, file.metadata.num_rows


def _open(content: bytes, footer: bytes) -> tuple[Notes, pq.ParquetFile]:
    """Return the checked notes of a footer, and the file with some content before it."""
    sealed = _seal(footer)
    if sealed and not _holds(footer, sealed) and not _is_newer(footer, sealed):
        raise DamagedError("the checksum of its footer does not match")
    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        raw = dict(file.metadata.metadata or {})
        notes = {key.decode(): value.decode() for key, value in raw.items() if key != b"ARROW:schema"}
        version = int(notes[_FORMAT])
    except MemoryError:
        raise  # not evidence of damage; Arrow's MemoryError is among _PARSING, too
    except _PARSING as error:
        raise DamagedError(_reason(error)) from error
    if version > FORMAT:
        raise NewerFormatError(f"has format {version}; this version reads formats up to {FORMAT}")
    if version >= 2 and not sealed:
        raise DamagedError("its footer has no checksum")
    if version < 2 and _copy_of_notes(raw) != notes:
        raise DamagedError("the two copies of its notes differ")
    return notes, file


def decode(content: bytes, columns: Sequence[str] | None = None) -> tuple[pa.Table, Notes]:
    """Return the table and the notes of a file, every byte checked.

    Parsing is single-threaded and from memory: threads of Arrow that hold a Python file abort the process if
    the interpreter exits.
    """
    notes, file = _checked_notes(content)
    if _is_old(notes):
        table = _checked_old_table(file, notes)
        return (table if columns is None else table.select(list(columns))), notes
    return _parse(file, columns), notes


def check(content: bytes) -> tuple[Notes, int]:
    """Return the notes of a file and the number of rows, every byte checked."""
    notes, file = _checked_notes(content)
    if _is_old(notes):
        _checked_old_table(file, notes)
    return notes, file.metadata.num_rows


def _checked_notes(content: bytes) -> tuple[Notes, pq.ParquetFile]:
    at = len(content) - footer_size(content)
    if at < 0:
        raise DamagedError("the file is truncated")
    notes, file = _open(content, content[at:])
    if not _is_old(notes) and _digest(content[:at]).decode() != notes.get(_CONTENT):
        raise DamagedError("the checksum of its rows does not match")
    return notes, file


def is_current(content: bytes) -> bool:
    """Return whether a checked file has a footer with a checksum, and today's names of columns."""
    if _seal(content[-footer_size(content) :]) is None:
        return False
    names = pq.read_schema(pa.BufferReader(content)).names
    return set(_EARLIER_NAMES.values()).isdisjoint(names)


def _is_old(notes: Notes) -> bool:
    return int(notes[_FORMAT]) < 2


def _checked_old_table(file: pq.ParquetFile, notes: Notes) -> pa.Table:
    table = _parse(file, None)
    try:
        agrees = summarize(table) == json.loads(notes[_SUMMARY])
    except _PARSING as error:
        raise DamagedError(_reason(error)) from error
    if not agrees:
        raise DamagedError("its rows do not add up to the sums in its footer")
    return table


def _parse(file: pq.ParquetFile, columns: Sequence[str] | None) -> pa.Table:
    try:
        stored = {new: old for new, old in _EARLIER_NAMES.items() if old in file.schema_arrow.names}
        wanted = None if columns is None else [stored.get(name, name) for name in columns]
        table = from_stored(file.read(columns=wanted, use_threads=False)).replace_schema_metadata(None)
        if stored:
            names = {old: new for new, old in stored.items()}
            table = table.rename_columns([names.get(name, name) for name in table.column_names])
        return table if columns is None else table.select(list(columns))
    except MemoryError:
        raise
    except _PARSING as error:
        raise DamagedError(_reason(error)) from error


def _seal(footer: bytes) -> re.Match[bytes] | None:
    """Find the seal: the last match, because a name in the notes could match as well."""
    return next(reversed(list(_SEALED.finditer(footer))), None)


def _replaced(footer: bytes, found: re.Match[bytes] | None, by: bytes) -> bytes:
    assert found is not None
    return footer[: found.start(1)] + by + footer[found.end(1) :]


def _holds(footer: bytes, sealed: re.Match[bytes]) -> bool:
    return _digest(_replaced(footer, sealed, _NOTHING)) == sealed[1]


def _is_newer(footer: bytes, sealed: re.Match[bytes]) -> bool:
    """Return whether a footer with a wrong seal has a newer format, and is not ours with a wrong digit."""
    version = _VERSION.search(footer)
    if version is None or int(version[1]) <= FORMAT:
        return False
    ours = _replaced(footer, version, str(FORMAT).encode())
    return len(ours) != len(footer) or not _holds(ours, sealed)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()


def _copy_of_notes(raw: Mapping[bytes, bytes]) -> Notes:
    """Return the notes in the copy of Arrow's schema."""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(raw[b"ARROW:schema"], validate=True)))
        return {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    except _PARSING:
        return {}


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:120] if lines else type(error).__name__
