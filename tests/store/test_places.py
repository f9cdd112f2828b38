"""Unusual locations of a store: a file, a broken link, itself, memory, a full disk, a wrong clock."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beaufort.store import FileStore, StoreError, query
from tests.torture.stores import cell, make_predictions


def filled(location: str | Path, *ranges: tuple[int, int]) -> FileStore:
    store = FileStore(location)
    for start, stop in ranges:
        store.write(cell(), start, make_predictions(start, stop))
    return store


USES: dict[str, Callable[[FileStore, FileStore], Any]] = {
    "look": lambda store, _: store.check_exists(),
    "ask": lambda store, _: query(store, "select * from cells"),
    "write": lambda store, _: store.write(cell(), 0, make_predictions(0, 5)),
    "merge into": lambda store, other: store.merge(other),
    "merge from": lambda store, other: other.merge(store),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("what", ["file", "link", "predictions file", "predictions link"])
def test_store_must_be_a_directory(tmp_path: Path, use: str, what: str) -> None:
    """It never passes for an empty store: where a disk is not mounted, links lead nowhere."""
    root = tmp_path / "store"
    if what.startswith("predictions"):
        (root / "runs").mkdir(parents=True)
    path = root / "predictions" if what.startswith("predictions") else root
    if what.endswith("file"):
        path.write_text("a file")
    else:
        path.symlink_to(tmp_path / "nowhere")
    other = filled(tmp_path / "other", (0, 5))
    with pytest.raises(StoreError) as caught:
        USES[use](FileStore(root), other)
    assert str(root) in str(caught.value)
    assert ".part" not in str(caught.value)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("place", ["disk", "link", "memory"])
def test_merging_a_store_into_itself(tmp_path: Path, place: str) -> None:
    location = f"memory://{tmp_path.name}-itself" if place == "memory" else str(tmp_path / "store")
    store = filled(location, (0, 20), (20, 40), (30, 50))
    (tmp_path / "link").symlink_to(tmp_path / "store")
    merged = store.merge(FileStore(tmp_path / "link" if place == "link" else location))
    assert (merged.copied, merged.left) == ([], [])
    assert store.read(cell())["place"].to_pylist() == list(range(50))
    assert not store.verify()


def test_house_is_kept_in_memory_too(tmp_path: Path) -> None:
    store = filled(f"memory://{tmp_path.name}-gc", (0, 40), (0, 20), (30, 60), (5, 15))
    damaged = next(piece for piece in store.pieces() if piece.start == 5)
    store.disk.write(damaged.path, b"nothing")
    assert len(store.collect()) == 3
    assert len(store.disk.files("quarantine")) == 2  # the damaged one, and the one that is there twice
    assert store.read(cell())["place"].to_pylist() == list(range(60))
    assert not store.verify()
    store.collect(delete=True)
    assert not store.disk.files("quarantine")


def test_full_disk_keeps_existing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that cannot be gathered or merged are unchanged; no partial file is left."""
    store, other = filled(tmp_path / "ours", (0, 20), (10, 40)), filled(tmp_path / "theirs", (0, 60))
    before = sorted(store.pieces())

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for change in (lambda: store.gather(cell()), lambda: store.merge(other), store.collect):
        with pytest.raises(StoreError, match="No space left"):
            change()
    monkeypatch.undo()
    assert sorted(store.pieces()) == before
    assert not list(tmp_path.rglob("*.part"))
    assert store.read(cell())["place"].to_pylist() == list(range(40))


def test_drafts_from_the_future(tmp_path: Path) -> None:
    """A clock that was set back does not tell whether a remote machine still writes."""
    store = filled(tmp_path, (0, 20))
    folder = (tmp_path / store.pieces()[0].path).parent
    draft = folder / f".beaufort-{'f' * 8}-1-{'0' * 8}-0.part"
    draft.write_bytes(b"half")
    for path in (draft, folder, tmp_path / store.pieces()[0].path):
        os.utime(path, (time.time() + 10**6,) * 2)
    assert store.collect(delete=True) == []
    assert draft.exists()
    assert len(store.pieces()) == 1
    assert query(store, "select images from cells").to_pylist() == [{"images": 20}]
