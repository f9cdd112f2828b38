"""The answers of a run that is done, ready to be scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from beaufort.evaluation.planning import Work
from beaufort.results import ListedStore, Results, ResultSetting, Scored, order_of
from beaufort.store import Cell, Store
from beaufort.suites.conditions import Condition


def plan_results(works: Sequence[Work], count: int, origins: tuple[Mapping[str, Any], ...] = ()) -> Results:
    """Which answers models gave to the first `count` images of one data set of a suite; see `stored_in`."""
    setup = works[0].setup
    suite = setup.suite
    assert suite is not None
    if suite.clean and not any(work.condition.clean for work in works):
        suite = suite.without_clean()
    cells: dict[str, dict[Condition, Cell]] = {}
    for work in works:
        cells.setdefault(work.model.spec.name, {})[work.condition] = work.cell
    scored = Scored.of(
        {key: value for work in works for key, value in work.cell.data.get("labels", {}).items()}
    )
    setting = ResultSetting(str(works[0].cell.data["digest"]), order_of(setup.order), setup.seed, scored)
    dataset = setup.dataset
    return Results(
        suite,
        setting,
        dataset.name,
        dataset.classes,
        cells,
        {},
        {},
        tuple(map(dict, origins)),
        limit=count,
        outputs=common_outputs(works),
        stored=setup.stored,
    )


def stored_in(results: Results, store: Store) -> Results:
    """The same results with a place to read them from, as it is now."""
    return replace(results, sources=dict.fromkeys(results.cells, ListedStore(store, store.listing())))


def common_outputs(works: Sequence[Work]) -> int | None:
    """How many outputs the models have; None if that is not known, or not the same for all."""
    outputs = {work.model.spec.classes for work in works}
    return outputs.pop() if len(outputs) == 1 else None
