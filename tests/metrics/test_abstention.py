"""Selective prediction against slow versions of the definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from beaufort._core.errors import OptionError
from beaufort.metrics import (
    MetricError,
    MissingResultsError,
    accuracy_at_coverage,
    area_under_risk_coverage,
    risk_coverage,
)


def slow_risk(confidence: list[float], correct: list[bool]) -> list[float]:
    """Return the risk of the k most confident images for each k, the mean over all orders of ties."""
    orders = [
        order
        for order in itertools.permutations(range(len(confidence)))
        if all(confidence[a] >= confidence[b] for a, b in itertools.pairwise(order))
    ]
    sums = np.zeros(len(confidence))
    for order in orders:
        for k in range(1, len(order) + 1):
            sums[k - 1] += sum(not correct[i] for i in order[:k]) / k
    return list(sums / len(orders))


@pytest.mark.parametrize("levels", [2, 3, 1000])
def test_the_curve_agrees_with_all_orders(levels: int) -> None:
    rng = np.random.default_rng(levels)
    for _ in range(5):
        confidence = rng.integers(0, levels, 6) / levels
        correct = rng.random(6) < 0.6
        slow = slow_risk(confidence.tolist(), correct.tolist())
        found = risk_coverage(confidence, correct)
        assert found.risk == pytest.approx(slow, abs=1e-12)
        assert found.coverage == pytest.approx(np.arange(1, 7) / 6)
        assert area_under_risk_coverage(confidence, correct) == pytest.approx(np.mean(slow), abs=1e-12)
        assert accuracy_at_coverage(confidence, correct, 0.5) == pytest.approx(1 - slow[2], abs=1e-12)


def test_known_values() -> None:
    assert area_under_risk_coverage([0.9, 0.5], [True, True]) == 0
    assert area_under_risk_coverage([0.5] * 10, [True] * 4 + [False] * 6) == pytest.approx(0.6)
    assert accuracy_at_coverage([0.9, 0.5], [True, False], 1.0) == 0.5
    assert accuracy_at_coverage([0.9, 0.5], [True, False], 0.0) == 1.0  # at least one image


def test_invalid_input() -> None:
    with pytest.raises(MissingResultsError):
        risk_coverage([], [])
    with pytest.raises(MetricError):
        risk_coverage([0.5, 0.5], [True])
    with pytest.raises(OptionError, match="coverage"):
        accuracy_at_coverage([0.5], [True], 80)
