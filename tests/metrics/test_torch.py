"""The torch metrics compared with the functions, in batches, on two processes, and with torchmetrics."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaufort import metrics
from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.optional import prepare_torchvision
from beaufort.metrics import MetricError, MissingResultsError, get_baseline

torch = pytest.importorskip("torch")
classes = pytest.importorskip("beaufort.metrics.torch")

MAKERS: dict[str, Callable[[], Any]] = {
    "accuracy": classes.Accuracy,
    "top 3": lambda: classes.Accuracy(3),
    "calibration": lambda: classes.CalibrationError(10),
    "brier": classes.BrierScore,
    "nll": classes.NegativeLogLikelihood,
    "entropy": classes.Entropy,
}


def batch(n: int = 40, seed: int = 0) -> tuple[Any, Any]:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(n, 6, generator=random) * 2, torch.randint(0, 6, (n,), generator=random)


def by_function(name: str, logits: Any, labels: Any) -> float:
    wide = logits.double().numpy()
    p = np.exp(wide - wide.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    top = np.argsort(-wide, axis=1, kind="stable")
    expected = labels.numpy()
    predicted: dict[str, Callable[[], float]] = {
        "accuracy": lambda: metrics.accuracy(expected, top),
        "top 3": lambda: metrics.accuracy(expected, top, k=3),
        "calibration": lambda: metrics.expected_calibration_error(p.max(axis=1), top[:, 0] == expected, 10),
        "brier": lambda: metrics.brier_score(p, expected),
        "nll": lambda: metrics.negative_log_likelihood(p, expected),
        "entropy": lambda: metrics.entropy(p),
    }
    return predicted[name]()


@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=20)
@given(seed=st.integers(0, 1000), cut=st.integers(0, 40))
def test_batches_add_up_to_the_function(kind: str, seed: int, cut: int) -> None:
    logits, labels = batch(seed=seed)
    metric, other = MAKERS[kind](), MAKERS[kind]()
    metric.update(logits[:cut], labels[:cut])
    other.update(logits[cut:], labels[cut:])
    metric.merge_state(other)
    expected = by_function(kind, logits, labels)
    assert float(metric.compute()) == pytest.approx(expected, abs=1e-12)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(seed))
    metric.reset()
    metric.update(logits[order], labels[order])
    assert float(metric.compute()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_shape_of_life(kind: str) -> None:
    logits, labels = batch()
    metric = MAKERS[kind]()
    with pytest.raises(MissingResultsError, match="has no images"):
        metric.compute()
    with torch.inference_mode():
        metric.update(logits.half().bfloat16(), labels)
    metric.update(logits.requires_grad_(), labels.int())
    value = metric.compute()
    assert value.shape == ()
    assert not value.requires_grad
    assert metric.to("cpu") is metric
    assert metric.device == torch.device("cpu")
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert twin.compute() == value
    metric.reset()
    with pytest.raises(MissingResultsError):
        metric.compute()


def test_ties_are_broken_as_in_the_store() -> None:
    metric = classes.Accuracy(2)
    metric.update(torch.zeros(3, 3), torch.tensor([0, 1, 2]))
    assert float(metric.compute()) == pytest.approx(2 / 3)


def fill(metric: Any, *, start: int = 0, step: int = 1) -> None:
    """Show batches of all conditions of the metric, or every `step`-th of them."""
    conditions = [(None, None), *((name, level) for name in metric._theirs for level in metric._levels)]
    for seed in range(start, len(conditions), step):
        logits, labels = batch(20 + seed % 3, seed)
        metric.update(logits, labels, *conditions[seed])


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("name", ["alexnet", "alexnet-paper", "conv1"])
def test_mean_corruption_error(name: str, relative: bool) -> None:
    metric = classes.MeanCorruptionError(name, relative=relative)
    fill(metric)
    baseline = get_baseline(name)
    levels: Any = [None] if name == "conv1" else [1, 2, 3, 4, 5]
    errors: dict[str, Any] = {}
    seed = 0

    def one() -> float:
        logits, labels = batch(20 + seed % 3, seed)
        return 1 - by_function("accuracy", logits, labels)

    clean = one()
    for corruption in baseline.benchmark:
        errors[corruption] = []
        for _ in levels:
            seed += 1
            errors[corruption].append(one())
    theirs = baseline.select(baseline.benchmark, None if name == "conv1" else levels)
    assert baseline.clean is not None
    expected = (
        metrics.relative_mean_corruption_error(errors, clean, theirs, baseline.clean)
        if relative
        else metrics.mean_corruption_error(errors, theirs)
    )
    assert float(metric.compute()) == pytest.approx(expected, rel=1e-12)


def test_missing_conditions_are_named() -> None:
    metric = classes.MeanCorruptionError(corruptions=["fog", "snow"], severities=[1, 2], relative=True)
    metric.update(*batch(), "fog", 2)
    with pytest.raises(MissingResultsError, match=r"fog@1.*snow@1.*snow@2"):
        metric.compute()
    with pytest.raises(MissingResultsError, match="and 67 more"):
        classes.MeanCorruptionError().compute()


def small() -> Any:
    return classes.MeanCorruptionError(corruptions=["fog"], severities=[1])


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: classes.Accuracy(0), OptionError, r"k .*positive integer.* 0"),
        (lambda: classes.Accuracy(7).update(*batch()), MetricError, "k must be at most 6"),
        (lambda: classes.CalibrationError(0), OptionError, r"bins .*positive integer.* 0"),
        (lambda: classes.Accuracy().update(torch.zeros(3), torch.zeros(3).long()), MetricError, "shape"),
        (lambda: classes.Accuracy().update(torch.zeros(3, 2), torch.zeros(3)), MetricError, "float32"),
        (
            lambda: classes.Accuracy().update(torch.zeros(3, 2), torch.zeros(2).long()),
            MetricError,
            r"integers of shape \(3,\)",
        ),
        (lambda: classes.Entropy().update(torch.full((1, 2), torch.nan)), MetricError, "must be finite"),
        (lambda: classes.BrierScore().update(torch.zeros(1, 2), torch.tensor([2])), MetricError, "0 to 1"),
        (lambda: classes.Accuracy(1).merge_state(classes.Accuracy(2)), MetricError, r"got Accuracy\(2\)"),
        (lambda: classes.BrierScore().merge_state(classes.Entropy()), MetricError, "same class and settings"),
        (lambda: small().update(*batch(), "fig", 1), UnknownNameError, "did you mean 'fog'"),
        (lambda: small().update(*batch(), "fog", 2), OptionError, "got 2 under fog"),
        (lambda: small().update(*batch(), None, 2), OptionError, "requires a corruption"),
        (
            lambda: classes.MeanCorruptionError(
                metrics.Baseline(name="mine", errors={"fog": (0.5,)}, severities=(1,)), relative=True
            ),
            MissingResultsError,
            "no clean error",
        ),
    ],
)
def test_rejections(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


WORKER = """
import json, sys
import torch
from torch import distributed
from beaufort.metrics.torch import *

