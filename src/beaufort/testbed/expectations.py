"""Accuracies under natural shifts that reference models of the same clean accuracy have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numpy.typing import ArrayLike

from beaufort._core.errors import BeaufortError
from beaufort.metrics.stats import Estimate
from beaufort.report import BoardTrend, Expectation
from beaufort.results import Scores, ShiftScore, shift_scores
from beaufort.testbed.grid import Score
from beaufort.testbed.load import load_grid
from beaufort.testbed.placement import Standing, place
from beaufort.testbed.stored_accuracies import PART_SETTINGS
from beaufort.testbed.trend import fit_line, prediction_interval


def shift_expectations(scores: Sequence[Scores]) -> dict[tuple[str, str], Expectation]:
    """Return what the reference models of the paper's grid predict, by dataset and model.

    Datasets that are not in the grid, or without a clean counterpart, are omitted.

    Args:
        scores: the scores of each dataset of a suite.
    """
    found = {}
    for row in shift_scores(scores):
        if row.clean is None or row.paired or row.shifts:
            continue
        try:
            standing = _standing(row, row.clean)
        except BeaufortError:  # an unknown setting, or an accuracy that the trend does not cover
            continue
        if standing is not None:
            found[row.part, row.model] = _expectation(standing)
    return found


def _standing(row: ShiftScore, clean: Estimate) -> Standing | None:
    grid = load_grid("paper")
    setting = grid.setting(PART_SETTINGS.get(row.part, row.part))
    if setting.clean is None:
        return None
    pairs = ((setting.clean, clean), (setting.name, row.accuracy))
    placement = place([Score(name, 100 * one.value, one.n) for name, one in pairs], grid)
    return next((one for one in placement.standings if one.y == setting.name), None)


def _expectation(standing: Standing) -> Expectation:
    own = standing.robustness
    rho = None
    if own.rho is not None and own.interval is not None:
        count = int(min(one for one in own.images if one))
        rho = Estimate(own.rho / 100, own.interval.low / 100, own.interval.high / 100, count)
    expected = None if own.expected is None else own.expected / 100
    return Expectation(expected, rho, standing.verdict, own.percentile)


def fit_accuracies(clean: ArrayLike, shifted: ArrayLike) -> Callable[[ArrayLike], BoardTrend]:
    """Fit accuracies under a shift on clean ones, in percent and on logit axes, as for a board.

    >>> trend = fit_accuracies([60.0, 70.0, 80.0, 75.0], [50.0, 61.0, 70.0, 65.0])([70.0])
    >>> trend.center.round(1).tolist()
    [60.0]
    """
    line = fit_line(clean, shifted)
    return lambda percent: BoardTrend(line.predict(percent), *prediction_interval(line, percent))
