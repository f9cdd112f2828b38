"""Intervals and tests against SciPy, statsmodels and slow, obvious versions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, t
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.multitest import multipletests

from beaufort.errors import OptionError
from beaufort.stats import (
    Estimate,
    binomial_cdf,
    bootstrap_means,
    clopper_pearson,
    holm,
    interval,
    looks,
    mcnemar,
    paired_p_value,
    rank,
    seen_enough,
)
from beaufort.stats.bootstrap import _t_quantile

COUNTS = st.integers(1, 60_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS, st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_clopper_pearson_as_scipy(counts: tuple[int, int], level: float) -> None:
    hits, n = counts
    ours = clopper_pearson(hits, n, level)
    theirs = binomtest(hits, n).proportion_ci(level, method="exact")
    assert ours.value == hits / n
    assert ours.n == n
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-10)


@given(COUNTS, st.floats(0, 1))
def test_binomial_cdf_as_scipy(counts: tuple[int, int], p: float) -> None:
    k, n = counts
    assert binomial_cdf(k, n, p) == pytest.approx(float(binom.cdf(k, n, p)), abs=1e-9)


@pytest.mark.parametrize(("hits", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_counts_that_cannot_be(hits: int, n: int) -> None:
    with pytest.raises(OptionError, match=f"{hits} of {n} came"):
        clopper_pearson(hits, n)


@pytest.mark.parametrize("level", [0, 1, 95, -0.1])
def test_a_level_that_cannot_be(level: float) -> None:
    with pytest.raises(OptionError, match=r"such as 0\.95"):
        clopper_pearson(1, 2, level)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_as_statsmodels(only_first: int, only_second: int) -> None:
    table = [[0, only_first], [only_second, 0]]
    theirs = their_mcnemar(table, exact=True).pvalue if only_first + only_second else 1
    assert mcnemar(only_first, only_second) == pytest.approx(theirs, rel=1e-9, abs=1e-300)


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=90))
def test_holm_as_statsmodels(p: list[float]) -> None:
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_p_values_that_are_none() -> None:
    with pytest.raises(OptionError, match="from 0 to 1"):
        holm([0.5, 1.5])


@pytest.mark.parametrize("degrees", [1, 2, 3, 5, 10, 19, 100, 10_000])
def test_t_quantile_as_scipy(degrees: int) -> None:
    assert _t_quantile(0.025, degrees) == pytest.approx(float(t.ppf(0.025, degrees)), rel=0.02)


def test_resampled_means_spread_as_they_should() -> None:
    """Their covariance is that of the values over the number of images."""
    values = np.random.default_rng(1).random((300, 4)) ** 2
    drawn = bootstrap_means(values, resamples=20_000)
    assert drawn.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=6e-4)
    assert np.cov(drawn.T) == pytest.approx(np.cov(values.T, bias=True) / 300, abs=1e-5)


@pytest.mark.parametrize("count", [1, 2, 7, 20, 101])
def test_every_resample_draws_as_many_images(count: int) -> None:
    ones = bootstrap_means(np.ones((count, 1)), resamples=50)
    assert ones == pytest.approx(1)
    each = bootstrap_means(np.eye(count), resamples=4000) * count
    assert each.sum(axis=1) == pytest.approx(count)
    assert each.mean(axis=0) == pytest.approx(1, abs=0.12)  # no image is favored


def test_resamples_depend_on_the_seed_and_their_number_alone() -> None:
    values = np.arange(50.0)[:, None]
    long = bootstrap_means(values, resamples=40, seed=3)
    assert np.array_equal(long[:10], bootstrap_means(values, resamples=10, seed=3))
    assert not np.array_equal(long, bootstrap_means(values, resamples=40, seed=4))
    both = bootstrap_means(np.hstack([values, 2 * values]), resamples=40, seed=3)
    assert both[:, 1] == pytest.approx(2 * long[:, 0])  # columns share their draws


def test_few_images_widen_the_interval() -> None:
    drawn = np.linspace(0, 1, 10_001)
    narrow, wide = interval(0.5, drawn, 10_000), interval(0.5, drawn, 10)
    assert wide.low < narrow.low
    assert wide.high > narrow.high


@pytest.mark.parametrize("bad", [np.zeros((0, 3)), np.zeros((2, 3, 4))])
def test_values_of_no_images(bad: np.ndarray) -> None:
    with pytest.raises(OptionError, match="one row an image"):
        bootstrap_means(bad)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True])
def test_resamples_that_cannot_be(bad: object) -> None:
    with pytest.raises(OptionError, match="resamples"):
        bootstrap_means(np.ones((3, 1)), resamples=bad)  # type: ignore[arg-type]


def test_an_estimate_reads_well() -> None:
    one = Estimate(0.7671, 0.75, 0.78, 1000)
    assert f"{one:.2f}" == "0.77 [0.75, 0.78]"
    assert one.half_width == pytest.approx(0.015)


def test_ranking_with_ties() -> None:
    """Two models that take turns share a letter; one far behind has a place of its own."""
    rng = np.random.default_rng(0)
    near = rng.normal(0.3, 0.01, 2000)
    drawn = np.stack([near + rng.normal(0, 0.01, 2000), near, near + 0.2])
    ranked = rank(["a", "b", "c"], [0.301, 0.3, 0.5], drawn, 1000)
    assert [(one.name, one.best, one.worst, one.groups) for one in ranked] == [
        ("b", 1, 2, ("a",)),
        ("a", 1, 2, ("a",)),
        ("c", 3, 3, ("b",)),
    ]
    highest = rank(["a", "b", "c"], [0.301, 0.3, 0.5], drawn, 1000, better="higher")
    assert [one.name for one in highest] == ["c", "a", "b"]


def test_a_chain_of_ties_has_two_letters() -> None:
    """First and last are told apart, the middle one from neither."""
    rng = np.random.default_rng(0)
    drawn = np.stack([rng.normal(center, 0.05, 5000) for center in (0.0, 0.12, 0.24)])
    letters = [one.groups for one in rank("abc", [0.0, 0.12, 0.24], drawn, 1000)]
    assert letters == [("a",), ("a", "b"), ("b",)]


def test_tie_groups_follow_from_statsmodels() -> None:
    rng = np.random.default_rng(5)
    drawn = np.cumsum(rng.normal(0, 1, (6, 1)), axis=0) + rng.normal(0, 0.4, (6, 999))
    means = drawn.mean(axis=1)
    ranked = rank([str(i) for i in range(6)], means.tolist(), drawn, 500)
    order = [int(one.name) for one in ranked]
    pairs = [(a, b) for a in range(6) for b in range(a + 1, 6)]
    raw = [
        2 * t.sf(abs(means[order[a]] - means[order[b]]) / np.std(drawn[order[a]] - drawn[order[b]]), 499)
        for a, b in pairs
    ]
    apart = multipletests(raw, alpha=0.05, method="holm")[0]
    for (a, b), told in zip(pairs, apart, strict=True):
        if told:
            assert not set(ranked[a].groups) & set(ranked[b].groups)
    assert sum(one.best == one.worst for one in ranked) < 6  # some are tied: the check above is not empty


@given(st.floats(-0.2, 0.2), st.floats(1e-4, 0.1), st.integers(2, 60_000))
def test_paired_p_value_as_scipy(difference: float, spread: float, n: int) -> None:
    theirs = 2 * float(t.sf(abs(difference) / spread, n - 1))
    assert paired_p_value(difference, spread, n) == pytest.approx(theirs, rel=1e-6, abs=1e-12)


def test_many_models_can_still_be_told_apart() -> None:
    """A hundred models make 4,950 pairs; differences of many standard errors survive the correction."""
    rng = np.random.default_rng(0)
    values = np.linspace(0.5, 0.9, 100)
    drawn = values[:, None] + rng.normal(0, 0.002, (100, 1000))
    ranked = rank([f"{i:03}" for i in range(100)], values.tolist(), drawn, 1000)
    assert ranked[0].best == 1
    assert ranked[0].worst < 10
    assert ranked[-1].best > 90


def test_looks() -> None:
    assert list(looks(10)) == [10]
    assert list(looks(500)) == [500]
    for count in (501, 10_000, 50_000):
        at = list(looks(count))
        assert at[0] == 500
        assert at[-1] == count
        assert all(a < b <= 1.26 * a for a, b in itertools.pairwise(at))


def test_seen_enough_takes_both_kinds() -> None:
    assert not seen_enough([1.0] * 500)
    assert not seen_enough([0.0] * 401 + [1.0] * 99)
    assert seen_enough([0.0] * 100 + [1.0] * 100)
