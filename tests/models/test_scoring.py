"""Scores of logits: equal on the host and on a device, also for ties, masks and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort.evaluation import predictions
from beaufort.models.scoring import (
    PredictionScores,
    correct,
    join_scores,
    score_logits,
    score_tensor,
    unpack_scores,
)
from beaufort.store import PredictionsError

KINDS = ("plain", "ties", "masked", "mistakes", "probabilities")
CLASSES = (1, 2, 3, 10, 1000)


def logits(kind: str, classes: int, rows: int = 40) -> np.ndarray:
    rng = np.random.default_rng(classes)
    values = rng.normal(0, 3, (rows, classes)).astype(np.float32)
    if kind == "ties":
        signs = rng.choice(np.array([-1, 1], np.float32), (rows, classes))
        values = np.round(values / 2) * 2 * signs  # with -0, too
    if kind == "masked":
        values[rng.random((rows, classes)) < 0.9] = -np.inf
        values[:, 0] = rng.normal(0, 1, rows)
    if kind == "mistakes":
        values[3, 0], values[5, -1], values[6] = np.nan, np.inf, -np.inf
    if kind == "probabilities":
        values = np.exp(values)
        values /= values.sum(axis=1, keepdims=True)
    return values


def obvious(values: np.ndarray, label: int) -> dict[str, Any]:
    """One row, by the definitions."""
    wide = values.astype(np.float64)
    p = np.exp(wide - wide.max())
    p /= p.sum()
    order = sorted(range(len(values)), key=lambda k: (-values[k], k))[:5]
    known = 0 <= label < len(values)
    p_label = p[label] if known else 0.0
    expected = np.arange(len(values)) == label
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    with np.errstate(divide="ignore"):
        nll = -np.log(p_label)
    brier = float(((p - expected) ** 2).sum()) + (not known)
    return {
        "top": order,
        "p": p[order],
        "p_label": p_label,
        "nll": nll,
        "brier": brier,
        "entropy": -(p * logs).sum(),
    }


@pytest.mark.parametrize("kind", ["plain", "ties", "masked", "probabilities"])
@pytest.mark.parametrize("classes", CLASSES)
def test_by_the_definitions(kind: str, classes: int) -> None:
    values = logits(kind, classes)
    labels = np.random.default_rng(0).integers(-1, classes + 1, len(values))
    found = score_logits(values, labels)
    assert found.usable.all()
    for row, (line, label) in enumerate(zip(values, labels, strict=True)):
        for name, wanted in obvious(line, int(label)).items():
            got = getattr(found, name)[row]
            assert (
                np.array_equal(got, wanted)
                if name == "top"
                else np.allclose(got, wanted, rtol=1e-5, atol=1e-6)
            )


def test_detection_of_probabilities() -> None:
    for kind in KINDS:
        fractions = score_logits(logits(kind, 10), np.zeros(40, np.int64)).are_probabilities
        assert fractions.all() == (kind == "probabilities")


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def same(host: PredictionScores, device: PredictionScores) -> None:
    assert np.array_equal(host.usable, device.usable)
    rows = host.usable  # of the others, nothing is said
    assert np.array_equal(host.top[rows], device.top[rows])
    assert np.array_equal(host.are_probabilities[rows], device.are_probabilities[rows])
    for name in ("p", "p_label", "nll", "brier", "entropy"):
        assert np.allclose(getattr(host, name)[rows], getattr(device, name)[rows], rtol=3e-7, atol=1e-7)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", CLASSES)
def test_a_device_agrees_with_the_host(kind: str, classes: int, device: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA")
    values = logits(kind, classes)
    labels = np.random.default_rng(0).integers(-1, classes + 1, len(values))
    packed = score_tensor(torch.from_numpy(values).to(device), torch.from_numpy(labels).to(device))
    same(score_logits(values, labels), unpack_scores(packed.cpu().numpy()))


INTERPRETED = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import numpy as np, torch
import test_scoring as t
for kind in t.KINDS:
    for classes in (1, 3, 10, 100):
        values = t.logits(kind, classes, 8)
        labels = np.random.default_rng(0).integers(-1, classes + 1, 8)
        packed = t.score_tensor(torch.from_numpy(values), torch.from_numpy(labels))
        t.same(t.score_logits(values, labels), t.unpack_scores(packed.numpy()))
"""


def test_the_kernel_in_an_interpreter_agrees() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    environment = os.environ | {"TRITON_INTERPRET": "1", "BEAUFORT_KERNELS": "1"}
    command = [sys.executable, "-c", INTERPRETED, str(Path(__file__).parent)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr


@given(st.integers(1, 30), st.integers(1, 9), st.integers(0, 2**32))
def test_correct_is_what_the_best_classes_say(rows: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, labels = rng.integers(0, 4, (rows, classes)).astype(np.float32), rng.integers(0, classes, rows)
    top = score_logits(values, labels).top
    assert np.array_equal(correct(top, labels), values.argmax(axis=1) == labels)
    order = np.argsort(-values, axis=1, kind="stable")[:, :5]
    assert np.array_equal(
        correct(top, labels, among=5), [y in row for y, row in zip(labels, order, strict=True)]
    )
    assert np.array_equal(correct(np.stack([top, top]), labels), [correct(top, labels)] * 2)


def test_batches_add_up() -> None:
    values, labels = logits("plain", 10), np.zeros(40, np.int64)
    parts = [score_logits(values[:7], labels[:7]), score_logits(values[7:], labels[7:])]
    for whole, joined in zip(score_logits(values, labels), join_scores(parts), strict=True):
        assert np.array_equal(whole, joined)


def test_masked_classes_are_accepted_and_mistakes_are_not() -> None:
    table = predictions(["a"], [0], np.array([[-np.inf, 2.0, -np.inf, 1.0]]))
    assert table["top"].to_pylist() == [[1, 3, 0, 2]]
    assert table["p_label"].to_pylist() == [0.0]
    assert table["nll"].to_pylist() == [np.inf]
    assert np.isfinite(table["entropy"].to_numpy()).all()
    for bad in ([np.nan, 1.0], [np.inf, 1.0], [-np.inf, -np.inf]):
        with pytest.raises(PredictionsError, match=r"finite.* first .*\bb\b"):
            predictions(["a", "b"], [0, 1], np.array([[0.0, 1.0], bad]))
