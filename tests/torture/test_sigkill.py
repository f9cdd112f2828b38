"""A small, fixed part of `make torture`, and tests that its checks detect losses."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from beaufort.store import FileStore
from tests.torture.commands import COMMANDS
from tests.torture.gates import gate_beside_damage
from tests.torture.parts import PARTS
from tests.torture.sigkill import Bench
from tests.torture.stores import cell, make_predictions
from tests.torture.table import Row, as_markdown

STRIDES = {"run": 30, "corrupt": 18, "results merge": 11, "query": 2}
"""Of the steps; `tests/store/test_overlap.py` has every one of merging and keeping house."""


@pytest.mark.slow
@pytest.mark.parametrize("name", STRIDES)
def test_killed_and_resumed(tmp_path: Path, name: str) -> None:
    row = Row(name)
    with Bench(name, tmp_path) as bench:
        bench.every_step(row, stride=STRIDES[name], first=2)
        assert row.count >= 2
        bench.at_random(row, 1, seed=20261115)
    assert not row.findings, row.findings


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    with Bench("results merge", tmp_path_factory.mktemp("bench")) as bench:
        return bench


def pieces(bench: Bench) -> list[Path]:
    store = FileStore(bench.work / "ours")
    return [bench.work / "ours" / piece.path for piece in store.pieces()]


def judged(bench: Bench) -> Row:
    row = Row("judged")
    bench._whole(row, "then")
    return row


def test_a_lost_file_would_be_found(bench: Bench) -> None:
    bench._begin()
    assert not judged(bench).findings
    pieces(bench)[0].unlink()
    assert judged(bench).losses == 1


def test_half_a_file_would_be_found(bench: Bench) -> None:
    bench._begin()
    path = pieces(bench)[0]
    path.write_bytes(path.read_bytes()[:-100])
    assert judged(bench).uncaughts == 1


def test_wrong_rows_would_be_found(bench: Bench) -> None:
    bench._begin()
    FileStore(bench.work / "ours").write(cell("other"), 0, make_predictions(0, 10, seed=1))
    assert judged(bench).losses == 1


def test_doubles_would_be_found(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench._begin()
    FileStore(bench.work / "ours").write(cell(), 10, make_predictions(10, 30))
    assert not judged(bench).findings
    monkeypatch.setattr("beaufort.store._index.cover", lambda pieces: [_whole(piece) for piece in pieces])
    assert judged(bench).doubles == 1


def _whole(piece: object) -> object:
    from beaufort.store.pieces import Slice

    return Slice(piece, piece.start)  # type: ignore[attr-defined,arg-type]


@pytest.mark.slow
def test_gates_beside_damage(tmp_path: Path) -> None:
    row = Row("gate")
    gate_beside_damage(row, tmp_path, 12, seed=20261115)
    assert (row.count, row.findings) == (12, [])


def test_a_gate_that_takes_damage_for_worse_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Row("gate")
    monkeypatch.setattr("tests.torture.gates._gate", lambda folder: (int(folder.name == "work"), "", None))
    gate_beside_damage(row, tmp_path, 3, seed=0)
    assert (row.count, row.losses) == (1, 1)  # and it ends there


def test_every_command_that_writes_has_its_part() -> None:
    assert {"run", "corrupt", "make", "results merge", "results verify --repair", "report", "query"} <= set(
        COMMANDS
    )
    assert sum(minutes for _, minutes in PARTS.values()) <= 20


def test_a_part_ends_when_its_time_is_over() -> None:
    row = Row("late", until=time.monotonic() - 1)
    assert not row.has_time()
    assert "| late (out of time) |" in as_markdown([row.end()])
