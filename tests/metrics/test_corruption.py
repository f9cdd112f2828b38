"""Errors under corruptions against slow, obvious versions; rejected inputs."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaufort.metrics import (
    MetricError,
    MissingResultsError,
    corruption_error,
    mean_accuracy,
    mean_corruption_error,
    mean_error,
    relative_corruption_error,
    relative_mean_corruption_error,
)

NAMES = ("fog", "snow", "frost")
CLEAN = 0.1
BASE_CLEAN = 0.2


def slow_ce(errors: list[float], baseline: list[float]) -> float:
    return sum(errors) / sum(baseline)


def slow_relative_ce(errors: list[float], clean: float, baseline: list[float], base_clean: float) -> float:
    return sum(e - clean for e in errors) / sum(b - base_clean for b in baseline)


def slow_mean(rows: dict[str, list[float]]) -> float:
    return fmean(fmean(row) for row in rows.values())


def tables(low: float) -> st.SearchStrategy[dict[str, list[float]]]:
    fraction = st.floats(low, 1)
    return st.integers(1, 5).flatmap(
        lambda levels: st.fixed_dictionaries(
            {name: st.lists(fraction, min_size=levels, max_size=levels) for name in NAMES}
        )
    )


@given(st.data())
def test_against_the_slow_version(data: st.DataObject) -> None:
    errors = data.draw(tables(0))
    levels = len(errors["fog"])
    baseline = {
        name: data.draw(st.lists(st.floats(0.3, 1), min_size=levels, max_size=levels)) for name in NAMES
    }
    assert mean_corruption_error(errors, baseline) == pytest.approx(
        fmean(slow_ce(errors[name], baseline[name]) for name in NAMES)
    )
    assert relative_mean_corruption_error(errors, CLEAN, baseline, BASE_CLEAN) == pytest.approx(
        fmean(slow_relative_ce(errors[name], CLEAN, baseline[name], BASE_CLEAN) for name in NAMES), abs=1e-12
    )
    assert mean_error(errors) == pytest.approx(slow_mean(errors))
    assert mean_accuracy(errors) == pytest.approx(slow_mean(errors))
    assert corruption_error(errors["fog"], baseline["fog"]) == pytest.approx(
        slow_ce(errors["fog"], baseline["fog"])
    )


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from([(4,), (2, 3)]))
def test_leading_axes_equal_a_loop(levels: int, seed: int, axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    errors = {name: rng.random((*axes, levels)) for name in NAMES}
    clean = rng.random(axes)
    fixed = {name: rng.uniform(0.5, 1, levels) for name in NAMES}
    resampled = {name: rng.uniform(0.5, 1, (*axes, levels)) for name in NAMES}
    base_clean = rng.uniform(0, 0.4, axes)

    def at(table: dict[str, Any], index: tuple[int, ...]) -> dict[str, Any]:
        return {name: values[index] if values.ndim > 1 else values for name, values in table.items()}

    calls: list[tuple[Any, Callable[[tuple[int, ...]], float]]] = [
        (mean_corruption_error(errors, fixed), lambda i: mean_corruption_error(at(errors, i), fixed)),
        (
            mean_corruption_error(errors, resampled),
            lambda i: mean_corruption_error(at(errors, i), at(resampled, i)),
        ),
        (
            relative_mean_corruption_error(errors, clean, resampled, base_clean),
            lambda i: relative_mean_corruption_error(
                at(errors, i), clean[i], at(resampled, i), base_clean[i]
            ),
        ),
        (mean_accuracy(errors), lambda i: mean_accuracy(at(errors, i))),
        (mean_error({**errors, "clean": 0.5}), lambda i: mean_error({**at(errors, i), "clean": 0.5})),
        (corruption_error(errors["fog"], 0.5), lambda i: corruption_error(errors["fog"][i], 0.5)),
        (
            relative_corruption_error(errors["fog"], clean, fixed["fog"], 0.1),
            lambda i: relative_corruption_error(errors["fog"][i], clean[i], fixed["fog"], 0.1),
        ),
    ]
    for whole, one in calls:
        assert whole.shape == axes
        for index in np.ndindex(*axes):
            assert isinstance(one(index), float)
            assert whole[index] == pytest.approx(one(index), abs=1e-12)


def test_dividing_by_severity_is_something_else() -> None:
    errors, baseline = (0.1, 0.9), (0.2, 1.0)
    assert corruption_error(errors, baseline) == pytest.approx(1.0 / 1.2)
    assert corruption_error(errors, baseline) != pytest.approx((0.1 / 0.2 + 0.9 / 1.0) / 2)


def test_baseline_defines_the_corruptions() -> None:
    errors = {"fog": (0.5,), "snow": (0.9,)}
    assert mean_corruption_error(errors, {"fog": (1.0,)}) == 0.5


def test_a_number_is_an_average() -> None:
    assert corruption_error((0.2, 0.4), 0.6) == pytest.approx(corruption_error((0.2, 0.4), (0.5, 0.7)))
    assert relative_corruption_error((0.2, 0.4), 0.1, 0.6, 0.2) == pytest.approx(0.5)
    assert mean_accuracy({"clean": 1.0, "fog": [0.5]}) == 0.75


ONE = {"fog": (0.5, 0.6)}


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: mean_corruption_error({}, ONE), MissingResultsError, "under fog"),
        (lambda: mean_corruption_error(ONE, {}), MissingResultsError, "at least one corruption"),
        (lambda: relative_mean_corruption_error({}, 0.1, ONE, 0.1), MissingResultsError, "under fog"),
        (lambda: mean_accuracy({}), MissingResultsError, "at least one row"),
        (lambda: mean_error({}), MissingResultsError, "at least one row"),
        (lambda: mean_error({"fog": ()}), MissingResultsError, r"fog .*empty"),
        (lambda: mean_error({"fog": (0.1, np.nan)}), MetricError, "must not contain NaN, got 1 in 2"),
        (lambda: mean_error({"fog": (10.0, 50.0)}), MetricError, "divide percent by 100"),
        (lambda: mean_error({"fog": (-0.5, 0.5)}), MetricError, "from -0.5 to 0.5"),
        (lambda: mean_corruption_error(ONE, {"fog": (0.0, 0.0)}), MetricError, "baseline under fog.* is 0"),
        (lambda: mean_corruption_error(ONE, {"fog": (0.5,)}), MetricError, "2 severities .* baseline has 1"),
        (
            lambda: corruption_error((0.5,), [[0.0], [0.5]]),
            MetricError,
            "in 1 of 2 resamples",
        ),
        (
            lambda: relative_mean_corruption_error(ONE, 0.1, {"fog": (0.2, 0.2)}, 0.2),
            MetricError,
            "not higher than on clean images",
        ),
        (
            lambda: relative_corruption_error((0.5,), np.nan, (0.5,), 0.1),
            MetricError,
            "the clean error must not contain NaN",
        ),
        (lambda: mean_error({"a": np.ones((2, 1)), "b": np.ones((3, 1))}), ValueError, "shape"),
        (lambda: corruption_error(np.ones((2, 1)), np.ones((3, 1))), ValueError, "shape"),
        (
            lambda: relative_corruption_error(np.ones((2, 1)), np.ones(3), (1.0,), 0.1),
            ValueError,
            "shape",
        ),
    ],
)
def test_rejections(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
