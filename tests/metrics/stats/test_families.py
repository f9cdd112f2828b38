"""Families of differences: false alarms in any of them, power, and agreement of levels and p-values."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import studentized_range

from beaufort.metrics.stats import Family, paired_p_value, simultaneous


def all_pairs(count: int) -> NDArray[np.intp]:
    return np.array(list(combinations(range(count), 2)), np.intp)


def errors(rng: np.random.Generator, images: int, models: int, gap: float = 0.0) -> list[NDArray[np.float64]]:
    """Return errors of models on nine versions of images of partly common difficulty."""
    shared = rng.standard_normal(images)
    found = []
    for model in range(models):
        own = 1.2 * shared + 0.9 * rng.standard_normal(images) + gap * model
        found.append((rng.random((9, images)) > 1 / (1 + np.exp(-own))).mean(axis=0))
    return found


def test_independent_columns_give_tukeys_range() -> None:
    columns = list(np.random.default_rng(0).standard_normal((5, 200_000)))
    family = simultaneous(columns, all_pairs(5))
    found = 1 - family.level(0.95)
    known = studentized_range.ppf(0.95, 5, np.inf) / np.sqrt(2)
    from scipy.stats import norm

    assert found == pytest.approx(2 * norm.sf(known), rel=0.08)


def test_few_false_alarms_and_more_significant_pairs() -> None:
    rng = np.random.default_rng(2)
    repeats, models = 150, 5
    pairs = all_pairs(models)
    alarms = joint = bonferroni = 0
    for _ in range(repeats):
        for gap in (0.0, 0.2):
            columns = errors(rng, 300, models, gap)
            family = simultaneous(columns, pairs, draws=1000)
            p = np.array([paired_p_value(columns[b] - columns[a]) for a, b in pairs])
            result = p < 1 - family.level(0.95)
            if gap:
                joint += int(result.sum())
                bonferroni += int((p < 0.05 / len(pairs)).sum())
            else:
                alarms += bool(result.any())
    assert alarms <= 0.05 * repeats + 3 * np.sqrt(0.05 * repeats)
    assert joint > bonferroni


@pytest.mark.nightly
@pytest.mark.parametrize("images", [100, 1000])
def test_false_alarms_of_seven_models(images: int) -> None:
    rng = np.random.default_rng(images)
    repeats, pairs = 2000, all_pairs(7)
    alarms = 0
    for _ in range(repeats):
        columns = errors(rng, images, 7)
        family = simultaneous(columns, pairs, draws=2000)
        miss = 1 - family.level(0.95)
        alarms += any(paired_p_value(columns[b] - columns[a]) < miss for a, b in pairs)
    assert alarms <= 0.055 * repeats + 2 * np.sqrt(0.05 * repeats)


def test_between_bonferroni_and_a_single_statement() -> None:
    rng = np.random.default_rng(3)
    for images in (2, 5, 30, 300):
        columns = errors(rng, images, 4)
        family = simultaneous(columns, all_pairs(4))
        assert 0.05 / 6 - 1e-12 <= 1 - family.level(0.95) <= 0.05
    same = [columns[0]] * 3  # no difference varies: as if they were independent
    assert 1 - simultaneous(same, all_pairs(3)).level(0.95) == pytest.approx(0.018, abs=0.002)
    assert simultaneous(columns, all_pairs(2)).level(0.95) == 0.95
    assert simultaneous(columns, all_pairs(2)).adjusted(0.01) == 0.01


def test_the_same_columns_give_the_same_level() -> None:
    columns = errors(np.random.default_rng(4), 50, 3)
    first, second = (simultaneous(columns, all_pairs(3)).level(0.95) for _ in range(2))
    assert first == second


FAMILY = simultaneous(errors(np.random.default_rng(5), 200, 5), all_pairs(5))


@given(st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99, 0.9999]))
def test_adjusted_p_values_and_levels_agree(p: float, level: float) -> None:
    miss = 1 - FAMILY.level(level)
    if abs(p - miss) > 1e-9:
        assert (FAMILY.adjusted(p) < 1 - level) == (p < miss)


def test_adjusted_p_values_rise_with_the_p_value() -> None:
    adjusted = [FAMILY.adjusted(p) for p in np.geomspace(1e-12, 1, 500)]
    assert adjusted == sorted(adjusted)
    assert adjusted[0] == pytest.approx(10 * 1e-12)
    assert adjusted[-1] == 1
    assert Family(1, np.empty(0)).adjusted(0.3) == 0.3
