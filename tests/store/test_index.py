"""The index of footers is only a cache: results always agree with the files, whatever it contains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from beaufort.store import FileStore, query
from beaufort.store._format import decode, encode
from beaufort.store._index import INDEX
from tests.torture.stores import cell, make_predictions

CELLS = 12
SQL = "select model, images, accuracy, nll from cells order by model"


@pytest.fixture(params=["disk", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    monkeypatch.setattr("beaufort.store._index._LEAST_NEW_FOOTERS", 5)
    place = tmp_path / "store" if request.param == "disk" else request.getfixturevalue("s3")
    store = FileStore(place)
    for number in range(CELLS):
        store.write(cell(f"net{number:02}"), 0, make_predictions(0, 10, seed=number))
    return store


@pytest.fixture
def footers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose footers were read."""
    read: list[str] = []
    real = FileStore.footer

    def footer(self: FileStore, piece: Any) -> Any:
        read.append(piece.path)
        return real(self, piece)

    monkeypatch.setattr(FileStore, "footer", footer)
    return read


def change(store: FileStore, edit: Callable[[pa.Table], pa.Table]) -> None:
    """Write a valid index with other content."""
    table, _ = decode(store.disk.read(INDEX))
    store.disk.write(INDEX, encode(edit(table), {}))


def forget_what_was_written(store: FileStore) -> FileStore:
    return FileStore(store.location)


def test_an_index_spares_reading_footers(store: FileStore, footers: list[str]) -> None:
    first = query(forget_what_was_written(store), SQL)
    assert len(footers) == CELLS
    footers.clear()
    assert query(forget_what_was_written(store), SQL).equals(first)
    assert len(footers) == 8  # those that are compared


def test_no_index(store: FileStore) -> None:
    first = query(forget_what_was_written(store), SQL)
    store.disk.remove(INDEX)
    assert query(forget_what_was_written(store), SQL).equals(first)


def test_an_old_index(store: FileStore, footers: list[str]) -> None:
    """Added, removed and changed files."""
    query(forget_what_was_written(store), SQL)
    pieces = store.pieces()
    store.disk.remove(pieces[0].path)
    store.write(cell("net01"), 0, make_predictions(0, 10, seed=77))
    store.write(cell("new"), 0, make_predictions(0, 10, seed=99))
    footers.clear()
    found = query(forget_what_was_written(store), SQL).to_pylist()
    assert len(footers) == 2 + 8
    store.disk.remove(INDEX)
    assert query(forget_what_was_written(store), SQL).to_pylist() == found
    assert [row["model"] for row in found] == [f"net{n:02}" for n in range(1, CELLS)] + ["new"]


@pytest.mark.parametrize(
    "lie",
    [
        lambda table: table.set_column(
            table.schema.get_field_index("correct"), "correct", pa.array([0.5] * len(table), pa.float64())
        ),
        lambda table: table.set_column(
            table.schema.get_field_index("file"), "file", pa.array(table["file"].to_pylist()[::-1])
        ),
        lambda table: table.set_column(
            table.schema.get_field_index("model"), "model", pa.array(["another"] * len(table))
        ),
        lambda table: table.drop_columns(["nll"]),
        lambda table: pa.concat_tables([table, table]),
    ],
    ids=["sums", "files", "models", "form", "twice"],
)
def test_an_index_with_wrong_contents(store: FileStore, lie: Callable[[pa.Table], pa.Table]) -> None:
    first = query(forget_what_was_written(store), SQL)
    change(store, lie)
    assert query(forget_what_was_written(store), SQL).equals(first)


def test_a_damaged_index(store: FileStore) -> None:
    first = query(forget_what_was_written(store), SQL)
    content = store.disk.read(INDEX)
    for damaged in (b"", content[:-9], content[: len(content) // 2], content.replace(b"net03", b"net04")):
        store.disk.write(INDEX, damaged)
        assert query(forget_what_was_written(store), SQL).equals(first)


def test_one_wrong_row_is_found_by_verify(store: FileStore) -> None:
    query(forget_what_was_written(store), SQL)

    def lie(table: pa.Table) -> pa.Table:
        sums: list[Any] = table["correct"].to_pylist()
        return table.set_column(
            table.schema.get_field_index("correct"),
            "correct",
            pa.array([sums[0] + 1, *sums[1:]], pa.float64()),
        )

    change(store, lie)
    (finding,) = forget_what_was_written(store).verify()
    assert finding.path == INDEX
    assert "disagrees with" in finding.message
