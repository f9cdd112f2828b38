"""Bundles: published results of one suite in a directory that anybody can read and check.

```
bundle.json            suite, models, data, conditions, provenance, and the digest of every other file
scores.csv             every number with its interval, not rounded
predictions/….parquet  one file per dataset and model: a row for each image and condition
README.md              what the files are
```

`bundle.json` is canonical JSON, and its `digest` covers all its other values: one changed byte is found. A
bundle is read like a store, by `open_results` and by every command that takes a store, but not written to.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from beaufort._core.errors import BeaufortError
from beaufort.store import Cell, FileStore, Footer, Listing, Piece, StoreError, summarize
from beaufort.store.columns import column_of, numbers_of, text_column

MANIFEST = "bundle.json"
SCORES = "scores.csv"
README = "README.md"
FORMAT = 1
"""Version of the format."""

PROBABILITIES = ("confidence", "nll", "brier", "entropy")
"""Columns that a bundle of classes lacks; `confidence` is the probability of the first class."""

_KIND = "beaufort bundle"
_FILE = re.compile(r"predictions/[A-Za-z0-9._@+-]+(?:/[A-Za-z0-9._@+-]+)?\.parquet")
_LARGEST = 64 << 20
"""Largest size of a manifest, in bytes."""


class BundleError(BeaufortError, ValueError):
    """A bundle that is damaged, or not one."""


class PublishedCell(NamedTuple):
    """The predictions of one model under one condition, by their place in a bundle."""

    file: str
    condition: str
    """Value of the column `condition`."""
    cell: Cell
    origins: Sequence[Mapping[str, Any]]
    """Provenance of the predictions."""


def is_bundle(location: str | os.PathLike[str]) -> bool:
    """Return whether a directory is a bundle."""
    return "://" not in os.fspath(location) and (Path(location) / MANIFEST).is_file()


def open_store(location: str | os.PathLike[str] | FileStore) -> FileStore:
    """Return the store, or the bundle, at a location."""
    if isinstance(location, FileStore):
        return location
    return Bundle(location) if is_bundle(location) else FileStore(location)


def digest_of(content: bytes) -> str:
    """Return the SHA-256 digest of a file."""
    return hashlib.sha256(content).hexdigest()


def encode_manifest(facts: Mapping[str, Any]) -> bytes:
    """Return the content of a manifest; `digest` is that of all other values."""
    rest = {name: value for name, value in facts.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    whole = {**rest, "digest": digest_of(text.encode())}
    return (json.dumps(whole, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a bundle; a `BundleError` if it is not as it was written."""
    path = folder / MANIFEST
    try:
        if path.stat().st_size > _LARGEST:
            raise BundleError(f"{path} is too large for a manifest")
        content = path.read_bytes()
        facts = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"cannot read {path}: {error}") from None
    if not isinstance(facts, dict) or facts.get("format") != _KIND:
        raise BundleError(f"{path} is not the manifest of a bundle")
    if type(facts.get("version")) is int and facts["version"] > FORMAT:
        raise BundleError(
            f"{path} has version {facts['version']} of the format; this version of Beaufort reads {FORMAT}"
        )
    try:
        if encode_manifest(facts) != content:
            raise BundleError(f"{path} was changed: its digest does not match its content")
    except (ValueError, TypeError) as error:
        raise BundleError(f"cannot read {path}: {error}") from None
    return facts


def new_manifest(**facts: Any) -> dict[str, Any]:
    """Return the values of a manifest, with the format and its version."""
    return {"format": _KIND, "version": FORMAT, **facts}


