"""Pieces are written completely or not at all, damage is detected, and merged stores add up."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort.evaluation import predictions
from beaufort.store import (
    Cell,
    FileStore,
    Kind,
    Piece,
    PredictionsError,
    StoreError,
    query,
    summarize,
    without_prediction,
)
from beaufort.store._footer import Footer
from beaufort.store._index import _COMPARED
from tests.torture.stores import cell, make_predictions


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store" if request.param == "folder" else f"memory://{tmp_path.name}")


def test_fingerprints_know_every_fact() -> None:
    same = Cell(
        {"digest": "of net", "name": "renamed"},
        {"digest": "x", "name": "digits"},
        {"severity": 3, "corruption": "fog"},
    )
    assert same == cell()
    others = [cell("other"), cell(severity=4), cell(corruption=None, severity=None), cell(threshold=0.5)]
    assert len({c.fingerprint for c in [cell(), *others]}) == 5
    assert Cell.from_json(cell().to_json()) == cell()
    assert [c.condition_name for c in (cell(), others[2])] == ["digits/fog@3", "digits"]


def test_a_cell_that_could_not_be_read_again_is_not_written(store: FileStore) -> None:
    with pytest.raises(StoreError, match="seed"):
        store.write(Cell({"name": "net"}, {"name": "digits"}, {"seed": 2**63}), 0, make_predictions(0, 3))
    assert not store.listing()


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32))
def test_predictions_against_the_obvious(rows: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (rows, classes)).astype(np.float32)
    labels = rng.integers(0, classes, rows)
    table = predictions([str(i) for i in range(rows)], labels, logits, keep_logits=True)
    p = np.exp(logits.astype(float))
    p /= p.sum(axis=1, keepdims=True)
    onehot = np.eye(classes)[labels]
    assert np.allclose(table["brier"], ((p - onehot) ** 2).sum(axis=1), atol=1e-5)
    assert np.allclose(table["nll"], -np.log(p[np.arange(rows), labels]), atol=1e-4)
    assert np.allclose(table["entropy"], -(p * np.log(p)).sum(axis=1), atol=1e-4)
    assert np.array_equal(np.array(table["top"].to_pylist())[:, 0], logits.argmax(axis=1))
    assert np.allclose(np.array(table["p"].to_pylist())[:, 0], p.max(axis=1), atol=1e-6)
    assert np.array_equal(np.array(table["logits"].to_pylist(), np.float32), logits)
    summary = summarize(table)
    assert summary["rows"] == rows
    assert summary["correct"] == (logits.argmax(axis=1) == labels).sum()
    if classes <= 5:
        assert summary["correct5"] == rows


def test_invalid_responses_are_rejected() -> None:
    with pytest.raises(PredictionsError, match=r"finite.* first .*\bb\b"):
        predictions(["a", "b"], [0, 1], np.array([[0.0, 1.0], [np.nan, 1.0]]))
    with pytest.raises(PredictionsError, match="2 ids"):
        predictions(["a", "b"], [0], np.zeros((2, 3)))


def test_round_trip(store: FileStore) -> None:
    assert cell() not in store
    store.write(cell(), 0, make_predictions(0, 50), {"host": "here"})
    store.write(cell(), 50, make_predictions(50, 80))
    assert cell() in store
    table = store.read(cell())
    assert table["place"].to_pylist() == list(range(80))
    wanted = pa.concat_tables([make_predictions(0, 50), make_predictions(50, 80)])
    assert table.drop_columns(["place"]).equals(wanted)
    assert store.cells() == {cell().fingerprint: cell()}
    assert not store.verify()
    with pytest.raises(StoreError, match="no predictions of other"):
        store.read(cell("other"))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=6), st.integers(1, 40))
def test_missing_and_read_with_any_overlap(ranges: list[tuple[int, int]], count: int) -> None:
    store = FileStore(f"memory://{uuid.uuid4()}")
    covered: set[int] = set()
    rows = make_predictions(0, 60)
    for start, length in ranges:
        store.write(cell(), start, rows.slice(start, length))
        covered |= set(range(start, start + length))
    gaps = store.missing(cell(), count)
    assert {i for start, stop in gaps for i in range(start, stop)} == set(range(count)) - covered
    if covered:
        assert store.read(cell())["place"].to_pylist() == sorted(covered)
        assert store.read(cell())["id"].to_pylist() == [f"test/{i}" for i in sorted(covered)]
    store.collect()
    assert {i for p in store.pieces() for i in range(p.start, p.stop)} == covered


def test_damage_is_found_and_done_again(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    pieces = [store.write(cell(), start, make_predictions(start, start + 40)) for start in (0, 40, 80, 120)]
    paths = [tmp_path / piece.path for piece in pieces]
    paths[0].write_bytes(paths[0].read_bytes()[:-30])  # cut short
    content = bytearray(paths[1].read_bytes())
    content[200] ^= 0xFF  # a flipped byte inside
    paths[1].write_bytes(bytes(content))
    paths[2].write_bytes(paths[3].read_bytes())  # another piece under its name
    assert [finding.path for finding in store.verify()] == [piece.path for piece in pieces[:3]]
    assert store.missing(cell(), 160) == [(0, 120)]
    store.collect()
    assert store.missing(cell(), 160) == [(0, 120)]
    assert [piece.path for piece in store.pieces()] == [pieces[3].path]


def test_a_file_of_another_cell_is_not_believed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    mine = store.write(cell(), 0, make_predictions(0, 20))
    other = store.write(cell("other"), 0, make_predictions(0, 20, seed=1))
    (tmp_path / mine.path).write_bytes((tmp_path / other.path).read_bytes())
    assert store.missing(cell(), 20) == [(0, 20)]
    assert "its cell" in store.verify()[0].message


def test_merge(tmp_path: Path) -> None:
    one, other = FileStore(tmp_path / "one"), FileStore(tmp_path / "other")
    one.write(cell(), 0, make_predictions(0, 20))
    other.write(cell(), 20, make_predictions(20, 40))
    other.write(cell("second"), 0, make_predictions(0, 20))
    broken = other.write(cell("third"), 0, make_predictions(0, 20))
    (tmp_path / "other" / broken.path).write_bytes(b"")
    copied, left = one.merge(other)
    assert len(copied) == 2
    assert [finding.path for finding in left] == [broken.path]
    assert one.merge(other).copied == []
    assert len(one.read(cell())) == 40
    assert cell("third") not in one


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        store.write(cell(), 0, make_predictions(0, 20))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_read_only_store_is_reported(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file, not a folder")
    with pytest.raises(StoreError, match="must be a folder"):
        FileStore(tmp_path / "store").write(cell(), 0, make_predictions(0, 20))


def test_unknown_protocol() -> None:
    with pytest.raises(StoreError, match="nosuch"):
        FileStore("nosuch://bucket/store")


def test_questions(store: FileStore) -> None:
    store.write(cell(), 0, make_predictions(0, 50))
    store.write(cell(), 50, make_predictions(50, 80))
    store.write(cell("second net", corruption=None, severity=None), 0, make_predictions(0, 30, seed=5))
    board = query(store, "select model, condition, images, accuracy from cells order by model").to_pylist()
    assert [(row["model"], row["condition"], row["images"]) for row in board] == [
        ("net", "digits/fog@3", 80),
        ("second net", "digits", 30),
    ]
    table = store.read(cell())
    accuracy = np.mean(np.array(table["top"].to_pylist())[:, 0] == table["label"].to_numpy())
    assert board[0]["accuracy"] == pytest.approx(accuracy)
    output = query(
        store, "select avg((top[1] = label)::int) as a, count(*) as n from predictions where model = 'net'"
    )
    assert output.to_pylist() == [{"a": pytest.approx(accuracy), "n": 80}]
    with pytest.raises(StoreError, match="query failed"):
        query(store, "select nonsense from cells")


WRITER = """
import os, sys
sys.path.insert(0, sys.argv[2])
from tests.torture.stores import make_predictions, cell
from beaufort.store import FileStore
for _ in sys.stdin:
    if not (child := os.fork()):
        store = FileStore(sys.argv[1])
        print(os.getpid(), flush=True)
        for start, stop in store.missing(cell(), 2000):
            for at in range(start - start % 50, stop, 50):
                store.write(cell(), at, make_predictions(at, at + 50))
        os._exit(0)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""
