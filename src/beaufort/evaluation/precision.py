"""Only as many images as a precision takes.

The images come in a random order, so that those seen so far are a fair sample of all. The intervals of the
headline numbers are looked at after fixed numbers of images (`stats.looks`), and the run ends at the first
look at which every one of them, for every model, is narrower than ± the precision. Values never decide when
to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from beaufort.conditions import Condition
from beaufort.errors import OptionError
from beaufort.evaluation.planning import Plan
from beaufort.results import ListedStore, Results, ResultSetting, Scored, order_of, score
from beaufort.stats import looks
from beaufort.store import Cell, Store

__all__ = ["Stop", "run_until"]


@dataclass(frozen=True)
class Stop:
    """Where a run with a precision ended."""

    images: int
    """How many were shown."""
    of: int
    """How many there are."""
    precision: float
    """What was asked for, as a share."""
    half_widths: Mapping[str, Mapping[str, float]]
    """Half the width of the interval of each headline number, by model and metric."""

    @property
    def met(self) -> bool:
        """Whether it ended because every interval is narrow enough, and not because images ran out."""
        return self.widest <= self.precision

    @property
    def widest(self) -> float:
        """Half the width of the widest interval."""
        return max(width for one in self.half_widths.values() for width in one.values())


def run_until(
    plan: Plan,
    store: Store,
    precision: float,
    baseline: str | None,
    show: Callable[[int, int], None],
) -> Stop:
    """Show images, from one number to another, until the numbers are as precise as asked for.

    Args:
        plan: all images, in a random order.
        store: where `show` keeps the answers.
        precision: as a share: 0.01 is one point.
        baseline: as for `score`.
        show: shows the images from a first to behind a last.
    """
    if not precision > 0:
        raise OptionError(f"precision must be positive, got {precision!r}")
    if plan.setup.suite is None:
        raise OptionError("precision needs a suite, whose metrics are to be that precise")
    shown = 0
    for count in looks(plan.setup.count):
        show(shown, count)
        shown = count
        stop = _look(plan, store, precision, baseline, count)
        if stop.met:
            break
    return stop


def _look(plan: Plan, store: Store, precision: float, baseline: str | None, count: int) -> Stop:
    results = _results(plan, store, count)
    scores = score(results, baseline=baseline, calibration=False)
    wanted = set(scores.suite.metrics) & set(scores.models[0].metrics) or {scores.headline}
    half_widths = {
        one.model: {name: value.half_width for name, value in one.metrics.items() if name in wanted}
        for one in scores.models
    }
    return Stop(count, plan.setup.count, precision, half_widths)


def _results(plan: Plan, store: Store, count: int) -> Results:
    setup = plan.setup
    assert setup.suite is not None
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
