"""Intervals of paired differences: coverage by simulation, width, and agreement with p-values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from scipy.stats import t as student

from beaufort._core.errors import OptionError
from beaufort.metrics.stats import (
    mean_interval,
    paired_half_width,
    paired_images_to_decide,
    paired_interval,
    paired_p_value,
)
from beaufort.metrics.stats.paired import FEW

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """Differences that take a few values with known probabilities."""

    images: int
    values: tuple[float, ...]
    probabilities: tuple[float, ...]
    low: float = -1.0
    high: float = 1.0

    @cached_property
    def mean(self) -> float:
        return float(np.dot(self.values, self.probabilities))

    def coverage(self, repeats: int, level: float) -> tuple[float, float]:
        """Return the coverage of `paired_interval` and that of Student's interval."""
        counts = np.random.default_rng(self.images).multinomial(self.images, self.probabilities, repeats)
        distinct, times = np.unique(counts, axis=0, return_counts=True)
        quantile = student.ppf((1 + level) / 2, self.images - 1)
        hits = naive = 0
        for row, count in zip(distinct, times, strict=True):
            values = np.repeat(self.values, row)
            found = paired_interval(values, low=self.low, high=self.high, level=level)
            hits += count * (found.low <= self.mean <= found.high)
            width = quantile * values.std(ddof=1) / math.sqrt(self.images)
            naive += count * (abs(values.mean() - self.mean) <= width)
        return hits / repeats, naive / repeats


def flips(images: int, expected: float, better: float = 0.5, size: float = 1.0) -> Case:
    """Return a case where the two models differ on `expected` images on average."""
    rate = expected / images
    return Case(images, (size, -size, 0.0), (rate * better, rate * (1 - better), 1 - rate))


RARE = [flips(n, expected, better) for n in (50, 200) for expected in (0.5, 1, 2, 4) for better in (0.5, 1)]
MANY = [
    flips(200, 40, 0.5),
    flips(200, 40, 0.9),
    flips(1000, 30, 1.0),
    Case(200, (1.0, 0.0625, -0.0625, 0.0), (0.01, 0.15, 0.15, 0.69)),
    Case(200, (1.5, -0.5, 0.0), (0.02, 0.02, 0.96), -0.5, 1.5),
    Case(50, (1.0, -1.0), (0.94, 0.06)),
]


@pytest.mark.parametrize("case", [*RARE, *MANY])
def test_the_interval_covers(case: Case) -> None:
    repeats = 2000
    covered, _ = case.coverage(repeats, 0.95)
    assert covered >= 0.935 - 3 * math.sqrt(0.05 * 0.95 / repeats) / 2


@pytest.mark.parametrize("case", [*RARE, *MANY])
@pytest.mark.parametrize("family", [1, 21, 63])
def test_the_interval_covers_at_the_levels_of_families(case: Case, family: int) -> None:
    repeats, miss = 20_000, 0.05 / family
    covered, _ = case.coverage(repeats, 1 - miss)
    allowed = 1.3 * miss
    assert 1 - covered <= allowed + 3 * math.sqrt(allowed / repeats)


def test_the_interval_of_student_does_not_cover_rare_differences() -> None:
    covered, naive = flips(200, 1.0, better=1).coverage(2000, 0.95)
    assert covered > 0.95
    assert naive < 0.7


def draws() -> list[Floats]:
    rng = np.random.default_rng(4)
    made = []
    for images in (5, 20, 50, 200, 1000):
        for rate in (0.0, 0.02, 0.1, 0.5, 1.0):
            for better in (0.5, 0.9, 1.0):
                signs = np.where(rng.random(images) < better, 1.0, -1.0)
                hits = rng.random(images) < rate
                made += [signs * hits, signs * hits * rng.integers(1, 17, images) / 16]
    return made


