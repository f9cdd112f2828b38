"""The registry of metrics, and that importing it is cheap."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import beaufort.metrics as package
from beaufort._core.errors import UnknownNameError
from beaufort.metrics import metrics
from beaufort.suites import METRICS


def test_registered_names() -> None:
    assert set(METRICS) <= set(metrics)
    assert sorted(metrics) == [
        "accuracy",
        "accuracy_at_coverage",
        "aurc",
        "brier",
        "ce",
        "ece",
        "entropy",
        "error",
        "flip_probability",
        "mce",
        "mean_accuracy",
        "mean_error",
        "mfr",
        "mt5d",
        "nll",
        "relative_ce",
        "relative_mce",
        "top5_distance",
    ]
    assert metrics["relative_mce"].function is package.relative_mean_corruption_error
    assert metrics["mean_accuracy"].better == "higher"
    assert metrics["mean_accuracy"].title == "Mean accuracy"
    with pytest.raises(UnknownNameError, match="did you mean 'mce'"):
        metrics["mcee"]


@pytest.mark.parametrize("name", metrics)
def test_each_has_a_description(name: str) -> None:
    metric = metrics[name]
    assert metric.name == name
    assert metric.summary.endswith(".")
    assert ">>>" in (metric.function.__doc__ or "")
    assert metric.function.__name__ in package.__all__


def test_importing_is_cheap() -> None:
    probe = "import json, sys, beaufort.metrics; print(json.dumps(sorted(sys.modules)))"
    child = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(child.stdout)}
    assert not {"torch", "scipy", "pyarrow", "numba", "cv2", "yaml"} & loaded
    assert "beaufort.metrics.torch" not in json.loads(child.stdout)
