"""Selective prediction and prediction sets compared with TorchUncertainty."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from beaufort.metrics import (
    accuracy_at_coverage,
    area_under_risk_coverage,
    conformal_scores,
    conformal_sets,
    risk_coverage,
)
from beaufort.models import prepare_torchvision

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def peer() -> Iterator[Any]:
    """TorchUncertainty, with 64 bits."""
    prepare_torchvision()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classification = pytest.importorskip("torch_uncertainty.metrics.classification")
        post_processing = pytest.importorskip("torch_uncertainty.post_processing")
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        yield classification, post_processing
        torch.set_default_dtype(before)


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of 7 classes for 500 images, and labels drawn from flatter ones."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(7, 0.4), 500)
    flat = p**0.6 / (p**0.6).sum(axis=1, keepdims=True)
    return p, np.array([rng.choice(7, p=row) for row in flat])


def test_risk_coverage(peer: Any, drawn: tuple[np.ndarray, np.ndarray]) -> None:
    p, labels = drawn
    confidence, correct = p.max(axis=1), p.argmax(axis=1) == labels
    area = peer[0].AURC()
    area.update(torch.from_numpy(p), torch.from_numpy(labels))
    curve = risk_coverage(confidence, correct)
    np.testing.assert_allclose(curve.risk, area.partial_compute().numpy(), atol=1e-9, rtol=0)
    # TorchUncertainty takes the trapezoids between the first and the last point, and we the mean of all
    n, ends = len(p), (curve.risk[0] + curve.risk[-1]) / 2
    trapezoids = (n * area_under_risk_coverage(confidence, correct) - ends) / (n - 1)
    assert float(area.compute()) == pytest.approx(trapezoids, abs=1e-9)
    for coverage in (0.5, 0.8, 1.0):
        risk = peer[0].RiskAtxCov(coverage)
        risk.update(torch.from_numpy(p), torch.from_numpy(labels))
        assert 1 - accuracy_at_coverage(confidence, correct, coverage) == pytest.approx(
            float(risk.compute()), abs=1e-9
        )


@pytest.mark.parametrize("method", ["aps", "raps"])
def test_scores_of_sets(peer: Any, drawn: tuple[np.ndarray, np.ndarray], method: str) -> None:
    p, labels = drawn
    options: dict[str, Any] = {} if method == "aps" else {"penalty": 0.1, "regularization_rank": 2}
    other = {"aps": peer[1].ConformalClsAPS, "raps": peer[1].ConformalClsRAPS}[method](
        alpha=0.1, randomized=False, enable_ts=False, **options
    )
    scores = conformal_scores(p, method, penalty=0.1, free_classes=2)
    theirs = other._calculate_all_labels(torch.from_numpy(p)).numpy()
    np.testing.assert_allclose(scores, theirs, atol=1e-9, rtol=0)
    sets = conformal_sets(scores, 0.8)
    coverage, size = peer[0].CoverageRate(), peer[0].SetSize()
    as_tensor = torch.from_numpy(sets.astype(np.float64))
    coverage.update(as_tensor, torch.from_numpy(labels))
    size.update(as_tensor)
    hits = sets[np.arange(len(p)), labels]
    assert float(size.compute()) == pytest.approx(sets.sum(axis=1).mean(), abs=1e-7)  # with 32 bits
    assert float(coverage.compute()) == pytest.approx(hits.mean(), abs=1e-7)
