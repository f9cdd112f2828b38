"""Scores of distributions against loops, and against what the store writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort.metrics import (
    MetricError,
    MissingResultsError,
    brier_score,
    entropy,
    negative_log_likelihood,
)


def softmax(logits: Any) -> Any:
    powers = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


LOGITS = st.lists(
    st.tuples(st.lists(st.floats(-8, 8), min_size=4, max_size=4), st.integers(0, 3)), min_size=1, max_size=20
)


@given(LOGITS)
def test_against_a_loop(rows: list[tuple[list[float], int]]) -> None:
    p = softmax(np.array([logits for logits, _ in rows]))
    labels = [label for _, label in rows]
    brier = nll = undecided = 0.0
    for row, label in zip(p.tolist(), labels, strict=True):
        brier += sum((value - (place == label)) ** 2 for place, value in enumerate(row))
        nll += -math.log(row[label])
        undecided += -sum(value * math.log(value) for value in row)
    n = len(rows)
    assert brier_score(p, labels) == pytest.approx(brier / n, abs=1e-12)
    assert negative_log_likelihood(p, labels) == pytest.approx(nll / n)
    assert entropy(p) == pytest.approx(undecided / n)


@given(LOGITS, st.randoms(use_true_random=False))
def test_order_does_not_matter(rows: list[tuple[list[float], int]], random: Any) -> None:
    def numbers(rows: list[tuple[list[float], int]]) -> list[float]:
        p, labels = softmax(np.array([logits for logits, _ in rows])), [label for _, label in rows]
        return [brier_score(p, labels), negative_log_likelihood(p, labels), entropy(p)]

    assert numbers(random.sample(rows, len(rows))) == pytest.approx(numbers(rows), abs=1e-12)


def test_as_the_store_has_them() -> None:
    from beaufort.evaluation import predictions

    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(50, 7)).astype(np.float32), rng.integers(0, 7, 50)
    table = predictions([str(i) for i in range(50)], labels, logits)
    p = softmax(logits.astype(np.float64))
    for column, value in (
        ("brier", brier_score(p, labels)),
        ("nll", negative_log_likelihood(p, labels)),
        ("entropy", entropy(p)),
    ):
        assert np.asarray(table[column], dtype=np.float64).mean() == pytest.approx(value, rel=1e-6)


def test_extremes() -> None:
    sure = np.eye(3)
    assert brier_score(sure, [0, 1, 2]) == 0
    assert brier_score(sure, [1, 2, 0]) == 2
    assert negative_log_likelihood(sure, [0, 1, 2]) == 0
    assert negative_log_likelihood(sure, [1, 1, 2]) == math.inf
    assert entropy(sure) == 0
    assert entropy(np.full((2, 4), 0.25)) == pytest.approx(math.log(4))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: entropy(np.zeros((0, 3))), MissingResultsError, "empty"),
        (lambda: entropy([[2.0, -1.0]]), MetricError, "softmax of logits first"),
        (lambda: entropy([[0.5, 0.1]]), MetricError, "sums from 0.6"),
        (lambda: entropy([0.5, 0.5]), MetricError, r"p .*shape \(images, classes\)"),
        (lambda: entropy([[np.nan, 1.0]]), MetricError, "NaN"),
        (lambda: brier_score([[0.5, 0.5]], [2]), MetricError, r"labels .*0 to 1"),
        (lambda: brier_score([[0.5, 0.5]], [-1]), MetricError, r"labels .*0 to 1"),
        (
            lambda: negative_log_likelihood([[0.5, 0.5]], [0, 1]),
            MetricError,
            r"labels .*shape \(1,\)",
        ),
        (lambda: negative_log_likelihood([[0.5, 0.5]], []), MissingResultsError, r"labels .*empty"),
    ],
)
def test_rejections(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
