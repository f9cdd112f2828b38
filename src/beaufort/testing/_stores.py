"""What a store promises, one function a promise."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from beaufort.store import Cell, Store, StoreError, predictions, without_prediction
from beaufort.testing._contracts import ContractError

_CLASSES = 7


def _cell(name: str = "net", digest: str = "of the net", severity: int = 3) -> Cell:
    return Cell(
        {"name": name, "digest": digest},
        {"name": "digits", "digest": "of the data"},
        {"corruption": "fog", "severity": severity},
    )


def _answers(start: int, stop: int) -> pa.Table:
    """Rows that depend on their place alone."""
    places = np.arange(start, stop)
    logits = np.sin(np.outer(places + 1, np.arange(1, _CLASSES + 1)) * 1.7).astype(np.float32)
    return predictions([f"test/{place}" for place in places], places % _CLASSES, logits)


def _expect(kept: bool, promise: str) -> None:
    if not kept:
        raise ContractError(f"the store does not keep this promise: {promise}")


def _same(found: pa.Table, wanted: pa.Table) -> bool:
    return found.drop_columns(["place"]).to_pylist() == wanted.to_pylist()


def begins_empty(store: Store) -> None:
    """A new store has nothing: no pieces, no runs, every image missing, and nothing to read."""
    _expect(store.listing() == {}, "a new store lists nothing")
    _expect(store.runs() == [], "a new store knows of no runs")
    _expect(store.missing(_cell(), 10) == [(0, 10)], "of a new cell, every image is missing")
    try:
        store.read(_cell())
    except StoreError:
        return
    _expect(False, "reading a cell that is not there is a StoreError")


def gives_back_what_was_written(store: Store) -> None:
    """All columns of all rows, in the order of the data set, with their places."""
    store.write(_cell(), 20, _answers(20, 50), {"host": "here"})
    store.write(_cell(), 0, _answers(0, 20))
    found = store.read(_cell())
    _expect(_same(found, _answers(0, 50)), "rows come back as they were written, in order")
    _expect(found["place"].to_pylist() == list(range(50)), "`place` is the row's place in the data set")
    narrow = store.read(_cell(), columns=("id", "top"))
    _expect(set(narrow.column_names) == {"place", "id", "top"}, "only the columns asked for are read")


def knows_what_is_missing(store: Store) -> None:
    """Gaps before, between and behind the pieces, as far as asked for."""
    store.write(_cell(), 10, _answers(10, 20))
    store.write(_cell(), 30, _answers(30, 40))
    for count, gaps in ((5, [(0, 5)]), (15, [(0, 10)]), (50, [(0, 10), (20, 30), (40, 50)])):
        _expect(store.missing(_cell(), count) == gaps, f"of {count} images, {gaps} are missing")
        _expect(store.missing(_cell(), count, store.listing()) == gaps, "a listing gives the same answer")


def counts_no_image_twice(store: Store) -> None:
    """The same piece again, and pieces that overlap, are read once."""
    for start, stop in ((0, 20), (0, 20), (10, 30), (5, 15), (0, 30)):
        store.write(_cell(), start, _answers(start, stop))
    _expect(_same(store.read(_cell()), _answers(0, 30)), "each image is read once")
    _expect(store.missing(_cell(), 30) == [], "overlaps are not missing")


def keeps_cells_apart(store: Store) -> None:
    """A cell is its facts: another fact is another cell, another name is not."""
    store.write(_cell(), 0, _answers(0, 10))
    others = (_cell(severity=4), _cell(digest="another"))
    for other in others:
        _expect(store.missing(other, 10) == [(0, 10)], "another fact is another cell")
    _expect(store.missing(_cell("renamed"), 10) == [], "a new name changes no answer")
    _expect(set(store.listing()) == {_cell().fingerprint}, "a listing is by fingerprint")


def takes_any_name(store: Store) -> None:
    """A name is a name, whatever a path would make of it."""
    names = ["a/b", "../up", "..", ".", "space and ünïcode", "what?*[x]", "x" * 100, "C:\\con", "n\\0"]
    for name in names:
        store.write(_cell(name, f"digest of {name}"), 0, _answers(0, 5))
    for name in names:
        _expect(
            _same(store.read(_cell(name, f"digest of {name}")), _answers(0, 5)), f"the name {name!r} is kept"
        )
    _expect(len(store.listing()) == len(names), "no two names are one")


def gathers_without_loss(store: Store) -> None:
    """Pieces end to end become one, with the same rows; who reads by an older listing finds them too."""
    for start in (0, 10, 20):
        store.write(_cell(), start, _answers(start, start + 10))
    before = store.listing()
    store.gather(_cell(), before)
    _expect(len(store.listing()[_cell().fingerprint]) == 1, "pieces end to end become one")
    _expect(_same(store.read(_cell()), _answers(0, 30)), "gathered rows are the same")
    _expect(_same(store.read(_cell(), before), _answers(0, 30)), "an older listing finds the same rows")
    store.write(_cell(severity=4), 0, _answers(0, 10))
    store.write(_cell(severity=4), 20, _answers(20, 30))
    store.gather(_cell(severity=4))
    _expect(store.missing(_cell(severity=4), 30) == [(10, 20)], "a gap stays a gap")


def keeps_images_without_answer(store: Store) -> None:
    """Rows of images that could not be read have an id and a label, and nothing else."""
    schema = _answers(0, 1).schema
    lost = without_prediction(["test/10", "test/11"], [1, 2], schema)
    store.write(_cell(), 0, pa.concat_tables([_answers(0, 10), lost]))
    store.write(_cell(), 12, _answers(12, 20))
    for _ in range(2):
        found = store.read(_cell())
        _expect(found["top"].null_count == 2, "an image without answer stays without")
        _expect(found["id"].to_pylist() == [f"test/{i}" for i in range(20)], "and keeps its place")
        store.gather(_cell())


def remembers_runs(store: Store) -> None:
    """What runs were asked for, the oldest first; the same facts again replace the record."""
    store.write_run({"suite": {"name": "b"}}, {"time": "2026-01-02"})
    store.write_run({"suite": {"name": "a"}}, {"time": "2026-01-01"})
    store.write_run({"suite": {"name": "b"}}, {"time": "2026-01-03", "images": 5})
    found = [(run["suite"]["name"], run["time"]) for run in store.runs()]
    _expect(found == [("a", "2026-01-01"), ("b", "2026-01-03")], "runs come back, one a set of facts")


def takes_many_writers(store: Store) -> None:
    """Threads that write and read at once lose nothing."""

    def write(number: int) -> None:
        cell, start = _cell(severity=number % 5 + 1), number // 5 * 10
        store.write(cell, start, _answers(start, start + 10))
        store.missing(cell, 100, store.listing())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(50)))
    for severity in range(1, 6):
        _expect(_same(store.read(_cell(severity=severity)), _answers(0, 100)), "threads lose no rows")


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
        keeps_images_without_answer,
        remembers_runs,
        takes_many_writers,
    )
}
"""The promises by name; each takes a store that is new."""


def check_store(make_store: Callable[[], Store]) -> None:
    """Run every contract on a new store; a `ContractError` says which promise is not kept."""
    for contract in STORE_CONTRACTS.values():
        contract(make_store())
