"""Only as many images as a precision takes.

The images come in a random order, so that those seen so far are a fair sample of all. The intervals of the
headline numbers are looked at after fixed numbers of images (`stats.looks`), and the run ends at the first
look at which every one of them, for every model, is narrower than ± the precision. Values never decide when
to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from beaufort._core.errors import OptionError
from beaufort.evaluation._results import plan_results, stored_in
from beaufort.evaluation.planning import Plan
from beaufort.metrics.stats import looks
from beaufort.results import score
from beaufort.store import Store

FINEST = 0.05
"""Points; less would take millions of images, and is a share where points were meant."""


@dataclass(frozen=True)
class Stop:
    """After how many images a run with a precision stopped, and why."""

    images: int
    """Number of images shown."""
    of: int
    """Number of images in the data set."""
    precision: float
    """What was asked for, in points: 1.0 is ± 1 %."""
    half_widths: Mapping[str, Mapping[str, float]]
    """Half the width of the interval of each headline number, by model and metric."""

    @property
    def met(self) -> bool:
        """Whether it ended because every interval is narrow enough, and not because images ran out."""
        return 100 * self.widest <= self.precision

    @property
    def widest(self) -> float:
        """Half the width of the widest interval, a share."""
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
        precision: in points: 1.0 is ± 1 %.
        baseline: as for `score`.
        show: shows the images from a first to behind a last.
    """
    if not isinstance(precision, int | float) or not precision >= FINEST:
        raise OptionError(
            f"precision must be at least {FINEST} points, got {precision!r}; it is in percentage points: "
            "1 asks for ± 1 %"
        )
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
    results = stored_in(plan_results(plan.works, count), store)
    scores = score(results, baseline=baseline, calibration=False)
    wanted = set(scores.suite.metrics) & set(scores.models[0].metrics) or {scores.headline}
    half_widths = {
        one.model: {name: value.half_width for name, value in one.metrics.items() if name in wanted}
        for one in scores.models
    }
    return Stop(count, plan.setup.count, precision, half_widths)
