"""Latency and memory of models, measured in turns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort import evaluate
from beaufort._core.errors import OptionError
from beaufort.cli._app import app
from beaufort.data import from_arrays
from beaufort.evaluation import RunOptions, measure_costs
from beaufort.evaluation.costs import _median
from beaufort.models import ModelError, as_model
from tests.commands import shows

IMAGES = np.zeros((2, 32, 32, 3), np.uint8)
NETS = """
import time
import numpy as np

def quick():
    def predict(images):
        time.sleep(0.002)
        return images.mean(axis=(1, 2), dtype=np.float32)
    return predict

def slow():
    weights = np.ones(2**24, np.float64)  # 128 MiB
    def predict(images):
        time.sleep(0.02)
        return images.mean(axis=(1, 2), dtype=np.float32) * np.float32(weights[0])
    return predict

def failing():
    raise ValueError("no weights")
"""


@pytest.fixture(autouse=True)
def _nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "timed_nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.slow
def test_a_slow_and_large_model() -> None:
    quick, slow = measure_costs(["python:timed_nets:quick", "python:timed_nets:slow"], IMAGES, rounds=10)
    assert (quick.model, slow.model, slow.batch_size, slow.ratio.n) == ("quick", "slow", 2, 10)
    assert quick.ratio.value == quick.cpu_ratio.value == quick.memory_ratio == 1
    assert quick.seconds.value >= 0.001
    assert slow.seconds.value >= 0.01  # per image, of two
    assert slow.ratio.low > 1
    assert slow.cpu_seconds.value < 0.01  # it sleeps
    if quick.memory is not None and slow.memory is not None:  # a system with /proc
        assert slow.memory - quick.memory > 100 * 2**20


@pytest.mark.slow
def test_run_measures_after_the_evaluation(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "set.npz", images=rng.integers(0, 256, (6, 32, 32, 3), np.uint8), labels=[0, 1, 2, 0, 1, 2]
    )
    command = [
        "run",
        "--model",
        "python:timed_nets:quick",
        "--data",
        str(tmp_path / "set.npz"),
        "--corruption",
    ]
    command += [
        "fog",
        "--severity",
        "3",
        "--labels",
        "identity",
        "--store",
        str(tmp_path / "store"),
        "--time",
    ]
    found = CliRunner().invoke(app, [*command, "--json"])
    (cost,) = json.loads(found.stdout)["costs"]
    assert (cost["model"], cost["batch_size"], cost["device"]) == ("quick", 1, "cpu")
    shown = CliRunner().invoke(app, command).stdout
    assert shows(shown, "quick", "medians")
    assert "1 image at a time" in shown


def test_what_cannot_be_measured() -> None:
    with pytest.raises(ModelError, match="no weights"):
        measure_costs(["python:timed_nets:failing"], IMAGES)
    model = as_model(lambda images: images.mean(axis=(1, 2)), name="local", classes=3)
    with pytest.raises(OptionError, match="local cannot be measured"):
        evaluate(
            [model], ["fog"], from_arrays("set", IMAGES, np.array([0, 1])), options=RunOptions(time=True)
        )


def test_intervals_of_medians_cover() -> None:
    rng = np.random.default_rng(1)
    for n in (10, 100):
        draws = [_median(rng.exponential(size=n), 0.95) for _ in range(2000)]
        covered = np.mean([one.low <= np.log(2) <= one.high for one in draws])
        assert 0.94 <= covered <= 0.99
