"""Confidence sequences: false alarms over all looks, and width."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given
from numpy.typing import NDArray

from beaufort.metrics.stats import (
    always_valid_images_to_decide,
    always_valid_interval,
    mean_interval,
    paired_interval,
)


def misses(draw: NDArray[np.float64], mean: float, low: float, looks: list[int]) -> bool:
    """Return whether any interval of the sequence misses the mean."""
    found = (always_valid_interval(draw[:n], low=low) for n in looks)
    return any(not one.low <= mean <= one.high for one in found)


LOOKS = sorted({round(x) for x in np.geomspace(1, 2000, 30)})


@pytest.mark.parametrize("rate", [0.003, 0.2])
def test_no_look_is_wrong(rate: float) -> None:
    """Differences of 1 and -1; an interval for a fixed number of images fails if one looks so often."""
    rng = np.random.default_rng(round(1e4 * rate))
    repeats, wrong, naive = 80, 0, 0
    for _ in range(repeats):
        values = rng.choice([1.0, 0.0], size=LOOKS[-1], p=[rate, 1 - rate])
        wrong += misses(values, rate, -1.0, LOOKS)
        for n in LOOKS:
            found = paired_interval(values[:n])
            if not found.low <= rate <= found.high:
                naive += 1
                break
    assert wrong <= 0.05 * repeats
    if rate > 0.1:
        assert naive > 0.1 * repeats


def test_the_average_capital_is_at_most_one() -> None:
    """Which is why Ville's inequality bounds the misses; here for every result of eight images."""
    from beaufort.metrics.stats.always_valid import _Bets

    values, chances, low = np.array([-1.0, 0.0, 0.5]), np.array([0.1, 0.6, 0.3]), -1.0
    mean = float(values @ chances)
    images, total = 8, 0.0
    for first in range(images + 1):
        for second in range(images + 1 - first):
            counts = np.array([first, second, images - first - second])
            ways = math.factorial(images) / math.prod(math.factorial(int(count)) for count in counts)
            capital = math.exp(_Bets(values, counts.astype(float)).log_capital(mean, low))
            total += ways * float(np.prod(chances**counts)) * capital
    assert total == pytest.approx(1)


@pytest.mark.parametrize("images", [100, 1000, 10_000])
def test_less_than_twice_as_wide_as_for_a_fixed_number(images: int) -> None:
    values = np.resize([1.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], images)
    fixed = paired_interval(values).half_width
    assert fixed < always_valid_interval(values, low=-1).half_width < 2 * fixed


@example([1e-308])
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_wider_than_gaffkes_interval_around_the_mean(values: list[float]) -> None:
    found, fixed = always_valid_interval(values), mean_interval(values)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.half_width > 0.9 * fixed.half_width


def test_the_order_of_images_does_not_matter() -> None:
    values = np.random.default_rng(1).random(50)
    first, second = always_valid_interval(values), always_valid_interval(np.sort(values))
    assert (first.low, first.high) == pytest.approx((second.low, second.high))


def test_images_to_decide() -> None:
    needed = always_valid_images_to_decide([1, 1, 1, 0], limit=0.6)
    assert needed is not None
    assert always_valid_interval(np.resize([1, 1, 1, 0], 4 * math.ceil(needed / 4))).low >= 0.6
    assert always_valid_interval(np.resize([1, 1, 1, 0], 4 * math.floor(needed / 4) - 4)).low < 0.6
    above = always_valid_images_to_decide([0, 0, 0, 1], limit=0.4)
    assert above == needed
    assert always_valid_images_to_decide([0.5], limit=0.5) is None
