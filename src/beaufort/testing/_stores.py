"""The contract of stores: one function per requirement."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from beaufort.evaluation import predictions
from beaufort.store import Cell, Store, StoreError, without_prediction
from beaufort.testing._contracts import ContractError

_CLASSES = 7


def _cell(name: str = "net", digest: str = "of the net", severity: int = 3) -> Cell:
    return Cell(
        {"name": name, "digest": digest},
        {"name": "digits", "digest": "of the data"},
        {"corruption": "fog", "severity": severity},
    )


def _predictions(start: int, stop: int) -> pa.Table:
    """Return rows that depend only on their places."""
    places = np.arange(start, stop)
    logits = np.sin(np.outer(places + 1, np.arange(1, _CLASSES + 1)) * 1.7).astype(np.float32)
    return predictions([f"test/{place}" for place in places], places % _CLASSES, logits)


def _expect(met: bool, requirement: str) -> None:
    if not met:
        raise ContractError(f"the store violates the contract: {requirement}")


def _same(found: pa.Table, wanted: pa.Table) -> bool:
    return found.drop_columns(["place"]).to_pylist() == wanted.to_pylist()


def begins_empty(store: Store) -> None:
    """A new store has no parts and no runs, every image is missing, and there is nothing to read."""
    _expect(store.listing() == {}, "the listing of a new store must be empty")
    _expect(store.runs() == [], "a new store must have no runs")
    _expect(store.missing(_cell(), 10) == [(0, 10)], "every image of a new cell must be missing")
    try:
        store.read(_cell())
    except StoreError:
        return
    _expect(False, "reading a missing cell must raise a StoreError")


def gives_back_what_was_written(store: Store) -> None:
    """All columns of all rows are read in the order of the dataset, with their places."""
    store.write(_cell(), 20, _predictions(20, 50), {"host": "here"})
    store.write(_cell(), 0, _predictions(0, 20))
    found = store.read(_cell())
    _expect(_same(found, _predictions(0, 50)), "rows must be read as they were written, in order")
    _expect(
        found["place"].to_pylist() == list(range(50)),
        "`place` must be the position of the row in the dataset",
    )
    narrow = store.read(_cell(), columns=("id", "top"))
    _expect(set(narrow.column_names) == {"place", "id", "top"}, "only the requested columns must be read")


def knows_what_is_missing(store: Store) -> None:
    """Gaps before, between and after the parts are missing, up to the requested number of images."""
    store.write(_cell(), 10, _predictions(10, 20))
    store.write(_cell(), 30, _predictions(30, 40))
    for count, gaps in ((5, [(0, 5)]), (15, [(0, 10)]), (50, [(0, 10), (20, 30), (40, 50)])):
        _expect(store.missing(_cell(), count) == gaps, f"{gaps} must be missing of {count} images")
        _expect(
            store.missing(_cell(), count, store.listing()) == gaps,
            "the result must be the same with a listing",
        )


def counts_no_image_twice(store: Store) -> None:
    """Rows of repeated and overlapping parts are read once."""
    for start, stop in ((0, 20), (0, 20), (10, 30), (5, 15), (0, 30)):
        store.write(_cell(), start, _predictions(start, stop))
    _expect(_same(store.read(_cell()), _predictions(0, 30)), "each image must be read once")
    _expect(store.missing(_cell(), 30) == [], "no image must be missing")


def keeps_cells_apart(store: Store) -> None:
    """Facts determine a cell: another fact is another cell, another name is the same cell."""
    store.write(_cell(), 0, _predictions(0, 10))
    others = (_cell(severity=4), _cell(digest="another"))
    for other in others:
        _expect(store.missing(other, 10) == [(0, 10)], "another fact must be another cell")
    _expect(store.missing(_cell("renamed"), 10) == [], "a renamed model must keep its cells")
    _expect(set(store.listing()) == {_cell().fingerprint}, "the keys of a listing must be fingerprints")


def takes_any_name(store: Store) -> None:
    """Names may contain characters that are special in paths."""
    names = ["a/b", "../up", "..", ".", "space and ünïcode", "what?*[x]", "x" * 100, "C:\\con", "n\\0"]
    for name in names:
        store.write(_cell(name, f"digest of {name}"), 0, _predictions(0, 5))
    for name in names:
        _expect(
            _same(store.read(_cell(name, f"digest of {name}")), _predictions(0, 5)),
            f"the name {name!r} must work",
        )
    _expect(len(store.listing()) == len(names), "different names must be different cells")


def gathers_without_loss(store: Store) -> None:
    """Contiguous parts are merged into one with the same rows, also for readers with an older listing."""
    for start in (0, 10, 20):
        store.write(_cell(), start, _predictions(start, start + 10))
    before = store.listing()
    store.gather(_cell(), before)
    _expect(len(store.listing()[_cell().fingerprint]) == 1, "contiguous parts must be merged")
    _expect(_same(store.read(_cell()), _predictions(0, 30)), "merged rows must stay the same")
    _expect(
        _same(store.read(_cell(), before), _predictions(0, 30)), "rows must be the same with an older listing"
    )
    store.write(_cell(severity=4), 0, _predictions(0, 10))
    store.write(_cell(severity=4), 20, _predictions(20, 30))
    store.gather(_cell(severity=4))
    _expect(store.missing(_cell(severity=4), 30) == [(10, 20)], "gaps must stay missing")


def keeps_images_without_prediction(store: Store) -> None:
    """Rows of images that could not be read have an id, a label and no prediction."""
    schema = _predictions(0, 1).schema
    lost = without_prediction(["test/10", "test/11"], [1, 2], schema)
    store.write(_cell(), 0, pa.concat_tables([_predictions(0, 10), lost]))
    store.write(_cell(), 12, _predictions(12, 20))
    for _ in range(2):
        found = store.read(_cell())
        _expect(found["top"].null_count == 2, "images without a prediction must stay without one")
        _expect(
            found["id"].to_pylist() == [f"test/{i}" for i in range(20)],
            "images without a prediction must keep their places",
        )
        store.gather(_cell())


def remembers_runs(store: Store) -> None:
    """Runs are listed from the oldest to the newest; a run with the same facts replaces the record."""
    store.write_run({"suite": {"name": "b"}}, {"time": "2026-01-02"})
    store.write_run({"suite": {"name": "a"}}, {"time": "2026-01-01"})
    store.write_run({"suite": {"name": "b"}}, {"time": "2026-01-03", "images": 5})
    found = [(run["suite"]["name"], run["time"]) for run in store.runs()]
    _expect(found == [("a", "2026-01-01"), ("b", "2026-01-03")], "there must be one run per set of facts")


def takes_many_writers(store: Store) -> None:
    """Concurrent writes and reads of threads lose no rows."""

    def write(number: int) -> None:
        cell, start = _cell(severity=number % 5 + 1), number // 5 * 10
        store.write(cell, start, _predictions(start, start + 10))
        store.missing(cell, 100, store.listing())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(50)))
    for severity in range(1, 6):
        _expect(
            _same(store.read(_cell(severity=severity)), _predictions(0, 100)),
            "concurrent writes must lose no rows",
        )


STORE_CONTRACTS: dict[str, Callable[[Store], None]] = {
    contract.__name__: contract
    for contract in (
        begins_empty,
        gives_back_what_was_written,
        knows_what_is_missing,
        counts_no_image_twice,
        keeps_cells_apart,
        takes_any_name,
        gathers_without_loss,
        keeps_images_without_prediction,
        remembers_runs,
        takes_many_writers,
    )
}
"""The requirements by name; each needs a new store."""


def check_store(make_store: Callable[[], Store]) -> None:
    """Run every check on a new store; a `ContractError` describes the first violation."""
    for contract in STORE_CONTRACTS.values():
        contract(make_store())
