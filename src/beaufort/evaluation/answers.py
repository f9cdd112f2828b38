"""The answers of a run as results, which `beaufort.results.score` makes numbers of."""

from __future__ import annotations

from beaufort.conditions import Condition
from beaufort.evaluation.planning import Plan
from beaufort.results import ListedStore, Results, ResultSetting, Scored, order_of
from beaufort.store import Cell, Store

__all__ = ["answers_of"]


def answers_of(plan: Plan, store: Store, count: int) -> Results | None:
    """The answers to the first so many images; None if the conditions are of no suite."""
    setup = plan.setup
    if setup.suite is None:
        return None
    cells: dict[str, dict[Condition, Cell]] = {}
    for work in plan.works:
        cells.setdefault(work.model.spec.name, {})[work.condition] = work.cell
    scored = Scored.of(
        {key: value for work in plan.works for key, value in work.cell.data.get("labels", {}).items()}
    )
    setting = ResultSetting(str(plan.works[0].cell.data["digest"]), order_of(setup.data), setup.seed, scored)
    sources = dict.fromkeys(cells, ListedStore(store, store.listing()))
    dataset = setup.dataset
    return Results(setup.suite, setting, dataset.name, dataset.classes, cells, {}, sources, limit=count)
