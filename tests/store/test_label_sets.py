"""Label sets in stored files: today's column, and the one of files of format 2, `truth`.

`label_sets_of_format_2` was written by `python tests/store/test_label_sets.py FOLDER` before the column was
renamed, and is never made anew.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np

from beaufort.data import from_arrays
from beaufort.data.labels import LabelSets
from beaufort.evaluation import RunOptions
from beaufort.models import as_model
from beaufort.results import Run, evaluate
from beaufort.store import FileStore
from beaufort.store.sql import query
from beaufort.suites.conditions import Condition

FROZEN = Path(__file__).parent / "label_sets_of_format_2"
SETS = ((0, 5), (3, 2), (3,), ())


def run(store: Path, first: int | None = None) -> Run:
    """Evaluate four images by their label sets; the predicted class depends on the brightness."""
    images = np.zeros((4, 8, 8, 3), np.uint8) + np.array([0, 60, 120, 0], np.uint8)[:, None, None, None]
    model = as_model(
        lambda batch: -abs(np.arange(6) * 30.0 - batch.mean(axis=(1, 2, 3))[:, None]).astype(np.float32) / 30,
        name="brightness",
        version="1",
    )
    data = from_arrays("frozen-sets", images, np.zeros(4, np.int64))
    options = RunOptions(label_sets=LabelSets("several", SETS), first=first)
    return evaluate([model], [Condition("frozen-sets")], data, store, options=options)


def test_sets_are_a_column_padded_with_minus_one(tmp_path: Path) -> None:
    run(tmp_path / "store")
    rows = query(FileStore(tmp_path / "store"), "select label_set from predictions order by id")
    assert rows["label_set"].to_pylist() == [[0, 5], [3, 2], [3, -1], [-1, -1]]


def test_files_of_format_2_have_the_same_columns(tmp_path: Path) -> None:
    shutil.copytree(FROZEN, tmp_path / "store")
    store = FileStore(tmp_path / "store")
    assert not store.verify()
    (cell,) = store.cells().values()
    table = store.read(cell)
    assert table["label_set"].to_pylist() == [[0, 5], [3, 2], [3, -1], [-1, -1]]
    assert store.read(cell, columns=["id", "label_set"]).column_names == ["place", "id", "label_set"]
    done = run(tmp_path / "store").results[0]
    assert (done.images, done.correct, done.unlabeled) == (3, 2, 1)
    assert len(store.pieces()) == 1, "predictions of format 2 were computed again"


def test_queries_of_both_formats_are_equal(tmp_path: Path) -> None:
    """Queries return the same rows for files of both formats."""
    shutil.copytree(FROZEN, tmp_path / "store")
    store = FileStore(tmp_path / "store")
    other = FileStore(tmp_path / "other")
    run(tmp_path / "other")
    rows = "select id, label_set, top from predictions order by id"
    assert query(store, rows).equals(query(other, rows))


if __name__ == "__main__":
    run(Path(sys.argv[1]))