class Bundle(FileStore):
    """A bundle, read as a store. Every file is compared with its digest when it is read."""

    def __init__(self, location: str | os.PathLike[str]) -> None:
        self.location = os.fspath(location)
        self.folder = Path(location)
        self.manifest = read_manifest(self.folder)
        try:
            self._entries = dict(self._read_entries())
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise BundleError(f"{self.folder / MANIFEST} is invalid: {error!r}") from None
        self._opened: tuple[str, dict[str, pa.Table]] = ("", {})

    def __repr__(self) -> str:
        return f"Bundle({self.location!r})"

    @property
    def digest(self) -> str:
        """Digest of the manifest, and so of the whole bundle."""
        return str(self.manifest["digest"])

    @property
    def entries(self) -> Mapping[Piece, PublishedCell]:
        """Predictions by the pieces of their cells."""
        return self._entries

    def _read_entries(self) -> Iterable[tuple[Piece, PublishedCell]]:
        facts = self.manifest["facts"]
        for one in self.manifest["predictions"]:
            file = one["file"]
            if not _FILE.fullmatch(file) or ".." in file:
                raise ValueError(f"invalid file name {file!r}")
            for condition, number in one["conditions"].items():
                cell = Cell(facts[one["model"]], facts[one["data"]], facts[number])
                cell = Cell.from_json(cell.to_json())  # checks the facts
                for start, stop in one["spans"]:
                    if not 0 <= start < stop:
                        raise ValueError(f"invalid range of images {start} to {stop}")
                    piece = Piece(f"{file}#{condition}", cell.fingerprint, start, stop)
                    yield piece, PublishedCell(file, condition, cell, one["origins"])

    # The methods of a store

    def check_exists(self) -> None:
        """Do nothing: the manifest was read."""

    def has_predictions(self) -> bool:
        return bool(self._entries)

    def files(self) -> dict[Piece, str]:
        return dict.fromkeys(self._entries, self.digest)

    def listing_of(
        self,
        models: Iterable[str] | None = None,  # noqa: ARG002  the signature of a store
        conditions: Callable[[Sequence[str]], Collection[str]] | None = None,  # noqa: ARG002
    ) -> Listing:
        return self.listing()

    def runs(self) -> list[dict[str, Any]]:
        return [dict(self.manifest["run"])]

    def footer(self, piece: Piece) -> Footer:
        entry = self._entries[piece]
        return Footer(entry.cell, summarize(self.table(piece)), {"of": list(entry.origins)})

    def first_footers(self, listing: Listing) -> Iterator[tuple[Piece, Footer]]:
        """Yield the first piece of each cell, with its facts; its rows are not read for their sums."""
        for first, *_ in listing.values():
            entry = self._entries[first]
            yield first, Footer(entry.cell, {}, {"of": list(entry.origins)})

    def table(self, piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
        entry = self._entries[piece]
        rows = self.rows(entry.file)[entry.condition]
        places = numbers_of(rows["place"])
        first, last = np.searchsorted(places, [piece.start, piece.stop])
        if not np.array_equal(places[first:last], np.arange(piece.start, piece.stop)):
            raise BundleError(f"{entry.file} lacks images {piece.start} to {piece.stop - 1} of {piece.path}")
        table = rows.slice(first, last - first).drop_columns(["place"])
        return table if columns is None else table.select(list(columns))

    def write(self, *_: Any, **__: Any) -> Piece:
        raise StoreError(f"{self.location} is a bundle, which cannot be changed; use a store")

    def content(self, file: str) -> bytes:
        """Return a file of the bundle; a `BundleError` if it is not the published one."""
        known = self.manifest["files"].get(file)
        try:
            content = (self.folder / file).read_bytes()
        except OSError as error:
            raise BundleError(f"cannot read {self.folder / file}: {error.strerror or error}") from None
        if known is None or digest_of(content) != known["sha256"]:
            raise BundleError(f"{self.folder / file} was changed: its digest does not match {MANIFEST}")
        return content

    def rows(self, file: str) -> dict[str, pa.Table]:
        """Return the predictions of a file by condition, with the columns of a store and `place`."""
        if self._opened[0] != file:
            try:
                table = pq.read_table(io.BytesIO(self.content(file)), use_threads=False)
                self._opened = (file, _by_condition(table))
            except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
                if isinstance(error, BundleError):
                    raise
                raise BundleError(
                    f"{file} of {self.location} is not a file of predictions: {error}"
                ) from None
        return self._opened[1]


def pack(tables: Mapping[str, pa.Table], *, probabilities: bool = True) -> bytes:
    """Return the file of the predictions of a model: tables of a store with `place`, by condition."""
    conditions = list(tables)
    whole = pa.concat_tables([_flat(table, probabilities) for table in tables.values()])
    codes = np.repeat(np.arange(len(conditions), dtype=np.int32), [len(table) for table in tables.values()])
    order = np.lexsort((codes, numbers_of(whole["place"])))  # versions of an image are neighbors: they agree
    names: Any = pa.DictionaryArray.from_arrays(column_of(codes[order]), text_column(conditions))
    whole = whole.take(column_of(order)).add_column(0, "condition", names)
    buffer = io.BytesIO()
    floats: Any = [name for name in PROBABILITIES if name in whole.column_names]
    packed: Any = [field.name for field in whole.schema if field.name not in floats]
    pq.write_table(
        whole.combine_chunks(),
        buffer,
        compression="zstd",
        compression_level=19,
        use_dictionary=packed,
        use_byte_stream_split=floats or False,
        write_statistics=False,
    )
    return buffer.getvalue()


def _flat(table: pa.Table, probabilities: bool) -> pa.Table:
    """Return the rows with a column for each of the most probable classes."""
    valid = numbers_of(table["top"].is_valid())
    columns = {"place": column_of(numbers_of(table["place"]).astype(np.int32)), "id": table["id"]}
    columns["label"] = table["label"]
    if "label_set" in table.column_names:
        sets: Any = table["label_set"].combine_chunks()
        columns["label_set"] = sets.cast(pa.list_(pa.int32()))
    top = _expanded(table["top"], valid)
    columns |= {f"top{rank}": _nullable(top[:, rank - 1], valid) for rank in range(1, top.shape[1] + 1)}
    if probabilities:
        columns["confidence"] = _nullable(_expanded(table["p"], valid)[:, 0], valid)
        columns |= {name: table[name] for name in PROBABILITIES[1:]}
    return pa.table(columns)


def _expanded(column: Any, valid: NDArray[np.bool_]) -> NDArray[Any]:
    """Return lists as a matrix, with zeros for nulls."""
    whole: Any = column.combine_chunks()
    some = numbers_of(whole.filter(column_of(valid)).flatten())
    found = np.zeros((len(valid), whole.type.list_size), some.dtype)
    found[valid] = some.reshape(-1, whole.type.list_size)
    return found


def _nullable(values: NDArray[Any], valid: NDArray[np.bool_]) -> Any:
    array: Any = pa.array
    return array(values, mask=~valid)


def _by_condition(table: pa.Table) -> dict[str, pa.Table]:
    """Return the tables of a `pack`, with NaN for probabilities that were left out."""
    names: Any = table["condition"].combine_chunks()
    if not pa.types.is_dictionary(names.type):
        names = names.dictionary_encode()
    codes = numbers_of(names.indices)
    order = np.lexsort((numbers_of(table["place"]), codes))
    table = table.take(column_of(order))
    valid = numbers_of(table["top1"].is_valid())
    ranks = sum(name.startswith("top") for name in table.column_names)
    top = np.stack([_filled(table[f"top{rank}"]) for rank in range(1, ranks + 1)], axis=1).astype(np.int32)
    columns: dict[str, Any] = {
        "place": column_of(numbers_of(table["place"]).astype(np.int64)),
        "id": table["id"].cast(pa.string()),
        "label": table["label"],
        "top": _as_lists(top, valid),
    }
    if "label_set" in table.column_names:
        sets: Any = table["label_set"].combine_chunks()
        columns["label_set"] = _as_lists(numbers_of(sets.flatten()).reshape(len(table), -1), None)
    nothing = np.full(len(table), np.nan, np.float32)
    for name in PROBABILITIES:
        there = name in table.column_names
        columns[name] = table[name] if there else _nullable(nothing, valid)
    columns["p"] = _as_lists(_filled(columns.pop("confidence"))[:, None], valid)
    whole = pa.table(columns)
    ends = np.searchsorted(codes[order], np.arange(len(names.dictionary) + 1))
    return {
        str(name): whole.slice(first, last - first)
        for name, first, last in zip(names.dictionary.to_pylist(), ends, ends[1:], strict=False)
    }


def _filled(column: Any) -> NDArray[Any]:
    whole: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return numbers_of(whole.fill_null(0))


def _as_lists(values: NDArray[Any], valid: NDArray[np.bool_] | None) -> Any:
    mask = None if valid is None or valid.all() else column_of(~valid)
    child = column_of(np.ascontiguousarray(values).ravel())
    return pa.FixedSizeListArray.from_arrays(child, values.shape[1], mask=mask)
