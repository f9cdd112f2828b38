"""Intervals of numbers that are means over images stay where the numbers can be."""

import numpy as np

from beaufort.results.linear import Linear
from beaufort.results.metric_forms import Divisor, ratio_form

CLUSTERS = np.r_[np.zeros(20, int), 1 + np.arange(10) // 2]
"""One patient with 20 images, five with two."""


def accuracy(wrong: int) -> Linear:
    errors = np.zeros((30, 2))
    errors[:wrong] = 1
    return Linear.of(1.0, {"net": (errors, np.array([-0.5, -0.5]))})


def test_accuracy_over_unequal_clusters_is_a_fraction() -> None:
    for wrong in (0, 1, 15, 30):
        found = accuracy(wrong).clustered(CLUSTERS).estimate(0.95)
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.low < found.high
        assert found.n == 6


def test_an_interval_over_clusters_is_only_cut_off() -> None:
    form = accuracy(15).clustered(np.repeat(np.arange(10), 3))
    plain = form.estimate(0.95)
    assert 0 < plain.low < 0.5 < plain.high < 1
    assert plain.low < accuracy(15).estimate(0.95).low


def ratio(*, relative: bool) -> Linear:
    """Errors under two corruptions, of 1 image in 24, over those of a model of the store, of 10."""
    own, base = np.zeros((24, 3)), np.zeros((24, 3))
    own[:1, 1:], base[10:20, 1:] = 1, 1
    divisor = Divisor("old", base.mean(axis=0), base, {})
    return ratio_form("new", own, divisor, [1, 2], (None, "fog", "snow"), relative=relative)


def test_a_ratio_of_errors_is_not_below_zero() -> None:
    form = ratio(relative=False)
    assert form.bounds[0] < 0  # the straight line is
    for one in (form, form.clustered(np.arange(24) // 4), (form + form) * 0.5):
        found = one.estimate(0.95)
        assert found.low == 0 < found.value < found.high


def test_signed_metrics_have_no_floor() -> None:
    form = ratio(relative=False)
    assert (form - form * 0.5).floor == form.__mul__(-1).floor == ratio(relative=True).floor == -np.inf
