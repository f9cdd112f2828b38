"""Accuracy, over all and by class, against loops."""

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
    accuracy,
    error,
    per_class_accuracy,
    worst_classes,
)

PREDICTIONS = st.lists(st.tuples(st.integers(0, 5), st.permutations(range(6))), min_size=1, max_size=30)


@given(PREDICTIONS, st.integers(1, 6))
def test_against_a_loop(outputs: list[tuple[int, list[int]]], k: int) -> None:
    labels, top = [label for label, _ in outputs], [row for _, row in outputs]
    right = sum(label in row[:k] for label, row in outputs)
    assert accuracy(labels, top, k) == pytest.approx(right / len(outputs))
    assert error(labels, top, k) == pytest.approx(1 - right / len(outputs))
    predicted = [row[0] for row in top]
    assert accuracy(labels, predicted) == accuracy(labels, top)


@given(PREDICTIONS)
def test_by_class_against_a_loop(outputs: list[tuple[int, list[int]]]) -> None:
    labels, predicted = [label for label, _ in outputs], [row[0] for _, row in outputs]
    slow = {}
    for name in sorted(set(labels)):
        mine = [p == name for label, p in zip(labels, predicted, strict=True) if label == name]
        slow[name] = sum(mine) / len(mine)
    assert per_class_accuracy(labels, predicted) == pytest.approx(slow)
    worst = worst_classes(labels, predicted, count=2)
    assert [one.accuracy for one in worst] == pytest.approx(sorted(slow.values())[:2])
    assert all(one.n == labels.count(one.label) for one in worst)


@given(PREDICTIONS, st.randoms(use_true_random=False))
def test_order_does_not_matter(outputs: list[tuple[int, list[int]]], random: Any) -> None:
    mixed = random.sample(outputs, len(outputs))

    def numbers(rows: list[tuple[int, list[int]]]) -> tuple[Any, ...]:
        labels, top = [label for label, _ in rows], np.array([row for _, row in rows])
        return (
            accuracy(labels, top, 2),
            error(labels, top),
            per_class_accuracy(labels, top[:, 0]),
            worst_classes(labels, top[:, 0], 3),
        )

    assert numbers(mixed) == numbers(outputs)


def test_ties_go_to_the_class_with_more_images() -> None:
    assert [one.label for one in worst_classes([0, 1, 1, 2, 2], [3, 3, 3, 3, 3])] == [1, 2, 0]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: accuracy([], []), MissingResultsError, r"labels .*empty"),
        (lambda: accuracy([0], [[0, 1]], k=3), MetricError, "k must be at most 2"),
        (lambda: accuracy([0], [0], k=0), OptionError, r"k .*positive integer.* 0"),
        (lambda: accuracy([0, 1], [0]), MetricError, r"top .*shape \(2, classes\)"),
        (lambda: accuracy([[0]], [0]), MetricError, r"labels .*shape \(1,\).* \(1, 1\)"),
        (lambda: accuracy([0.0, np.nan], [0, 1]), MetricError, "dtype float64"),
        (
            lambda: worst_classes([0], [0], count=0),
            OptionError,
            r"count .*positive integer.* 0",
        ),
        (lambda: per_class_accuracy([], []), MissingResultsError, "empty"),
    ],
)
def test_rejections(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
