"""Runs during failures of their store."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort.cli._app import app
from beaufort.data import Dataset, from_arrays
from beaufort.evaluation import Progress, RunOptions
from beaufort.models import Model, as_model
from beaufort.results import evaluate
from beaufort.store import FileStore, StoreError, query
from beaufort.suites import Suite
from tests.commands import invoke, shows
from tests.torture.flips import flipped

Fill = Callable[..., FileStore]
SUITE = Suite(
    name="small", version=1, dataset="toys", scale="cifar", corruptions=("fog", "contrast"), severities=(1, 4)
)


def dataset() -> Dataset:
    images = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3)).astype(np.uint8)
    return from_arrays("toys", images, np.arange(40) % 3)


def toy(calls: list[int] | None = None) -> Model:
    def predict(images: np.ndarray) -> np.ndarray:
        if calls is not None:
            calls.append(len(images))
        return np.asarray(images.mean(axis=(1, 2)), np.float32)

    return as_model(predict, name="toy", classes=3, version="1")


def read_only(path: object, content: bytes) -> None:
    raise OSError(30, "Read-only file system")


def test_a_complete_store_on_a_read_only_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate([toy()], SUITE, dataset(), tmp_path)
    store = FileStore(tmp_path)
    cell = next(iter(store.cells().values()))
    store.write(cell, 0, store.read(cell).drop_columns(["place"]).slice(0, 10))  # could be put together
    monkeypatch.setattr("beaufort.store._local.write_bytes", read_only)
    monkeypatch.setattr(Path, "unlink", lambda path: read_only(path, b""))
    again = evaluate([toy()], SUITE, dataset(), store)
    assert [(r.correct, r.images, r.reused) for r in again.results] == [
        (r.correct, r.images, True) for r in first.results
    ]
    assert any("read-only" in note for note in again.notes)
    more = dataclasses.replace(SUITE, corruptions=("snow",))
    with pytest.raises(StoreError, match="Read-only"):
        evaluate([toy()], more, dataset(), store)


def _delete_under_way(store: Path, what: str) -> None:
    """Delete a folder that another thread writes to, once it holds something."""
    while not list(store.rglob("*.parquet")):
        time.sleep(0.01)
    while (store / what).exists():
        with contextlib.suppress(OSError):  # a file came while it was being emptied
            shutil.rmtree(store / what)
            return


@pytest.mark.parametrize("after", [1, 2, 4])
@pytest.mark.parametrize("what", ["", "predictions"])
def test_a_store_that_is_deleted_while_a_run_fills_it(tmp_path: Path, after: int, what: str) -> None:
    seen = 0

    def delete(_: Progress) -> None:
        nonlocal seen
        seen += 1
        if seen == after + 1:
            _delete_under_way(tmp_path / "store", what)

    with pytest.raises(StoreError, match=r"removed|(no|lacks) predictions|cannot write"):
        evaluate(
            [toy()], SUITE, dataset(), tmp_path / "store", options=RunOptions(batch_size=40), progress=delete
        )


@pytest.mark.usefixtures("no_model_checks")
@pytest.mark.parametrize("from_end", [300, 3000])
def test_damaged_predictions_are_recomputed(tmp_path: Path, from_end: int) -> None:
    first = evaluate([toy()], SUITE, dataset(), tmp_path)
    store = FileStore(tmp_path)
    path = tmp_path / store.pieces()[1].path
    flipped(path, 8 * (path.stat().st_size - from_end))
    assert len(store.verify()) == 1
    calls: list[int] = []
    again = evaluate([toy(calls)], SUITE, dataset(), tmp_path)
    assert sum(calls) == 40
    assert [r.correct for r in again.results] == [r.correct for r in first.results]
    assert not store.verify()


def test_runs_with_different_limits_meet(tmp_path: Path) -> None:
    evaluate([toy()], SUITE, dataset(), tmp_path / "few", options=RunOptions(first=15))
    whole = evaluate([toy()], SUITE, dataset(), tmp_path / "all")
    shutil.copytree(tmp_path / "few", tmp_path / "all", dirs_exist_ok=True)
    store = FileStore(tmp_path / "all")
    sql = "select condition, images, accuracy from cells order by condition"
    right = {r.condition: (40, r.accuracy) for r in whole.results}
    assert {
        row["condition"]: (row["images"], row["accuracy"]) for row in query(store, sql).to_pylist()
    } == right
    assert len(store.verify()) == 5
    calls: list[int] = []
    evaluate([toy(calls)], SUITE, dataset(), tmp_path / "all")
    assert not calls
    assert not store.verify()  # healed
    assert len(store.pieces()) == 5


def test_damage_is_never_worse_and_never_left_out(fill: Fill, tmp_path: Path) -> None:
    """`gate`, `compare` and every format of `report` name the file, with exit code 2."""
    new, old = fill("new", {"net": 0.9, "other": 0.8}, images=30), fill("old", {"net": 0.9}, images=30)
    path = Path(new.location) / new.pieces()[3].path
    for place in (200, path.stat().st_size - 300):
        before = flipped(path, 8 * place)
        commands = [
            ["gate", f"{new.location}::net", "--reference", old.location],
            ["compare", "net", "other", "--store", new.location],
            *(["report", new.location, "--format", kind] for kind in ("md", "csv", "json", "latex")),
        ]
        for command in commands:
            assert path.name in invoke(*command, code=2)
        path.write_bytes(before)


def test_models_that_are_left_out_are_named(fill: Fill) -> None:
    store = fill("s", {"whole": 0.9, "part": 0.8}, images=30, skip=2)
    for kind in ("md", "csv", "json", "latex", "card"):
        assert shows(invoke("report", store.location, "--format", kind), "part is omitted", "2 conditions")
    result = CliRunner().invoke(app, ["report", store.location, "--format", "md"])
    assert "part lacks 2 conditions" in result.stdout
    result = CliRunner().invoke(app, ["report", store.location, "--format", "json"])
    assert json.loads(result.stdout)["configs"]["mnist-c"]["left_out"] == {"part": 2}