"""Program that writes in a fork of itself, for each line that it reads, so that imports happen once."""


KILLS = int(os.environ.get("BEAUFORT_KILLS", "12"))


@pytest.mark.slow
def test_kill_it_at_any_moment(tmp_path: Path) -> None:
    """After kills at random times, existing files are complete, and finally all exist."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "killed"), str(Path(__file__).parents[2])]
    rng = random.Random(0)
    kills = 0
    store = FileStore(tmp_path / "killed")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin
        assert parent.stdout
        while kills < KILLS:
            print(file=parent.stdin, flush=True)
            writer = int(parent.stdout.readline())
            time.sleep(rng.uniform(0, 0.02))
            with contextlib.suppress(ProcessLookupError):  # it may have ended
                os.kill(writer, signal.SIGKILL)
            assert parent.stdout.readline() == "ended\n"
            kills += 1
            assert not [finding for finding in store.verify() if finding.kind is not Kind.draft]
            if not store.missing(cell(), 2000) and kills < KILLS:
                for piece in rng.sample(store.pieces(), 30):  # so that there is something to do again
                    (tmp_path / "killed" / piece.path).unlink()
        print(file=parent.stdin, flush=True)
        assert int(parent.stdout.readline())
        assert parent.stdout.readline() == "ended\n"
    undisturbed = FileStore(tmp_path / "undisturbed")
    for at in range(0, 2000, 50):
        undisturbed.write(cell(), at, make_predictions(at, at + 50))
    assert store.read(cell()).equals(undisturbed.read(cell()))
    store.collect()
    assert not store.verify()


def test_files_can_be_read_without_us(store: FileStore, tmp_path: Path) -> None:
    if not store.disk.local:
        pytest.skip("on a disk only")
    piece = store.write(cell(), 0, make_predictions(0, 20), {"versions": {"beaufort": "0"}})
    table = pq.read_table(Path(store.location) / piece.path, partitioning=None)
    assert table.column_names == ["id", "label", "top", "p", "p_label", "nll", "brier", "entropy"]


def test_gather(store: FileStore) -> None:
    for start in (0, 50, 80):
        store.write(
            cell(), start, make_predictions(start, start + (50 if start == 0 else 30)), {"run": start}
        )
    before = store.read(cell())
    gathered = store.gather(cell())
    assert gathered is not None
    assert [(piece.start, piece.stop) for piece in store.pieces()] == [(0, 110)]
    assert store.read(cell()).equals(before)
    assert not store.verify()
    assert store.gather(cell()) is None
    store.write(cell(), 200, make_predictions(200, 210))  # a gap before it
    assert store.gather(cell()) is None


def test_the_index_is_only_a_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beaufort.store._index._LEAST_NEW_FOOTERS", 1)
    store = FileStore(tmp_path)
    sql = "select model, images, accuracy from cells order by model"
    store.write(cell(), 0, make_predictions(0, 20))
    first = query(store, sql).to_pylist()
    assert (tmp_path / "index.parquet").is_file()
    assert query(store, sql).to_pylist() == first
    store.write(cell("second"), 0, make_predictions(0, 30))
    assert [row["model"] for row in query(store, sql).to_pylist()] == ["net", "second"]
    (tmp_path / store.pieces()[0].path).unlink()
    assert len(query(store, sql)) == 1
    (tmp_path / "index.parquet").write_bytes(b"nonsense")
    assert len(query(store, sql)) == 1


def test_the_index_spares_most_footers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a few footers are read for comparison when the index is used."""
    monkeypatch.setattr("beaufort.store._index._LEAST_NEW_FOOTERS", 1)
    store = FileStore(tmp_path)
    for number in range(20):
        store.write(cell(f"net {number}"), 0, make_predictions(0, 2))
    sql = "select model, images, accuracy from cells order by model"
    first = query(store, sql).to_pylist()
    opened: list[Piece] = []
    footer = FileStore.footer

    def counted(self: FileStore, piece: Piece) -> Footer:
        opened.append(piece)
        return footer(self, piece)

    monkeypatch.setattr(FileStore, "footer", counted)
    assert query(store, sql).to_pylist() == first
    assert len(opened) == _COMPARED


