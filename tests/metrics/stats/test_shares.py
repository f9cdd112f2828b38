"""Exact intervals of many fractions: equal to single ones, between counts, and at the ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort._core.errors import OptionError
from beaufort.metrics.stats import clopper_pearson, proportion_intervals


@given(st.integers(1, 60_000), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.995]))
def test_as_one_by_one(n: int, fraction: float, level: float) -> None:
    hits = round(fraction * n)
    low, high = proportion_intervals([hits], [n], level)
    one = clopper_pearson(hits, n, level)
    assert (low[0], high[0]) == pytest.approx((one.low, one.high), rel=1e-8, abs=1e-12)


def test_counts_may_be_fractions() -> None:
    """Between two counts an interval lies between theirs."""
    rng = np.random.default_rng(0)
    n = rng.choice([5, 1109, 10_000, 50_889], 500)
    hits = rng.uniform(0.01, n - 0.01)
    low, high = proportion_intervals(hits, n, 0.995)
    floors, ceilings = (proportion_intervals(whole(hits), n, 0.995) for whole in (np.floor, np.ceil))
    assert ((floors[0] <= low) & (low <= ceilings[0])).all()
    assert ((floors[1] <= high) & (high <= ceilings[1])).all()


def test_ends_and_gaps() -> None:
    low, high = proportion_intervals([0, 7, np.nan, 3], [7, 7, 7, np.nan])
    assert low[0] == 0
    assert high[1] == 1
    assert 0 < high[0] < 1
    assert 0 < low[1] < 1
    assert np.isnan(low[2:]).all()
    assert np.isnan(high[2:]).all()


@pytest.mark.parametrize(("hits", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_counts_that_cannot_be(hits: int, n: int) -> None:
    with pytest.raises(OptionError, match=rf"hits.*0.*1.*hits={hits}.*n={n}"):
        proportion_intervals([hits], [n])
