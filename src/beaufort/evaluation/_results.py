"""The answers of a run that is done, ready to be scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from beaufort.conditions import Condition
from beaufort.evaluation.planning import Plan
from beaufort.results import ListedStore, Results, ResultSetting, Scored, order_of
from beaufort.store import Cell, Store

__all__ = ["common_outputs", "plan_results", "stored_in"]


def plan_results(plan: Plan, count: int, origins: tuple[Mapping[str, Any], ...] = ()) -> Results:
    """Which answers the models of a plan with a suite gave to its first `count` images; see `stored_in`."""
    setup = plan.setup
    assert setup.suite is not None
    cells: dict[str, dict[Condition, Cell]] = {}
    for work in plan.works:
        cells.setdefault(work.model.spec.name, {})[work.condition] = work.cell
    scored = Scored.of(
        {key: value for work in plan.works for key, value in work.cell.data.get("labels", {}).items()}
    )
    setting = ResultSetting(str(plan.works[0].cell.data["digest"]), order_of(setup.data), setup.seed, scored)
    dataset = setup.dataset
    return Results(
        setup.suite,
        setting,
        dataset.name,
        dataset.classes,
        cells,
        {},
        {},
        tuple(map(dict, origins)),
        limit=count,
        outputs=common_outputs(plan),
    )


def stored_in(results: Results, store: Store) -> Results:
    """The same results with a place to read them from, as it is now."""
    return replace(results, sources=dict.fromkeys(results.cells, ListedStore(store, store.listing())))


def common_outputs(plan: Plan) -> int | None:
    """How many outputs the models have; None if that is not known, or not the same for all."""
    outputs = {work.model.spec.classes for work in plan.works}
    return outputs.pop() if len(outputs) == 1 else None
