"""Damaged files are detected, named, recomputed, and never used."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beaufort._core.errors import BeaufortError
from beaufort.results import open_results
from beaufort.store import Cell, FaultyFileError, FileStore, Kind, StoreError, query
from beaufort.store._format import DamagedError, decode, encode
from beaufort.store._local import LocalDisk
from tests.torture.flips import flip_bits, flipped
from tests.torture.stores import cell, make_predictions, old_bytes, rows_in_python, rows_in_sql, write_old

Fill = Callable[..., FileStore]
NEWER = {b"beaufort.format": b"99"}


def read_results(store: FileStore) -> Any:
    results = open_results(store)
    return [results.predictions(model).top.tolist() for model in results.models]


def small_store(root: Path, monkeypatch: pytest.MonkeyPatch, old: bool) -> FileStore:
    store = FileStore(root)
    for name in ("net", "other"):
        for start in (0, 30):
            if old:
                write_old(root, cell(name), start, make_predictions(start, start + 30))
            else:
                store.write(cell(name), start, make_predictions(start, start + 30), {"host": "here"})
    monkeypatch.setattr("beaufort.store._index._LEAST_NEW_FOOTERS", 1)
    query(store, "select 1 from cells")
    assert (root / "index.parquet").is_file()
    return store


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True], ids=["now", "first format"])
def test_a_flipped_bit_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool) -> None:
    """Python and SQL return the right result or an error with the file, and `verify` reports the file."""
    small_store(tmp_path, monkeypatch, old)
    each = 10
    found = flip_bits(tmp_path, {"python": rows_in_python, "sql": rows_in_sql}, each)
    assert found.tried == 5 * each
    assert not found.wrong, found.wrong[:5]
    if not old:
        assert not found.unseen, found.unseen[:5]
    assert found.rejected > found.tried / 2


def test_a_flipped_bit_in_a_record_of_a_run(tmp_path: Path, fill: Fill) -> None:
    fill(tmp_path, {"one": 0.8}, images=20)
    found = flip_bits(tmp_path, {"results": read_results}, 60, pattern="*.json")
    assert found.tried == 60
    assert not found.wrong, found.wrong[:5]
    assert not found.unseen, found.unseen[:5]


def test_every_bit_of_a_file() -> None:
    content = encode(make_predictions(0, 3), {"note": "text"})
    assert decode(content)[0].equals(make_predictions(0, 3))
    for place in range(len(content)):
        wrong = bytearray(content)
        wrong[place] ^= 1 << place % 8
        with pytest.raises(DamagedError):
            decode(bytes(wrong))


@pytest.mark.parametrize("length", [0, 1, 7, 8, 100, 2000, -1])
def test_a_file_that_is_cut_short(length: int) -> None:
    with pytest.raises(DamagedError):
        decode(encode(make_predictions(0, 20), {})[:length])


def test_a_name_that_looks_like_a_seal(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    odd = cell("beaufort.seal\t" + "0" * 32, facts="beaufort.format 99")
    store.write(odd, 0, make_predictions(0, 20), {"note": "beaufort.seal " + "f" * 32})
    assert rows_in_python(store)[odd.fingerprint]
    assert not store.verify()


def test_the_first_format_is_read_and_gathered(tmp_path: Path) -> None:
    for start in (0, 20):
        write_old(tmp_path, cell(), start, make_predictions(start, start + 20))
    store = FileStore(tmp_path)
    assert not store.verify()
    assert store.missing(cell(), 50) == [(40, 50)]
    store.write(cell(), 40, make_predictions(40, 50))
    before = store.read(cell())
    assert before.drop_columns(["place"]).equals(make_predictions(0, 50))
    assert rows_in_sql(store)["cells"][0]["images"] == 50
    assert store.gather(cell()) is not None
    assert store.read(cell()).equals(before)


def damage_rows(path: Path) -> None:
    flipped(path, 8 * 200)


def damage_footer(path: Path) -> None:
    flipped(path, 8 * (path.stat().st_size - 300))


@pytest.mark.parametrize("damage", [damage_rows, damage_footer])
def test_the_next_run_does_it_again(tmp_path: Path, damage: Any) -> None:
    store = FileStore(tmp_path)
    piece = store.write(cell(), 0, make_predictions(0, 60))
    damage(tmp_path / piece.path)
    with pytest.raises(FaultyFileError, match=f"{Path(piece.path).name} is damaged"):
        store.read(cell())
    assert store.missing(cell(), 60) == [(0, 60)]
    for start in (0, 20, 40):
        store.write(cell(), start, make_predictions(start, start + 20))
    store.gather(cell())
    assert store.read(cell()).drop_columns(["place"]).equals(make_predictions(0, 60))
    assert not store.verify()


def test_a_damaged_file_that_was_made_anew_under_other_names_is_set_aside(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    damaged = store.write(cell(), 0, make_predictions(0, 30))
    damage_rows(tmp_path / damaged.path)
    store.write(cell(), 0, make_predictions(0, 50))
    store.gather(cell())
    assert [piece.stop for piece in store.pieces()] == [50]
    assert (tmp_path / "quarantine" / damaged.path).is_file()
    assert not store.verify()


def test_rows_of_a_damaged_file_that_another_has_too(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.write(cell(), 0, make_predictions(0, 30))
    large = store.write(cell(), 0, make_predictions(0, 50))
    damage_rows(tmp_path / large.path)
    with pytest.raises(FaultyFileError, match=r"0-50\.parquet"):
        store.read(cell())  # 20 rows would be left out
    store.write(cell(), 20, make_predictions(20, 50))
    assert store.read(cell()).drop_columns(["place"]).equals(make_predictions(0, 50))


@pytest.mark.parametrize("damage", [damage_rows, damage_footer])
def test_results_of_a_damaged_store_are_rejected(tmp_path: Path, fill: Fill, damage: Any) -> None:
    """Damaged cells are neither omitted nor a failure of `gate`: an error names the file."""
    store = fill(tmp_path, {"one": 0.8, "two": 0.7}, images=30)
    piece = store.pieces()[-1]
    damage(tmp_path / piece.path)
    with pytest.raises(FaultyFileError, match=Path(piece.path).name):
        read_results(store)


class Flaky(LocalDisk):
    """A disk that fails to read some files."""

    def __init__(self, location: str, error: type[OSError], times: int = 10**9) -> None:
        super().__init__(location, location)
        self.error, self.times = error, times

    def _read(self, full: str) -> bytes:
        self._fail(full)
        return super()._read(full)

    def _tail(self, full: str, size: int) -> bytes:
        self._fail(full)
        return super()._tail(full, size)

    def _fail(self, full: str) -> None:
        if "/predictions/" in full and self.times > 0:
            self.times -= 1
            raise self.error(5, "it takes too long")


@pytest.mark.parametrize("error", [TimeoutError, PermissionError, OSError, InterruptedError])
def test_temporarily_unreadable_files_are_not_damaged(tmp_path: Path, error: type[OSError]) -> None:
    store = FileStore(tmp_path)
    piece = store.write(cell(), 0, make_predictions(0, 20))
    store.disk = Flaky(str(tmp_path), error)
    findings = store.collect(delete=True)
    assert [(finding.path, finding.kind) for finding in findings] == [(piece.path, Kind.unreadable)]
    assert "cannot be read" in findings[0].message
    with pytest.raises(StoreError, match="cannot be read"):
        store.missing(cell(), 20)
    with pytest.raises(StoreError, match="cannot be read"):
        store.read(cell())
    with pytest.raises(StoreError, match="cannot be read"):
        query(store, "select * from cells")
    assert FileStore(tmp_path).read(cell()).num_rows == 20


def test_a_moment_of_trouble_is_waited_out(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.write(cell(), 0, make_predictions(0, 20))
    store.disk = Flaky(str(tmp_path), TimeoutError, times=2)
    assert store.read(cell()).num_rows == 20


@pytest.mark.parametrize("base", ["old", "now"])
def test_a_newer_format_is_left_alone(tmp_path: Path, base: str) -> None:
    store = FileStore(tmp_path)
    piece = store.write(cell(), 0, make_predictions(0, 20))
    path = tmp_path / piece.path
    if base == "old":
        path.write_bytes(old_bytes(cell(), make_predictions(0, 20), format="99"))
    else:  # the notes of today's format are copied, and so is a seal that does not fit
        table = pq.ParquetFile(path).read()
        notes = pq.read_metadata(path).metadata or {}
        pq.write_table(table.replace_schema_metadata({**notes, **NEWER}), path)
    content = path.read_bytes()
    assert [finding.kind for finding in store.collect(delete=True)] == [Kind.newer]
    assert path.read_bytes() == content
    for call in (lambda: store.missing(cell(), 20), lambda: store.read(cell()), lambda: rows_in_sql(store)):
        with pytest.raises(StoreError, match="update Beaufort"):
            call()
    other = FileStore(tmp_path / "other")
    assert [finding.kind for finding in other.merge(store).left] == [Kind.newer]


def test_one_wrong_digit_does_not_make_a_file_newer() -> None:
    content = encode(make_predictions(0, 3), {})
    place = content.rindex(b"beaufort.format") + len(b"beaufort.format")
    place = content.index(b"2", place)
    assert content[place : place + 1] == b"2"
    with pytest.raises(DamagedError):
        decode(content[:place] + b"6" + content[place + 1 :])


def hostile_cells() -> list[str]:
    good = json.loads(cell().to_json())
    bad: list[Any] = [None, [], "text", 5, {}, {"model": {}, "data": {}, "condition": {}}]
    for place, name in (("model", "name"), ("data", "name"), ("condition", "corruption")):
        odd: tuple[Any, ...] = (5, [], {}, True, "\ud800", "x\ud800")
        bad += [{**good, place: {**good[place], name: value}} for value in odd]
    of_conditions: dict[str, tuple[Any, ...]] = {
        "severity": ("3", 2**40, 1.5, [], True),
        "seed": ([], {}, "0", 2**70),
        "prepare": ("resize", 5, {}),
    }
    for name, values in of_conditions.items():
        bad += [{**good, "condition": {**good["condition"], name: value}} for value in values]
    bad += [{**good, "data": {**good["data"], name: []}} for name in ("digest", "order")]
    no_notes: tuple[Any, ...] = (None, [], "text", 5)
    bad += [{**good, place: value} for place in good for value in no_notes]
    bad += [{key: value for key, value in good.items() if key != place} for place in good]
    texts = [json.dumps(one) for one in bad]
    return [*texts, "", "{", '{"model": NaN}', "[" * 100_000, "nan", '{"a":' * 5000, "\x00"]


def test_hostile_facts_of_cells(tmp_path: Path) -> None:
    """An invalid footer with correct checksums gives an error with the file name, without a traceback."""
    store = FileStore(tmp_path)
    piece = store.write(cell(), 0, make_predictions(0, 20))
    path = tmp_path / piece.path
    table, notes = decode(path.read_bytes())
    texts = hostile_cells()
    assert len(texts) > 50
    for text in texts:
        path.write_bytes(encode(table, {**notes, "beaufort.cell": text}))
        for call in (FileStore.cells, rows_in_sql, open_results, lambda store: store.read(cell())):
            with pytest.raises(BeaufortError, match=path.name):
                call(store)
        assert [finding.path for finding in store.verify()] == [piece.path], text[:80]
        assert store.missing(cell(), 20) == [(0, 20)]


@pytest.mark.parametrize(
    ("note", "text"),
    [
        ("summary", "{}"),
        ("summary", "[]"),
        ("summary", '{"rows": 20}'),
        ("summary", "x"),
        ("provenance", "[]"),
        ("provenance", "{"),
        ("start", "5"),
    ],
)
def test_hostile_notes(tmp_path: Path, note: str, text: str) -> None:
    store = FileStore(tmp_path)
    path = tmp_path / store.write(cell(), 0, make_predictions(0, 20)).path
    table, notes = decode(path.read_bytes())
    path.write_bytes(encode(table, {**notes, f"beaufort.{note}": text}))
    for call in (FileStore.cells, rows_in_sql):
        with pytest.raises(FaultyFileError, match=path.name):
            call(store)


def test_hostile_provenance_of_a_gathered_file(tmp_path: Path, fill: Fill) -> None:
    store = fill(tmp_path, {"one": 0.8}, images=20)
    for piece in store.pieces():
        one = store.footer(piece).cell
        store.write(one, 0, store.table(piece), {"of": [5, None, {"of": ["x"]}, {"host": "here"}]})
    assert open_results(store).origins == ({"host": "here"},)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"5", b'{"suite": 5}', b"[" * 100_000, b"\xff\xfe"])
def test_damaged_records_of_runs(tmp_path: Path, fill: Fill, content: bytes) -> None:
    store = fill(tmp_path, {"one": 0.8}, images=20)
    (record,) = (tmp_path / "runs").iterdir()
    record.write_bytes(content)
    with pytest.raises(FaultyFileError, match=record.name):
        open_results(store)
    assert [finding.path for finding in store.verify()] == [f"runs/{record.name}"]
    store.collect()
    assert store.runs() == []
    assert (tmp_path / "quarantine" / "runs" / record.name).read_bytes() == content


def test_records_of_the_first_format(tmp_path: Path, fill: Fill) -> None:
    store = fill(tmp_path, {"one": 0.8}, images=20)
    (record,) = (tmp_path / "runs").iterdir()
    data = json.loads(record.read_text())
    assert data.pop("checksum")
    assert data.pop("format") == 2
    record.write_text(json.dumps(data))
    assert store.runs() == [data]
    record.write_text(json.dumps({**data, "seed": 5}))
    with pytest.raises(FaultyFileError, match="is damaged"):
        store.runs()


def test_a_damaged_index_is_reported_and_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = small_store(tmp_path, monkeypatch, old=False)
    right = rows_in_sql(store)
    index = tmp_path / "index.parquet"
    flipped(index, 8 * 300)
    assert [finding.path for finding in store.verify()] == ["index.parquet"]
    assert rows_in_sql(store) == right
    assert not store.verify()  # made anew
    table, notes = decode(index.read_bytes())
    place = table.schema.get_field_index("correct")
    untrue = table.set_column(place, "correct", pa.array([0.0] * len(table)))
    index.write_bytes(encode(untrue, notes))  # whole, and not what the files say
    assert "disagrees with" in store.verify()[0].message


def test_too_little_memory_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)
    store.write(cell(), 0, make_predictions(0, 20))

    def out_of_memory(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 10 failed")

    monkeypatch.setattr("beaufort.store._format.pq.ParquetFile", out_of_memory)
    assert [finding.kind for finding in store.collect(delete=True)] == [Kind.unreadable]
    monkeypatch.undo()
    assert store.read(cell()).num_rows == 20


def test_rows_that_cannot_be_taken_apart(tmp_path: Path) -> None:
    """With every digest right: another table than one of predictions, and no table at all."""
    store = FileStore(tmp_path)
    path = tmp_path / store.write(cell(), 0, make_predictions(0, 20)).path
    table, notes = decode(path.read_bytes())
    for name in ("id", "label", "top", "nll"):
        place = table.schema.get_field_index(name)
        path.write_bytes(
            encode(table.set_column(place, name, pa.array(["x"] * 20).dictionary_encode()), notes)
        )
        assert [finding.kind for finding in store.verify()] == [Kind.damaged], name
    twice = table.set_column(0, "id", pa.array(["x"] * 20))
    path.write_bytes(encode(twice, notes))
    assert "an id occurs twice" in store.verify()[0].message


def test_one_wrong_reading_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)
    piece = store.write(cell(), 0, make_predictions(0, 20))
    read, times = store.disk.read, []

    def wrong_once(path: str) -> bytes:
        times.append(path)
        content = read(path)
        return content[:50] + b"x" + content[51:] if times == [piece.path] else content

    monkeypatch.setattr(store.disk, "read", wrong_once)
    store.collect(delete=True)
    assert store.read(cell()).num_rows == 20


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path = tmp_path / store.write(cell(), 0, make_predictions(0, 20)).path
    path.chmod(0)
    assert [finding.kind for finding in store.collect(delete=True)] == [Kind.unreadable]
    path.chmod(0o600)
    assert store.read(cell()).num_rows == 20


def test_the_cell_of_a_text() -> None:
    assert Cell.from_json(cell().to_json()) == cell()
    with pytest.raises(ValueError, match=r"model\.name"):
        Cell.from_json('{"model": {"name": 5}, "data": {"name": "d"}, "condition": {}}')
