"""Calibration against a loop over bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort._core.errors import OptionError
from beaufort.metrics import (
    MetricError,
    MissingResultsError,
    calibration_bins,
    confidence_bin,
    ece_from_bins,
    expected_calibration_error,
)

IMAGES = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


def slow_ece(images: list[tuple[float, bool]], bins: int) -> float:
    total = 0.0
    for i in range(bins):
        low, high = i / bins, (i + 1) / bins
        here = [(p, ok) for p, ok in images if low < p <= high or (i == 0 and p == 0)]
        if here:
            sure = sum(p for p, _ in here) / len(here)
            right = sum(ok for _, ok in here) / len(here)
            total += len(here) / len(images) * abs(sure - right)
    return total


@given(IMAGES, st.integers(1, 20))
def test_against_a_loop(images: list[tuple[float, bool]], bins: int) -> None:
    sure, right = zip(*images, strict=True)
    assert expected_calibration_error(sure, right, bins) == pytest.approx(slow_ece(images, bins), abs=1e-12)


@given(IMAGES, st.randoms(use_true_random=False))
def test_order_does_not_matter(images: list[tuple[float, bool]], random: Any) -> None:
    sure, right = zip(*images, strict=True)
    mixed_sure, mixed_right = zip(*random.sample(images, len(images)), strict=True)
    assert expected_calibration_error(mixed_sure, mixed_right) == pytest.approx(
        expected_calibration_error(sure, right), abs=1e-12
    )


@given(IMAGES, IMAGES)
def test_bins_of_parts_add_up(first: list[tuple[float, bool]], second: list[tuple[float, bool]]) -> None:
    columns = [tuple(zip(*part, strict=True)) for part in (first, second, [*first, *second])]
    one, other, whole = (calibration_bins(sure, right) for sure, right in columns)
    for a, b, together in zip(one, other, whole, strict=True):
        np.testing.assert_allclose(a + b, together)


def test_leading_axes_equal_a_loop() -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, (7, 100))
    sure, right = rng.random(100), rng.random(100) < 0.5
    place = confidence_bin(sure, 10)
    onehot = np.eye(10)[place]
    fast = ece_from_bins(
        weights @ onehot, weights @ (onehot * sure[:, None]), weights @ (onehot * right[:, None])
    )
    slow = [expected_calibration_error(np.repeat(sure, w), np.repeat(right, w), 10) for w in weights]
    np.testing.assert_allclose(fast, slow)


def test_edges_belong_to_the_bin_below() -> None:
    assert confidence_bin(np.arange(11) / 10, 10).tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: expected_calibration_error([], []), MissingResultsError, r"confidence .*empty"),
        (
            lambda: expected_calibration_error([0.5], [True], bins=0),
            OptionError,
            r"bins .*positive integer.* 0",
        ),
        (lambda: expected_calibration_error([50.0], [True]), MetricError, "divide percent by 100"),
        (lambda: expected_calibration_error([np.nan], [True]), MetricError, "NaN"),
        (
            lambda: expected_calibration_error([0.5], [True, False]),
            MetricError,
            r"correct .*shape \(1,\)",
        ),
        (lambda: ece_from_bins([0, 0], [0, 0], [0, 0]), MissingResultsError, "no images"),
        (lambda: ece_from_bins([1, 1], [1], [1, 1]), MetricError, "same shape"),
    ],
)
def test_rejections(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
