"""The published baselines and their properties."""

from __future__ import annotations

import copy
import csv
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.metrics import (
    BASELINE_NAMES,
    Baseline,
    MetricError,
    MissingResultsError,
    get_baseline,
    mean_corruption_error,
    relative_mean_corruption_error,
)
from beaufort.suites import SUITE_NAMES, get_suite

EXTRAS = ("speckle_noise", "gaussian_blur", "spatter", "saturate")


@pytest.mark.parametrize("name", BASELINE_NAMES)
def test_a_baseline_is_as_good_as_itself(name: str) -> None:
    baseline = get_baseline(name)
    levels = baseline.severities or (1, 2, 3, 4, 5)
    errors = baseline.select(baseline.benchmark, levels)
    assert len(baseline.benchmark) == 15
    assert baseline.clean is not None
    assert mean_corruption_error(errors, errors) == pytest.approx(1)
    assert relative_mean_corruption_error(errors, baseline.clean, errors, baseline.clean) == pytest.approx(1)
    assert baseline.title
    assert "arXiv" in baseline.source
    assert copy.deepcopy(baseline) == pickle.loads(pickle.dumps(baseline)) == baseline


@pytest.mark.parametrize("name", SUITE_NAMES)
def test_suites_find_what_they_need(name: str) -> None:
    suite = get_suite(name)
    if suite.baseline is None:
        return
    baseline = get_baseline(suite.baseline)
    errors = baseline.select(suite.corruptions, suite.severities)
    assert tuple(errors) == suite.corruptions
    assert baseline.clean is not None


def test_properties_of_baselines() -> None:
    alexnet, paper, conv1 = map(get_baseline, BASELINE_NAMES)
    assert alexnet.severities == (1, 2, 3, 4, 5)
    assert alexnet.averaged == set(EXTRAS)
    assert paper.severities is None
    assert paper.averaged == set(paper.errors) == set(alexnet.errors)
    assert conv1.severities == "published"
    assert alexnet.benchmark == paper.benchmark
    # Half a unit of the printed decimal; JPEG's 0.6065 lies on the edge.
    for name in alexnet.errors:
        assert abs(np.mean(alexnet.errors[name]) - paper.errors[name][0]) <= 0.0005 + 1e-12


def test_as_in_the_reference(shared: Path) -> None:
    with (shared / "reference/tables/alexnet_errors.csv").open() as file:
        rows = {row["corruption"]: row for row in csv.DictReader(file)}
    alexnet, paper = get_baseline("alexnet"), get_baseline("alexnet-paper")
    clean = rows.pop("clean")
    assert alexnet.clean == paper.clean == float(clean["paper_v1_avg_error_percent"]) / 100
    assert list(rows) == list(alexnet.errors) == list(paper.errors)
    for name, row in rows.items():
        assert paper.errors[name] == pytest.approx((float(row["paper_v1_avg_error_percent"]) / 100,))
        if name in EXTRAS:
            assert alexnet.errors[name] == paper.errors[name]
        else:
            assert alexnet.errors[name] == tuple(float(row[f"s{level}"]) for level in range(1, 6))
            assert round(float(np.mean(alexnet.errors[name])), 6) == float(row["later_avg_error"])


def test_select() -> None:
    alexnet = get_baseline("alexnet")
    assert alexnet.select(["fog"], [5, 1]) == {"fog": (0.945, 0.67474)}
    assert alexnet.select(["saturate", "fog"], (1, 2, 3, 4, 5))["saturate"] == 0.658
    assert get_baseline("conv1").select(["fog"], "published") == {"fog": (0.0832,)}
    assert get_baseline("conv1").select(["fog"], None) == {"fog": (0.0832,)}


def test_one_of_your_own() -> None:
    own = Baseline(name="mine", errors={"fog": (0.2, 0.4)}, severities=(1, 5))
    assert own.benchmark == ("fog",)
    assert own.select(["fog"], [5]) == {"fog": (0.4,)}
    assert Baseline(name="mine", errors={"fog": (0.2,)}, severities=None).averaged == {"fog"}


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: get_baseline("alexnett"), UnknownNameError, "did you mean 'alexnet'"),
        (
            lambda: get_baseline("alexnet").select(["rain"], [1]),
            MissingResultsError,
            "no error under rain, .* gaussian_noise",
        ),
        (
            lambda: get_baseline("alexnet").select(["saturate"], [1, 2]),
            MissingResultsError,
            "under saturate, got 1, 2",
        ),
        (
            lambda: get_baseline("alexnet").select(["fog"], "published"),
            MissingResultsError,
            "1, 2, 3, 4, 5 under fog, got published",
        ),
        (
            lambda: get_baseline("conv1").select(["fog"], [1]),
            MissingResultsError,
            "published under fog, got 1",
        ),
        (lambda: get_baseline("alexnet").select(["fog"], [6]), OptionError, r"got \[6\]"),
        (lambda: get_baseline("alexnet").select(["fog"], []), OptionError, r"got \[\]"),
        (lambda: get_baseline("alexnet").select(["fog"], [1, 1]), OptionError, "distinct integers"),
        (
            lambda: Baseline(name="mine", errors={"fog": (0.1, 0.2)}, severities=(1,)),
            MetricError,
            "must have 1 errors under fog .*, got 2",
        ),
        (
            lambda: Baseline(name="mine", errors={"fog": (12.0,)}, severities=(1,)),
            MetricError,
            "divide percent by 100",
        ),
    ],
)
def test_rejections(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
