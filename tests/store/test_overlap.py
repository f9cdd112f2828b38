"""No row is counted twice, however files overlap; overlaps are detected and repaired."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaufort.store import FileStore, Kind, query
from tests.torture.kills import kill_everywhere
from tests.torture.stores import cell, make_predictions, rows_in_python, rows_in_sql, write_old

Ranges = list[tuple[int, int]]

SOME_RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 14)), min_size=1, max_size=5)


def fill(store: FileStore, ranges: Ranges, model: str = "net") -> set[int]:
    covered: set[int] = set()
    for start, length in ranges:
        store.write(cell(model), start, make_predictions(start, start + length))
        covered |= set(range(start, start + length))
    return covered


def counted(store: FileStore) -> tuple[list[int], int, int, int]:
    """The images of the only cell in Python, and how many SQL sees in each view."""
    (found,) = rows_in_python(store).values()
    output = rows_in_sql(store)
    assert len({row["id"] for row in output["rows"]}) == len(output["rows"])
    return [row[0] for row in found], output["cells"][0]["images"], output["pieces"], len(output["rows"])


def once(store: FileStore, covered: set[int]) -> None:
    """Every row is there once, with the right values, in every way to look at it."""
    assert counted(store) == (sorted(covered), len(covered), len(covered), len(covered))
    wanted = make_predictions(0, max(covered) + 1).take(sorted(covered))
    assert store.read(cell()).drop_columns(["place"]).equals(wanted)
    accuracy = query(store, "select avg((top[1] = label)::int) as a from predictions").to_pylist()[0]["a"]
    assert query(store, "select accuracy as a from cells").to_pylist()[0]["a"] == pytest.approx(accuracy)


@pytest.mark.slow
@settings(max_examples=10)
@given(SOME_RANGES)
def test_any_overlap(ranges: Ranges) -> None:
    store = FileStore(f"memory://{uuid.uuid4()}")
    covered = fill(store, ranges)
    once(store, covered)
    kinds = {finding.kind for finding in store.verify()}
    assert kinds <= {Kind.twice, Kind.overlap}
    assert bool(kinds) == (sum(piece.stop - piece.start for piece in store.pieces()) > len(covered))
    store.gather(cell())
    once(store, covered)
    assert not store.verify()
    assert sum(piece.stop - piece.start for piece in store.pieces()) == len(covered)


@settings(max_examples=6)
@given(SOME_RANGES, SOME_RANGES)
def test_merging_any_two_stores(ours: Ranges, theirs: Ranges) -> None:
    one, other = FileStore(f"memory://{uuid.uuid4()}"), FileStore(f"memory://{uuid.uuid4()}")
    covered = fill(one, ours) | fill(other, theirs)
    one.merge(other)
    once(one, covered)
    assert not one.verify()
    assert one.merge(other).copied == []


def test_runs_with_different_limits(tmp_path: Path) -> None:
    """The rows of the first run, then all of them in one piece, as a second process writes them."""
    store = FileStore(tmp_path)
    fill(store, [(0, 25), (0, 40), (40, 20)])
    once(store, set(range(60)))
    assert [finding.kind for finding in store.verify()] == [Kind.twice]
    store.gather(cell())
    assert [(piece.start, piece.stop) for piece in store.pieces()] == [(0, 60)]


def test_merging_a_small_run_into_a_large_one(tmp_path: Path) -> None:
    large, small = FileStore(tmp_path / "large"), FileStore(tmp_path / "small")
    fill(large, [(0, 40), (40, 40)])
    fill(small, [(0, 20)])
    assert large.merge(small).copied == []
    once(large, set(range(80)))
    assert len(small.merge(large).copied) == 1
    once(small, set(range(80)))
    assert not small.verify()


def test_copying_one_store_over_another(tmp_path: Path) -> None:
    large, small = FileStore(tmp_path / "large"), FileStore(tmp_path / "small")
    fill(large, [(0, 40), (40, 40)])
    fill(small, [(0, 20), (30, 20)])
    shutil.copytree(tmp_path / "small", tmp_path / "large", dirs_exist_ok=True)
    once(large, set(range(80)))
    assert {finding.kind for finding in large.verify()} == {Kind.twice, Kind.overlap}


def test_one_model_under_two_names(tmp_path: Path) -> None:
    """The same fingerprint in two folders is one cell, with one name everywhere."""
    store = FileStore(tmp_path)
    fill(store, [(0, 30)], "net")
    renamed = cell("net", digest="of net")
    object.__setattr__(renamed, "model", {**renamed.model, "name": "other"})
    assert renamed == cell()
    store.write(renamed, 0, make_predictions(0, 30))
    store.write(renamed, 20, make_predictions(20, 50))
    assert {Path(piece.path).parts[1] for piece in store.pieces()} == {"model=net", "model=other"}
    once(store, set(range(50)))
    names = query(store, "select distinct model from predictions").to_pylist()
    assert names == query(store, "select model from cells").to_pylist()
    store.gather(renamed)
    once(store, set(range(50)))
    assert [Path(piece.path).parts[1] for piece in store.pieces()] == ["model=other"]


def test_the_first_format_overlaps_too(tmp_path: Path) -> None:
    write_old(tmp_path, cell(), 0, make_predictions(0, 25))
    store = FileStore(tmp_path)
    fill(store, [(10, 30)])
    once(store, set(range(40)))


def test_rows_with_and_without_logits(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.write(cell(), 0, make_predictions(0, 30, keep_logits=True))
    store.write(cell(), 20, make_predictions(20, 50))
    store.write(cell(), 50, make_predictions(50, 60))
    assert store.read(cell())["place"].to_pylist() == list(range(60))
    assert query(store, "select images from cells").to_pylist() == [{"images": 60}]
    store.gather(cell())
    assert [(piece.start, piece.stop) for piece in store.pieces()] == [(0, 30), (30, 60)]
    assert store.read(cell())["place"].to_pylist() == list(range(60))


def test_gather_keeps_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)
    fill(store, [(0, 20), (20, 20)])
    monkeypatch.setattr(store.disk, "_read", lambda full: (_ for _ in ()).throw(TimeoutError("slow")))
    assert store.gather(cell()) is None
    assert len(store.pieces()) == 2


def test_gathers_beside_each_other_leave_nothing_twice(tmp_path: Path) -> None:
    """Another process may remove a listed file before it is read."""
    store = FileStore(tmp_path)
    covered = fill(store, [(0, 40), (10, 10)])
    listing = store.listing()
    fill(store, [(20, 10)])
    (tmp_path / listing[cell().fingerprint][1].path).unlink()
    store.gather(cell(), listing)
    once(store, covered)
    assert not store.verify()


# A kill at every step


def whole(count: int) -> Callable[[FileStore], str]:
    def check(store: FileStore) -> str:
        if store.missing(cell(), count):
            return "rows are missing"
        places, *in_sql = counted(store)
        return "" if in_sql == [len(places)] * 3 else f"{in_sql} rows in SQL, {len(places)} in Python"

    return check


def test_a_kill_while_pieces_are_put_together(tmp_path: Path) -> None:
    fill(FileStore(tmp_path / "before"), [(0, 20), (20, 20), (30, 20), (10, 5)])
    kills = kill_everywhere(
        tmp_path / "before", tmp_path / "work", lambda root: FileStore(root).gather(cell()), whole(50)
    )
    assert kills.steps >= 7, kills  # three of writing, four of deleting
    assert not kills.wrong, kills.wrong


def test_a_kill_while_a_piece_is_written(tmp_path: Path) -> None:
    fill(FileStore(tmp_path / "before"), [(0, 20)])

    def write(root: Path) -> None:
        FileStore(root).write(cell(), 0, make_predictions(0, 40))
        FileStore(root).write_run({"suite": {}}, {"time": "2026"})
        FileStore(root).gather(cell())

    kills = kill_everywhere(tmp_path / "before", tmp_path / "work", write, whole(20))
    assert kills.steps >= 6, kills
    assert not kills.wrong, kills.wrong


def test_a_kill_while_stores_are_merged(tmp_path: Path) -> None:
    fill(FileStore(tmp_path / "before"), [(0, 20), (20, 10)])
    other = FileStore(tmp_path / "other")
    fill(other, [(10, 20), (25, 15)])
    other.write_run({"suite": {}}, {"time": "2026"})
    kills = kill_everywhere(
        tmp_path / "before", tmp_path / "work", lambda root: FileStore(root).merge(other), whole(30)
    )
    assert kills.steps >= 8, kills
    assert not kills.wrong, kills.wrong


@pytest.mark.slow
def test_a_kill_while_house_is_kept(tmp_path: Path) -> None:
    before = FileStore(tmp_path / "before")
    fill(before, [(0, 40), (0, 20), (30, 30)])
    damaged = before.write(cell(), 10, make_predictions(10, 20))
    (tmp_path / "before" / damaged.path).write_bytes(b"nothing")
    kills = kill_everywhere(tmp_path / "before", tmp_path / "work", _tidy, whole(60))
    assert kills.steps >= 8, kills
    assert not kills.wrong, kills.wrong


def _tidy(root: Path) -> None:
    FileStore(root).collect(delete=True)