def test_unread_images_lie_in_files_that_every_arrow_reads(tmp_path: Path) -> None:
    """Columns with nulls are stored as variable-size lists and restored."""
    rng = np.random.default_rng(0)
    ids = [f"i{i}" for i in range(8)]
    logits = rng.normal(0, 1, (8, 7)).astype(np.float16)  # a file keeps no more digits
    whole = predictions(ids, rng.integers(0, 7, 8), logits, keep_logits=True)
    lost = without_prediction(["x", "y"], [1, 2], whole.schema)
    mixed = pa.concat_tables([whole, lost]).take([0, 8, 1, 2, 9, 3, 4, 5, 6, 7])
    store, cell = FileStore(tmp_path), Cell({"name": "m"}, {"name": "d"}, {"corruption": None})
    piece = store.write(cell, 0, mixed)
    more = whole.set_column(0, "id", pa.array([f"j{i}" for i in range(8)]))
    store.write(cell, 10, more)
    on_disk = pq.read_schema(tmp_path / piece.path)
    assert pa.types.is_list(on_disk.field("top").type)
    read = store.read(cell)
    assert pa.types.is_fixed_size_list(read["top"].type)
    for column in ("top", "p", "logits"):
        assert read[column].to_pylist() == mixed[column].to_pylist() + whole[column].to_pylist()
    assert store.gather(cell) is not None
    assert store.read(cell)["top"].null_count == 2
    assert not store.verify()


