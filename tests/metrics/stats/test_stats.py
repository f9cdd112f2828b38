"""Intervals and tests against SciPy, statsmodels and slow, obvious versions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.multitest import multipletests

from beaufort._core.errors import OptionError
from beaufort.metrics.stats import (
    Estimate,
    binomial_cdf,
    bootstrap,
    bootstrap_means,
    clopper_pearson,
    holm,
    letters,
    looks,
    mcnemar,
    mean_interval,
    mean_p_value,
    rank,
    resample,
)

COUNTS = st.integers(1, 60_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def tail(hits: int, n: int, fraction: Fraction) -> Fraction:
    """The chance of at least so many hits, summed term by term without rounding."""
    return sum(
        (comb(n, k) * fraction**k * (1 - fraction) ** (n - k) for k in range(hits, n + 1)), Fraction(0)
    )


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.sampled_from([0.5, 0.95]),
)
def test_clopper_pearson_by_definition(counts: tuple[int, int], level: float) -> None:
    """So many hits or more have the chance of one tail under the lower end; or fewer, under the upper."""
    hits, n = counts
    ours = clopper_pearson(hits, n, level)
    assert (ours.value, ours.n) == (hits / n, n)
    chance = (1 - level) / 2
    if hits:
        assert float(tail(hits, n, Fraction(ours.low))) == pytest.approx(chance, rel=1e-9)
    if hits < n:
        assert float(1 - tail(hits + 1, n, Fraction(ours.high))) == pytest.approx(chance, rel=1e-9)


@given(COUNTS, st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_clopper_pearson_of_many_images(counts: tuple[int, int], level: float) -> None:
    """The ends satisfy the distribution function, without inverting it."""
    hits, n = counts
    ours = clopper_pearson(hits, n, level)
    chance = (1 - level) / 2
    if hits:
        assert float(binom.sf(hits - 1, n, ours.low)) == pytest.approx(chance, rel=1e-6)
    if hits < n:
        assert float(binom.cdf(hits, n, ours.high)) == pytest.approx(chance, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(-1, n), st.just(n))), st.floats(0.001, 0.999)
)
def test_binomial_cdf_by_definition(counts: tuple[int, int], p: float) -> None:
    k, n = counts
    assert binomial_cdf(k, n, p) == pytest.approx(float(1 - tail(k + 1, n, Fraction(p))), rel=1e-9)


@pytest.mark.parametrize(("hits", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_counts_that_cannot_be(hits: int, n: int) -> None:
    with pytest.raises(OptionError, match=f"got hits={hits} and n={n}"):
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
    with mock.patch("gc.collect"):  # statsmodels looks for garbage in every call, among all that was imported
        theirs = multipletests(p, method="holm")[1]
    assert holm(p) == pytest.approx(theirs)


def test_invalid_p_values() -> None:
    with pytest.raises(OptionError, match="from 0 to 1"):
        holm([0.5, 1.5])


def test_resampled_means_spread_as_they_should() -> None:
    """Their covariance is that of the values over the number of images."""
    values = np.random.default_rng(1).random((300, 4)) ** 2
    drawn = bootstrap_means(values, resamples=20_000)
    assert drawn.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=6e-4)
    assert np.cov(drawn.T) == pytest.approx(np.cov(values.T, bias=True) / 300, abs=1e-5)


@pytest.mark.parametrize("count", [1, 2, 7, 20, 101])
def test_every_resample_weights_all_images(count: int) -> None:
    ones = bootstrap_means(np.ones((count, 1)), resamples=50)
    assert ones == pytest.approx(1)
    each = bootstrap_means(np.eye(count), resamples=4000) * count
    assert each.sum(axis=1) == pytest.approx(count)
    assert each.mean(axis=0) == pytest.approx(1, abs=0.12)  # no image is favored
    assert each.min() > 0  # and none drops out: a rare mistake stays in every resample


def test_resamples_depend_on_the_seed_and_their_number_alone() -> None:
    values = np.arange(50.0)[:, None]
    long = bootstrap_means(values, resamples=40, seed=3)
    assert long[:10] == pytest.approx(bootstrap_means(values, resamples=10, seed=3), rel=1e-5)
    assert not np.allclose(long, bootstrap_means(values, resamples=40, seed=4))
    both = bootstrap_means(np.hstack([values, 2 * values]), resamples=40, seed=3)
    assert both[:, 1] == pytest.approx(2 * long[:, 0])  # columns share their draws


@pytest.mark.parametrize("bad", [np.zeros((0, 3)), np.zeros((2, 3, 4))])
def test_values_of_no_images(bad: np.ndarray) -> None:
    with pytest.raises(OptionError, match=r"row.* image"):
        bootstrap_means(bad)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True])
def test_resamples_that_cannot_be(bad: object) -> None:
    with pytest.raises(OptionError, match="resamples"):
        bootstrap_means(np.ones((3, 1)), resamples=bad)  # type: ignore[arg-type]


def test_an_estimate_reads_well() -> None:
    one = Estimate(0.7671, 0.75, 0.78, 1000)
    assert f"{one:.2f}" == "0.77 [0.75, 0.78]"
    assert one.half_width == pytest.approx(0.015)


def matrix(*pairs: tuple[int, int], count: int) -> np.ndarray:
    """Return which pairs differ significantly."""
    apart = np.zeros((count, count), bool)
    for a, b in pairs:
        apart[a, b] = apart[b, a] = True
    return apart


def test_ranking_with_ties() -> None:
    """Two models that do not differ significantly share a letter; a distant one has its own place."""
    apart = matrix((0, 2), (1, 2), count=3)
    ranked = rank(["a", "b", "c"], [0.301, 0.3, 0.5], apart)
    assert [(one.name, one.best, one.worst, one.groups) for one in ranked] == [
        ("b", 1, 2, ("a",)),
        ("a", 1, 2, ("a",)),
        ("c", 3, 3, ("b",)),
    ]
    highest = rank(["a", "b", "c"], [0.301, 0.3, 0.5], apart, better="higher")
    assert [one.name for one in highest] == ["c", "a", "b"]


def test_undecided_pair_around_a_decided_one_has_a_common_letter() -> None:
    """First and last do not differ significantly, although the middle one differs from both."""
    ranked = rank("abc", [0.0, 0.1, 0.2], matrix((0, 1), (1, 2), count=3))
    assert [one.groups for one in ranked] == [("a",), ("b",), ("a",)]
    assert [one.place for one in ranked] == ["1–2", "2", "2–3"]


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n * n - 1)))))
def test_models_share_a_letter_if_and_only_if_they_do_not_differ(given_: tuple[int, set[int]]) -> None:
    count, places = given_
    apart = matrix(*(divmod(place, count) for place in places), count=count)
    np.fill_diagonal(apart, False)
    found = letters(apart)
    for a, b in itertools.combinations(range(count), 2):
        assert bool({*found[a]} & {*found[b]}) == (not apart[a, b])
    assert all(found)


@given(COUNTS.filter(lambda counts: counts[1] < 5000), st.sampled_from([0.9, 0.95, 0.999]))
def test_the_interval_of_zeros_and_ones_is_clopper_and_pearsons(
    counts: tuple[int, int], level: float
) -> None:
    hits, n = counts
    values = np.r_[np.ones(hits), np.zeros(n - hits)]
    exact, ours = clopper_pearson(hits, n, level), mean_interval(values, level=level)
    assert (ours.value, ours.low, ours.high) == pytest.approx((exact.value, exact.low, exact.high))
    scaled = mean_interval(4 * values - 2, low=-2, high=2, level=level)
    assert (scaled.low, scaled.high) == pytest.approx((4 * exact.low - 2, 4 * exact.high - 2))


@pytest.mark.parametrize("n", [1, 2, 5, 40, 300])
@pytest.mark.parametrize("shape", [(0.5, 0.5), (5.0, 0.2), (0.1, 3.0)])
def test_the_interval_of_a_mean_against_random_weights(n: int, shape: tuple[float, float]) -> None:
    """The slow and obvious way: weight the images and the unseen one at random, and look at percentiles."""
    rng = np.random.default_rng(n)
    values = rng.beta(*shape, n)
    weights = rng.standard_exponential((200_000, n + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    seen, unseen = weights[:, :n] @ values, weights[:, n]
    ours = mean_interval(values)
    close = 0.005 if n < 40 else 0.0015  # of the approximation, and of 200,000 weightings
    assert (seen < ours.low).mean() == pytest.approx(0.025, abs=close)
    assert (seen + unseen > ours.high).mean() == pytest.approx(0.025, abs=close)


@given(
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=30),
    st.sampled_from([0.5, 0.9, 0.95, 1 - 1e-6]),
)
def test_no_interval_has_width_zero(values: list[float], level: float) -> None:
    one = mean_interval(values, level=level)
    assert one.low < one.high
    assert one.low <= one.value <= one.high
    assert one.n == len(values)


@given(st.lists(st.sampled_from([-1, -0.4, 0, 0.2, 1]), min_size=1, max_size=60), st.floats(-0.9, 0.9))
def test_p_value_agrees_with_the_interval(values: list[float], null: float) -> None:
    p = mean_p_value(values, low=-1, high=1, null=null)
    assert 0 < p <= 1
    for level in (0.5, 0.95, 0.999):
        one = mean_interval(values, low=-1, high=1, level=level)
        ends_only = {*values} <= {-1.0, 1.0}  # there the interval is the exact one, and p an approximation
        if not ends_only and min(abs(null - one.low), abs(null - one.high)) > 1e-6:
            assert (p < 1 - level) == (not one.low < null < one.high)


def test_two_images_prove_nothing() -> None:
    """McNemar's test gives 0.5 for two images that both favor one model."""
    assert mean_p_value([1.0, 1.0], low=-1, high=1) == pytest.approx(mcnemar(2, 0), abs=0.01)


