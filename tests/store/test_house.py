"""Maintenance during a run loses nothing, and moved files are found again."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beaufort._core import files
from beaufort.store import FileStore, Kind, StoreError, query
from beaufort.store._format import DamagedError, read_notes
from tests.torture.crowd import crowd
from tests.torture.stores import cell, make_predictions


@pytest.mark.slow
def test_a_crowd(tmp_path: Path) -> None:
    """Four that write and gather, two that read, one that keeps house; `make torture` has more."""
    found = crowd(tmp_path / "store", seconds=2)
    assert not found.wrong, found.wrong
    assert min(found.written, found.gathered, found.read, found.collected) > 0
    store = FileStore(tmp_path / "store")
    store.collect()
    assert not store.verify()


def draft(root: Path, name: str) -> Path:
    folder = root / "predictions" / cell().folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"half")
    return folder / name


def test_drafts_of_the_living_stay(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.write(cell(), 0, make_predictions(0, 20))
    ours = draft(tmp_path, f".beaufort-{files._HOST}-{os.getpid()}-{files._TOKEN}-999.part")
    parents = draft(tmp_path, f".beaufort-{files._HOST}-{os.getppid()}-{'0' * 8}-0.part")
    elsewhere = draft(tmp_path, f".beaufort-{'f' * 8}-1-{'0' * 8}-0.part")
    first = draft(tmp_path, ".draft-1-00000000")
    assert store.verify() == []
    assert store.collect(delete=True) == []
    for path in (elsewhere, first):
        os.utime(path, (0, 0))
    assert [finding.kind for finding in store.collect()] == [Kind.draft] * 2
    assert ours.exists()
    assert parents.exists()
    assert not elsewhere.exists()
    assert not first.exists()


def test_the_next_writer_of_a_cell_removes_partial_files_of_dead_processes(tmp_path: Path) -> None:
    dead = draft(tmp_path, f".beaufort-{files._HOST}-{2**22 - 1}-{'0' * 8}-0.part")
    living = draft(tmp_path, f".beaufort-{files._HOST}-{os.getppid()}-{'0' * 8}-0.part")
    store = FileStore(tmp_path)
    store.write(cell(), 0, make_predictions(0, 20))
    assert not dead.exists()
    assert living.exists()
    assert store.verify() == []


def test_columns_that_verify_would_call_damaged_are_not_written(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    table = make_predictions(0, 20)
    with pytest.raises(StoreError, match="extra"):
        store.write(cell(), 0, table.append_column("extra", table["nll"]))
    assert store.pieces() == []


def test_a_format_number_of_many_digits_is_damage() -> None:
    footer = b"beaufort.format\0\0\0" + b"9" * 5000 + b"beaufort.seal\0\0\0" + b"0" * 32
    with pytest.raises(DamagedError):
        read_notes(footer + len(footer).to_bytes(4, "little") + b"PAR1")


def test_gc_sets_aside_before_it_deletes(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    piece = store.write(cell(), 0, make_predictions(0, 20))
    (tmp_path / piece.path).write_bytes(b"nothing")
    store.collect(dry_run=True)
    assert (tmp_path / piece.path).exists()
    for turn in range(3):
        (tmp_path / piece.path).write_bytes(b"nothing %d" % turn)
        store.collect()
        assert not (tmp_path / piece.path).exists()
    aside = sorted(path for path in (tmp_path / "quarantine").rglob("*") if path.is_file())
    assert [path.read_bytes() for path in aside] == [b"nothing 0", b"nothing 1", b"nothing 2"]
    store.collect(delete=True)
    assert not [path for path in (tmp_path / "quarantine").rglob("*") if path.is_file()]


def test_a_file_that_was_made_anew_while_gc_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)
    piece = store.write(cell(), 0, make_predictions(0, 20))
    (tmp_path / piece.path).write_bytes(b"nothing")
    verify = FileStore.verify

    def slow(self: FileStore) -> list[object]:
        findings = verify(self)
        self.write(cell(), 0, make_predictions(0, 20))
        return list(findings)

    monkeypatch.setattr("beaufort.store._maintenance.verify", slow)
    store.collect(delete=True)
    monkeypatch.undo()
    assert store.read(cell()).num_rows == 20


def gathers(store: FileStore, wanted: int) -> tuple[Callable[..., object], list[int]]:
    """A reader whose files are gathered before each of its first reads."""
    left, read = [wanted], store.disk.read

    def call(path: str) -> bytes:
        if left[0] > 0 and path.startswith("predictions"):
            left[0] -= 1
            at = max(piece.stop for piece in FileStore(store.location).pieces())
            FileStore(store.location).write(cell(), at, make_predictions(at, at + 10))
            FileStore(store.location).gather(cell())
        return read(path)

    return call, left


@pytest.mark.parametrize("times", [1, 10, 30])
def test_readers_beside_gathers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """A listed file that disappears before it is opened is neither rejected nor reported as damaged."""
    monkeypatch.setattr("beaufort.store.files._LONGEST_PAUSE_S", 0.001)
    monkeypatch.setattr("beaufort.store.sql.time.sleep", lambda _: None)
    for request in (lambda s: s.read(cell()), lambda s: query(s, "select count(*) from predictions")):
        store = FileStore(tmp_path / str(len(list(tmp_path.iterdir()))))
        store.write(cell(), 0, make_predictions(0, 10))
        call, left = gathers(store, times)
        monkeypatch.setattr(store.disk, "read", call)
        assert request(store).num_rows > 0
        assert left == [0]


def test_verify_beside_gathers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)
    for start in range(0, 50, 10):
        store.write(cell(), start, make_predictions(start, start + 10))
    call, _ = gathers(store, 1)
    monkeypatch.setattr(store.disk, "read", call)
    assert store.verify() == []


class Restless:
    """Entries of a folder that is being changed: each reading misses some files, as on Linux's tmpfs."""

    def __init__(self, entries: list[os.DirEntry[str]], rng: random.Random) -> None:
        self.entries, self.rng = entries, rng

    def __enter__(self) -> Iterator[os.DirEntry[str]]:
        return (one for one in self.entries if one.is_dir() or self.rng.random() > 0.1)

    def __exit__(self, *_: object) -> None:
        return