def test_logits_are_short_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """float16 in a file, float32 in memory; files from before, and logits too large for that, are float32."""
    rng = np.random.default_rng(0)
    store, cell = FileStore(tmp_path), Cell({"name": "m"}, {"name": "d"}, {"corruption": None})

    def piece(start: int, scale: float) -> tuple[pa.Table, pa.DataType]:
        logits = (scale * rng.normal(0, 1, (4, 3))).astype(np.float32)
        logits[0, 0] = -np.inf
        ids = [str(start + i) for i in range(4)]
        table = predictions(ids, [0, 1, 2, 0], logits, keep_logits=True)
        written = store.write(cell, start, table)
        return table, pq.read_schema(tmp_path / written.path).field("logits").type.value_type

    short, kind = piece(0, 1)
    assert kind == pa.float16()
    large, kind = piece(4, 1e6)
    assert kind == pa.float32()
    monkeypatch.setattr("beaufort.store.columns._as_float16", lambda column: column)
    before, kind = piece(8, 1)
    assert kind == pa.float32()
    monkeypatch.undo()
    read = store.read(cell)["logits"]
    assert read.type.value_type == pa.float32()
    output = pa.concat_tables([short, large, before])["logits"].to_pylist()
    assert np.allclose(np.array(read.to_pylist()), np.array(output), rtol=1e-3, atol=1e-3)
    assert read.to_pylist()[4:] == output[4:]
    assert not store.verify()
    assert store.gather(cell) is not None
    assert np.allclose(
        np.array(store.read(cell)["logits"].to_pylist()), np.array(output), rtol=1e-3, atol=1e-3
    )