rank, meeting = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
random = torch.Generator().manual_seed(0)
logits = torch.randn(50, 6, generator=random) * 2
labels = torch.randint(0, 6, (50,), generator=random)
mine = slice(0, 17) if rank == 0 else slice(17, 50)  # not even

values = {}
for metric in (Accuracy(), Accuracy(3), CalibrationError(), BrierScore(), NegativeLogLikelihood(), Entropy()):
    metric.update(logits[mine], labels[mine])
    values[repr(metric)] = float(metric.compute())
    assert float(metric.compute()) == values[repr(metric)]  # adding up leaves each process its own sums
    assert float(metric.compute(sync=False)) != values[repr(metric)]
    metric.update(logits[:0], labels[:0])
metric = MeanCorruptionError(corruptions=["fog", "snow"], severities=[1, 5], relative=True)
for number, condition in enumerate([(None, None), ("fog", 1), ("fog", 5), ("snow", 1), ("snow", 5)]):
    if number % 2 == rank:  # no process sees all conditions
        metric.update(logits[number:], labels[number:], *condition)
values[repr(metric)] = float(metric.compute())
distributed.destroy_process_group()
print(json.dumps(values))
"""


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path: Path) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("torch was built without gloo")
    command = [sys.executable, "-c", WORKER]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    workers = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "meeting")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        ends = [worker.communicate(timeout=900) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0], ends
    first, second = (json.loads(out.splitlines()[-1]) for out, _ in ends)
    assert first == second

    random = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 6, generator=random) * 2
    labels = torch.randint(0, 6, (50,), generator=random)
    alone = [
        classes.Accuracy(),
        classes.Accuracy(3),
        classes.CalibrationError(),
        classes.BrierScore(),
        classes.NegativeLogLikelihood(),
        classes.Entropy(),
    ]
    for metric in alone:
        metric.update(logits, labels)
    mce = classes.MeanCorruptionError(corruptions=["fog", "snow"], severities=[1, 5], relative=True)
    conditions = [(None, None), ("fog", 1), ("fog", 5), ("snow", 1), ("snow", 5)]
    for number, condition in enumerate(conditions):
        mce.update(logits[number:], labels[number:], *condition)
    assert first == pytest.approx(
        {repr(metric): float(metric.compute()) for metric in [*alone, mce]}, rel=1e-12
    )


@pytest.mark.filterwarnings("ignore")
def test_beside_torchmetrics() -> None:
    prepare_torchvision()  # torchmetrics imports it
    peers = pytest.importorskip("torchmetrics.classification")
    logits, labels = batch(500)
    for ours, theirs in (
        (classes.Accuracy(), peers.MulticlassAccuracy(6, average="micro")),
        (classes.Accuracy(3), peers.MulticlassAccuracy(6, top_k=3, average="micro")),
        (classes.CalibrationError(15), peers.MulticlassCalibrationError(6, n_bins=15)),
    ):
        ours.update(logits, labels)
        theirs.update(logits, labels)
        assert float(ours.compute()) == pytest.approx(float(theirs.compute()), abs=1e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("kind", MAKERS)
def test_on_a_gpu(kind: str) -> None:
    logits, labels = batch()
    for home in ("cpu", "cuda"):
        metric = MAKERS[kind]().to(home)
        metric.update(logits.cuda(), labels.cuda())
        metric.update(logits, labels)
        value = metric.compute()
        assert value.device.type == home
        assert float(value) == pytest.approx(by_function(kind, logits, labels), rel=1e-12)


def test_the_error_without_torch(tmp_path: Path) -> None:
    probe = "import sys; sys.modules['torch'] = None\nimport beaufort.metrics.torch"
    child = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert "pip install 'beaufort[torch]'" in child.stderr