def test_never_wider_than_gaffkes_interval_and_never_of_width_zero() -> None:
    for values in draws():
        found, wide = paired_interval(values), mean_interval(values, low=-1, high=1)
        assert 0 < found.half_width <= wide.half_width * (1 + 1e-6)
        assert found.low <= found.value <= found.high


@pytest.mark.parametrize(("ratio", "factor"), [(3, 1.10), (4, 1.05)])
def test_close_to_student_where_many_images_differ(ratio: float, factor: float) -> None:
    """The bound holds at the smallest ratio of s√n to the largest contribution of an image."""
    for images in (100, 1000, 10_000):
        deviation = ratio / math.sqrt(images)
        naive = float(student.ppf(0.975, images - 1)) * deviation / math.sqrt(images)
        assert naive < paired_half_width(deviation, images, 1.0) <= factor * naive
    for values in draws():
        if values.std(ddof=1) * math.sqrt(len(values)) >= ratio * (1 + abs(values.mean())):
            naive = float(student.ppf(0.975, len(values) - 1)) * values.std(ddof=1) / math.sqrt(len(values))
            assert paired_interval(values).half_width <= factor * naive


def test_images_that_all_agree() -> None:
    """No difference in n images: a rate above -ln(0.025) / n is excluded."""
    assert paired_interval(np.zeros(1000)).high == pytest.approx(-math.log(0.025) / 1000, rel=0.01)
    assert paired_interval([0.0]).high == mean_interval([0.0], low=-1, high=1).high
    assert paired_interval([1.0, 1.0, 1.0]).low < 0.3


def test_gaffkes_interval_is_not_computed_where_it_is_wider() -> None:
    rng = np.random.default_rng(8)
    for images in (60, 200, 1000):
        for rate in (0.3, 0.6, 0.9):
            for better in (0.5, 0.8, 1.0):
                values = np.where(rng.random(images) < better, 1.0, -1.0) * (rng.random(images) < rate)
                if values.std() * math.sqrt(images) > FEW * (1 + abs(values.mean())):
                    wide = mean_interval(values, low=-1, high=1)
                    assert paired_interval(values).half_width <= wide.half_width


@given(
    st.lists(st.sampled_from([-1.0, -0.25, 0.0, 0.0, 0.0, 0.25, 1.0]), min_size=2, max_size=80),
    st.floats(-0.6, 0.6),
    st.sampled_from([0.9, 0.95, 0.999]),
)
def test_a_p_value_agrees_with_the_interval(values: list[float], null: float, level: float) -> None:
    found = paired_interval(values, level=level)
    if min(abs(found.low - null), abs(found.high - null)) > 1e-4:
        excluded = not found.low <= null <= found.high
        assert (paired_p_value(values, null=null) < 1 - level) == excluded


def test_the_sides_are_mirror_images() -> None:
    values = np.array([1.0] * 5 + [-0.5] * 2 + [0.0] * 60)
    one, other = paired_interval(values, low=-0.5), paired_interval(-values, high=0.5)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


@pytest.mark.parametrize("limit", [0.05, 0.2, -0.05])
def test_images_to_decide(limit: float) -> None:
    """Repeating the images as often decides, and a tenth fewer does not."""
    values = np.array([1.0] * 30 + [-1.0] * 10 + [0.0] * 160)
    needed = paired_images_to_decide(values, limit=limit)
    assert needed is not None

    def decided(images: int) -> bool:
        found = paired_interval(np.resize(np.random.default_rng(0).permutation(values), images // 200 * 200))
        return not found.low <= limit <= found.high

    if needed >= 1000:
        assert decided(round(1.2 * needed))
        assert not decided(round(0.8 * needed))
    assert paired_images_to_decide(values, limit=float(values.mean())) is None
    assert paired_images_to_decide(values, limit=3.0) is None


def test_invalid_values() -> None:
    with pytest.raises(OptionError, match="2"):
        paired_interval([0.0, 2.0])
    with pytest.raises(OptionError, match="level"):
        paired_interval([0.0, 1.0], level=95)
