"""Conformal prediction sets and temperatures against slow versions, and what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from beaufort._core.errors import UnknownNameError
from beaufort.metrics import (
    CONFORMAL_METHODS,
    MetricError,
    conformal_scores,
    conformal_sets,
    conformal_threshold,
    fit_temperature,
    negative_log_likelihood,
)


def softmax(logits: np.ndarray) -> np.ndarray:
    made = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(made / made.sum(axis=1, keepdims=True))


def drawn(images: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return logits, and labels that are drawn from a flatter distribution than theirs."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (images, classes))
    labels = np.array([rng.choice(classes, p=row) for row in softmax(logits / 1.7)])
    return logits, labels


def slow_score(row: np.ndarray, label: int, method: str, u: float) -> float:
    if method == "lac":
        return float(1 - row[label])
    ranked = sorted(range(len(row)), key=lambda k: -row[k])
    place = ranked.index(label)
    score = sum(row[k] for k in ranked[:place]) + u * row[label]
    return float(score + 0.01 * max(0, place + 1 - 5) * (method == "raps"))


@pytest.mark.parametrize("method", CONFORMAL_METHODS)
def test_scores_agree_with_a_loop(method: str) -> None:
    p = softmax(drawn(20, 9, 0)[0])
    u = np.random.default_rng(1).random(20)
    found, without = conformal_scores(p, method, uniform=u), conformal_scores(p, method)
    for i, k in np.ndindex(p.shape):
        assert found[i, k] == pytest.approx(slow_score(p[i], k, method, float(u[i])), abs=1e-9)
        assert without[i, k] == pytest.approx(slow_score(p[i], k, method, 1.0), abs=1e-9)


@pytest.mark.parametrize("method", CONFORMAL_METHODS)
def test_sets_have_the_requested_coverage(method: str) -> None:
    """The mean coverage is from the requested one to 1 / (n + 1) above it."""
    covered = []
    for seed in range(200):
        logits, labels = drawn(200, 8, seed)
        u = np.random.default_rng(seed).random(200)
        scores = conformal_scores(softmax(logits), method, uniform=u)
        of_label = scores[np.arange(200), labels]
        sets = conformal_sets(scores[100:], conformal_threshold(of_label[:100], 0.9))
        covered.append(sets[np.arange(100), labels[100:]].mean())
    error = np.std(covered) / math.sqrt(len(covered))
    assert 0.9 - 3 * error <= np.mean(covered) <= 0.91 + 3 * error


def test_thresholds() -> None:
    scores = [0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.4, 0.6, 0.8]
    assert conformal_threshold(scores, 0.9) == 0.9
    assert conformal_threshold(scores, 0.5) == 0.5
    assert conformal_threshold(scores, 0.95) == math.inf
    assert conformal_sets([[0.2, 5.0]], math.inf).all()


def test_temperature_has_the_smallest_loss() -> None:
    logits, labels = drawn(3000, 5, 0)
    found = fit_temperature(logits, labels)
    assert found == pytest.approx(1.7, abs=0.15)
    losses = {
        t: negative_log_likelihood(softmax(logits / t), labels) for t in (found, found * 1.01, found / 1.01)
    }
    assert min(losses, key=losses.__getitem__) == found
    impossible = np.column_stack([logits, np.full(3000, -np.inf)])
    assert fit_temperature(impossible, labels) == pytest.approx(found, abs=1e-9)
    assert fit_temperature(3 * logits, labels) == pytest.approx(3 * found, abs=1e-6)


def test_temperature_agrees_with_a_search() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    logits, labels = drawn(200, 5, 3)
    searched = optimize.minimize_scalar(
        lambda t: negative_log_likelihood(softmax(logits / t), labels),
        bounds=(0.5, 5),
        options={"xatol": 1e-9},
    )
    assert fit_temperature(logits, labels) == pytest.approx(searched.x, abs=1e-5)
    assert negative_log_likelihood(
        softmax(logits / fit_temperature(logits, labels)), labels
    ) == pytest.approx(searched.fun, abs=1e-9)


def test_temperature_has_limits() -> None:
    assert fit_temperature([[1.0, 0.0]], [0]) == 0.01
    assert fit_temperature([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], [1, 1, 0]) == 100.0


def test_invalid_input() -> None:
    with pytest.raises(UnknownNameError, match="top"):
        conformal_scores([[0.5, 0.5]], "top")
    with pytest.raises(MetricError):
        conformal_scores([[2.0, 1.0]])
    with pytest.raises(MetricError, match="-inf"):
        fit_temperature([[0.0, -np.inf]], [1])