def test_a_listing_beside_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is in every listing, though every reading of the folder misses some."""
    store, rng = FileStore(tmp_path), random.Random(0)
    folder = tmp_path / "predictions" / cell().folder
    folder.mkdir(parents=True)
    for start in range(200):
        (folder / f"{cell().fingerprint}-{start}-{start + 1}.parquet").write_bytes(b"x")
    scandir = os.scandir

    def restless(path: str) -> Restless:
        os.utime(path)
        with scandir(path) as entries:
            return Restless(list(entries), rng)

    monkeypatch.setattr(os, "scandir", restless)
    assert [len(store.pieces()) for _ in range(20)] == [200] * 20


def test_a_store_that_is_removed_while_it_is_filled(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    store.write(cell(), 0, make_predictions(0, 20))
    (tmp_path / "store").rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="was removed"):
        store.write(cell(), 20, make_predictions(20, 40))
    assert not (tmp_path / "store").exists()


def test_links_that_lead_in_circles(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.write(cell(), 0, make_predictions(0, 20))
    (tmp_path / "predictions" / "loop").symlink_to(tmp_path / "predictions")
    (tmp_path / "predictions" / "self").symlink_to(tmp_path / "predictions" / "self")
    (tmp_path / "predictions" / "nowhere").symlink_to(tmp_path / "nothing")
    assert query(store, "select images from cells").to_pylist() == [{"images": 20}]
    assert store.read(cell()).num_rows == 20


def test_a_mistyped_store_is_reported(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"")
    store = FileStore(tmp_path / "store")
    store.write(cell(), 0, make_predictions(0, 20))
    for name in ("photos", "nothing"):
        other = FileStore(tmp_path / name)
        for call in (lambda o=other: query(o, "select 1"), lambda o=other: store.merge(o)):
            with pytest.raises(StoreError, match=f"{name}"):
                call()
    with pytest.raises(StoreError, match="photos is not a store"):
        FileStore(tmp_path / "photos").merge(store)
    assert len(FileStore(tmp_path / "new").merge(store).copied) == 1