@pytest.mark.parametrize(
    ("values", "bounds"),
    [([], (0, 1)), ([[0.5]], (0, 1)), ([1.5], (0, 1)), ([float("nan")], (0, 1)), ([0], (1, 0))],
)
def test_values_that_have_no_bounded_mean(values: list[float], bounds: tuple[float, float]) -> None:
    with pytest.raises(OptionError, match="must"):
        mean_interval(values, low=bounds[0], high=bounds[1])


def test_a_bootstrap_of_a_mean_is_its_interval() -> None:
    values = np.random.default_rng(3).beta(2, 0.3, 80)
    ours = bootstrap(values, lambda means: means[..., 0], resamples=40_000)
    plain = mean_interval(values)
    assert (ours.low, ours.high) == pytest.approx((plain.low, plain.high), abs=0.003)


def test_a_bootstrap_looks_for_the_worst_image_in_every_column() -> None:
    """The first column may be worse than seen, the second better."""
    values = np.tile([1.0, 0.0], (30, 1))
    one = bootstrap(values, lambda means: means[..., 0] - means[..., 1])
    assert one.value == one.high == 1
    assert one.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 30)), abs=0.01)


def test_the_unseen_image_has_the_weight_of_one() -> None:
    drawn = resample(np.zeros((99, 1)), resamples=20_000)
    assert drawn.unseen.mean() == pytest.approx(0.01, rel=0.03)
    assert drawn.beside([1.0]) == pytest.approx(drawn.unseen)


def test_looks() -> None:
    assert list(looks(10)) == [10]
    assert list(looks(500)) == [500]
    for count in (501, 10_000, 50_000):
        at = list(looks(count))
        assert at[0] == 500
        assert at[-1] == count
        assert all(a < b <= 1.26 * a for a, b in itertools.pairwise(at))
