"""Do 95 % intervals cover 95 %? By simulation, with seeds, so that the answer is the same every time.

Each simulated photo has a difficulty of its own, which all its versions share: they fail together, as real
ones do. The truth is known, so an interval covers it or not. Bounds are three to four standard errors of the
share that a simulation of this length gives.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort.stats import bootstrap, clopper_pearson, looks, seen_enough

VERSIONS = 75


def answers(rng: np.random.Generator, images: int, mean: float, alike: float) -> NDArray[np.float64]:
    """The share of its versions that each photo is answered rightly in; `alike` near 0: all or none."""
    chance = rng.beta(mean * alike, (1 - mean) * alike, images)
    return rng.binomial(VERSIONS, chance) / VERSIONS


def first(means: NDArray[np.float64]) -> NDArray[np.float64]:
    return means[..., 0]


@pytest.mark.parametrize(("mean", "alike"), [(0.6, 1.0), (0.9, 0.5)])
def test_bootstrap_over_photos_covers_and_over_answers_does_not(mean: float, alike: float) -> None:
    rng = np.random.default_rng(11)
    repeats, images = 800, 400
    covered = naive = 0
    for repeat in range(repeats):
        share = answers(rng, images, mean, alike)
        estimate = bootstrap(share, first, resamples=500, seed=repeat)
        covered += estimate.low <= mean <= estimate.high
        flat = clopper_pearson(round(share.sum() * VERSIONS), images * VERSIONS)
        naive += flat.low <= mean <= flat.high
    assert 0.925 <= covered / repeats <= 0.975
    assert naive / repeats < 0.5  # as if 75 versions of one photo were 75 photos


def test_few_photos_are_covered_too() -> None:
    rng = np.random.default_rng(12)
    covered = 0
    for repeat in range(1000):
        share = answers(rng, 20, 0.6, 1.0)
        estimate = bootstrap(share, first, resamples=500, seed=repeat)
        covered += estimate.low <= 0.6 <= estimate.high
    assert 0.925 <= covered / 1000 <= 0.98


@pytest.mark.parametrize(
    ("mean", "alike", "precision"), [(0.6, 1.0, 0.02), (0.95, 1.0, 0.006), (0.98, 0.3, 0.005)]
)
def test_stopping_at_a_precision_keeps_the_coverage(mean: float, alike: float, precision: float) -> None:
    """The rule of `run --precision`: looks at fixed numbers of images, at widths only."""
    rng = np.random.default_rng(13)
    repeats, images = 400, 8_000
    covered, used = 0, []
    for repeat in range(repeats):
        share = answers(rng, images, mean, alike)
        for count in looks(images):
            estimate = bootstrap(share[:count], first, resamples=200, seed=repeat)
            if estimate.half_width <= precision and seen_enough(1 - share[:count]):
                break
        covered += estimate.low <= mean <= estimate.high
        used.append(count)
    assert covered / repeats >= 0.915  # nominal 0.95, less 3.2 standard errors
    assert np.mean(used) < images / 1.5  # it did stop early, so that there was peeking to survive
