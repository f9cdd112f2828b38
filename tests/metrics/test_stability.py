"""Flips and distances of sequences are those of the published functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort._core.errors import OptionError
from beaufort.metrics import MetricError, MissingResultsError
from beaufort.metrics.stability import flip_probability, flips, mean_flip_rate, top5_distance, top5_distances


@pytest.mark.parametrize("case", ["k10", "k50", "k50_16", "k1000"])
@pytest.mark.parametrize("rule", ["sequence", "noise"])
@pytest.mark.parametrize("difficulty", [1, 2, 3])
def test_published_functions(shared: Path, case: str, rule: str, difficulty: int) -> None:
    """On synthetic logits, some of them tied; noise is compared with the first frame at every difficulty."""
    with np.load(shared / "golden" / "metrics_p.npz") as stored:
        order = np.argsort(-stored[f"logits/{case}"], axis=-1, kind="stable")
    wanted = json.loads((shared / "golden" / "metrics_p.json").read_text())["cases"][case]
    options: dict[str, Any] = {"against": "first"} if rule == "noise" else {"stride": difficulty}
    expected = wanted[f"{rule}/{difficulty}"]
    assert flip_probability(order[..., 0], **options) == pytest.approx(expected["flip_prob"], abs=1e-12)
    assert top5_distance(order[..., :5], **options) == pytest.approx(expected["top5"], abs=1e-12)


def test_slow_and_obvious() -> None:
    rng = np.random.default_rng(0)
    top = np.stack([[rng.permutation(9)[:5] for _ in range(7)] for _ in range(4)])
    for stride in (1, 2):
        flipped, far = flips(top[..., 0], stride=stride), top5_distances(top, stride=stride)
        for number, video in enumerate(top.tolist()):
            pairs = list(zip(video, video[stride:], strict=False))
            assert far[number] == pytest.approx(np.mean([moved(*pair) for pair in pairs]))
            assert flipped[number] == pytest.approx(np.mean([a[0] != b[0] for a, b in pairs]))


def moved(first: list[int], later: list[int]) -> int:
    """Return how far the classes of a frame move, one after the other."""
    return sum(abs(k - (later.index(c) if c in later else 5)) for k, c in enumerate(first))


def test_missing_rate_error_names_the_missing_conditions() -> None:
    with pytest.raises(MissingResultsError, match="tilt"):
        mean_flip_rate({"snow": 0.1}, {"snow": 0.1, "tilt": 0.2})
    with pytest.raises(MissingResultsError, match="at least one sequence"):
        mean_flip_rate({}, {})
    with pytest.raises(MetricError, match=r"positive, got 0\.0 for snow"):
        mean_flip_rate({"snow": 0.1}, {"snow": 0.0})


@pytest.mark.parametrize("stride", [0, 3, 1.5])
def test_wrong_strides(stride: float) -> None:
    with pytest.raises(OptionError, match="integer from 1 to 2"):
        flips([[1, 2, 3]], stride=stride)  # type: ignore[arg-type]


def test_invalid_sequence() -> None:
    with pytest.raises(MetricError, match="2 dimensions"):
        flips([1, 2, 3])
    with pytest.raises(MetricError, match="frames, 5"):
        top5_distances(np.zeros((2, 3, 4), int))
    with pytest.raises(OptionError, match="'previous' or 'first'"):
        flips([[1, 2]], against="last")  # type: ignore[arg-type]
