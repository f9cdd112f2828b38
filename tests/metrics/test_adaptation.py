"""Intervals of streams cover the truth when their values depend on each other; collapse is detected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from beaufort.metrics import collapse_position, stream_mean

IMAGES, CONDITIONS, BATCH = 150, 6, 25


def simulated(
    rng: np.random.Generator, seeds: int, drift: float, memory: float = 0.9
) -> tuple[Any, Any, Any]:
    """Differences of errors with effects of images, of conditions, and of a state that links neighbors."""
    easy = rng.normal(0, 0.15, IMAGES)
    rows = []
    for _ in range(seeds):
        order = np.concatenate([rng.permutation(IMAGES) for _ in range(CONDITIONS)])
        conditions = np.repeat(np.arange(CONDITIONS), IMAGES)
        state, path = 0.0, np.empty(len(order))
        for start in range(0, len(order), BATCH):
            state = memory * state + rng.normal(0, drift)
            path[start : start + BATCH] = state
        mean = np.clip(0.1 + 0.1 * (conditions - 2.5) / 2.5 + easy[order] + path, -1, 1)
        values = np.sign(mean) * (rng.uniform(size=len(order)) < np.abs(mean))
        rows.append((values, order, conditions))
    values, order, conditions = (np.stack(some) for some in zip(*rows, strict=True))
    return values, order, conditions


@pytest.mark.parametrize(
    ("seeds", "drift", "memory"), [(5, 0.0, 0.0), (5, 0.03, 0.9), (2, 0.02, 0.9), (1, 0.04, 0.5)]
)
def test_intervals_cover_the_truth(seeds: int, drift: float, memory: float) -> None:
    rng = np.random.default_rng(0)
    truth = np.mean([simulated(rng, 1, drift, memory)[0].mean() for _ in range(400)])
    found = [stream_mean(*simulated(rng, seeds, drift, memory), BATCH) for _ in range(300)]
    covered = np.mean([one.low <= truth <= one.high for one in found])
    assert covered >= {5: 0.93, 2: 0.89, 1: 0.86}[seeds]
    naive = [1.96 * np.sqrt(one.value * (1 - one.value) / (seeds * IMAGES * CONDITIONS)) for one in found]
    apart = np.mean([abs(one.value - truth) <= half for one, half in zip(found, naive, strict=True)])
    assert apart < covered  # independent images would be too optimistic


def test_intervals_are_not_wider_than_needed() -> None:
    rng = np.random.default_rng(1)
    found = [stream_mean(*simulated(rng, 5, 0.01), BATCH) for _ in range(200)]
    spread = np.std([one.value for one in found])
    assert np.mean([one.half_width for one in found]) < 1.6 * 1.96 * spread


@pytest.mark.parametrize(("value", "low"), [(0.0, 0.0), (1.0, 0.0), (0.0, -1.0)])
def test_equal_values_have_the_interval_of_the_images(value: float, low: float) -> None:
    one = stream_mean(
        np.full((2, 8), value), np.tile(np.arange(4), (2, 2)), np.zeros((2, 8), int), 2, low=low
    )
    assert (one.value, one.n) == (value, 4)
    assert low <= one.low <= one.value <= one.high <= 1
    assert one.high - one.low > 0.5  # four images say little


def test_a_collapse_is_found_where_it_begins() -> None:
    rng = np.random.default_rng(2)
    for begin in (500, 1000, 1500):
        rate = np.where(np.arange(2000) < begin, -0.1, 0.25)
        differences = np.sign(rate) * (rng.uniform(size=2000) < np.abs(rate))
        position = collapse_position(differences, 20)
        assert position is not None
        assert abs(position - begin) <= 80
    assert collapse_position(np.full(1000, 1.0), 10) == 0


def test_equal_models_rarely_collapse() -> None:
    rng = np.random.default_rng(3)
    alarms = [collapse_position(rng.choice([-1, 0, 1], 1500, p=[0.1, 0.8, 0.1]), 20) for _ in range(400)]
    assert np.mean([one is not None for one in alarms]) < 0.02
    late = np.concatenate([np.full(950, -0.5), np.full(50, 1.0)])
    assert collapse_position(late, 10) is None  # the last twentieth of a stream
