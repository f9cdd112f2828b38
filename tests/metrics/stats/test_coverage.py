"""Do 95 % intervals cover 95 %? By simulation, with seeds, so that the results are reproducible.

The simulation is the benchmark's, through `score`: each photo has a difficulty of its own, which all its
versions share. The table of all cases is in the documentation; here is a choice of the hard ones. An interval
may cover more than it says, and near the ends it does; bounds are three standard errors below 93 %.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort.metrics.stats import clopper_pearson, looks, mean_interval
from beaufort.results import Results, compare

VERSIONS = 75
PROMISED = 0.93


def least(repeats: int) -> float:
    return PROMISED - 3 * math.sqrt(0.05 * 0.95 / repeats)


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "interval_coverage.py"
    spec = importlib.util.spec_from_file_location("interval_coverage", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("images", "accuracy", "spread"),
    [
        pytest.param(20, 0.05, 1.5, marks=pytest.mark.nightly),
        (20, 0.995, 3.0),
        (50, 0.5, 0.0),
        pytest.param(50, 0.995, 1.5, marks=pytest.mark.nightly),
        pytest.param(200, 0.95, 3.0, marks=pytest.mark.nightly),
    ],
)
def test_every_kind_of_number_is_covered(
    simulation: ModuleType, images: int, accuracy: float, spread: float
) -> None:
    repeats = 100
    found = simulation.coverage(images, accuracy, spread, repeats)
    assert len(found) == 7
    for name, fraction in found.items():
        assert fraction >= least(repeats), name


def accuracies(rng: np.random.Generator, images: int, mean: float, alike: float) -> NDArray[np.float64]:
    """Return the accuracy over the versions of each photo; near 0 or 1 if `alike` is near 0."""
    chance = rng.beta(mean * alike, (1 - mean) * alike, images)
    return rng.binomial(VERSIONS, chance) / VERSIONS


def test_intervals_of_single_ratings_do_not_cover() -> None:
    """Intervals that treat 75 versions as 75 photos do not cover; those over photos are not too wide."""
    rng = np.random.default_rng(11)
    repeats, mean = 400, 0.6
    covered = naive = 0
    for _ in range(repeats):
        fraction = accuracies(rng, 400, mean, 1.0)
        estimate = mean_interval(fraction)
        covered += estimate.low <= mean <= estimate.high
        flat = clopper_pearson(round(fraction.sum() * VERSIONS), fraction.size * VERSIONS)
        naive += flat.low <= mean <= flat.high
    assert least(repeats) <= covered / repeats <= 0.985
    assert naive / repeats < 0.5


def rare(rng: np.random.Generator, images: int) -> tuple[NDArray[np.float64], float]:
    """Three photos in a thousand are always wrong, and all have a little noise."""
    fraction = rng.binomial(VERSIONS, 0.99, images) / VERSIONS
    fraction[rng.random(images) < 0.003] = 0
    return fraction, 0.997 * 0.99


@pytest.mark.parametrize("case", ["rare", (0.6, 1.0, 0.02), (0.95, 1.0, 0.006), (0.98, 0.3, 0.005)])
def test_stopping_at_a_precision_keeps_the_coverage(case: str | tuple[float, float, float]) -> None:
    """The rule of `run --precision`: looks at fixed numbers of images, at widths only."""
    rng = np.random.default_rng(13)
    repeats, images = 300, 8_000
    covered, used = 0, []
    for _ in range(repeats):
        if isinstance(case, str):
            (fraction, mean), precision = rare(rng, images), 0.005
        else:
            mean, alike, precision = case
            fraction = accuracies(rng, images, mean, alike)
        for count in looks(images):
            estimate = mean_interval(fraction[:count])
            if estimate.half_width <= precision:
                break
        covered += estimate.low <= mean <= estimate.high
        used.append(count)
    assert covered / repeats >= 0.94 - 3 * math.sqrt(0.05 * 0.95 / repeats)
    assert np.mean(used) < images / 1.5  # it did stop early, so that there was peeking to survive


def test_equal_models_rarely_differ_significantly(simulation: ModuleType) -> None:
    """All differences of five equal models hold together: one false alarm in any of them is rare."""
    rng = np.random.default_rng(5)
    center = simulation.center_of(0.6, 1.5)
    alarms = 0
    for _ in range(25):
        made = {f"net{i}": simulation.simulate(rng, 100, center, 1.5).predictions("one") for i in range(5)}
        comparison = compare(Results.of(simulation.SUITE, made))
        alarms += any(one.significant for one in comparison.differences)
    assert alarms <= 5  # 1.25 expected at most
