"""With the planned number of images, a gate decides as often as stated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.results import (
    Spread,
    gate,
    open_results,
    plan_images,
    spread_of_accuracies,
    spread_of_results,
)
from beaufort.results.power import ALIKE, DIFFER
from beaufort.store import FileStore
from beaufort.suites import get_suite
from tests.commands import shows

Fill = Callable[..., FileStore]


@pytest.mark.parametrize(
    ("accuracy", "drop", "max_drop", "probability"),
    [
        (0.5, 0.08, 0.02, 0.8),
        pytest.param(0.5, 0.10, 0.03, 0.9, marks=pytest.mark.nightly),
        pytest.param(0.95, 0.03, 0.01, 0.8, marks=pytest.mark.nightly),
        (0.95, 0.05, 0.0, 0.9),
    ],
)
def test_a_gate_fails_a_drop_as_often_as_planned(
    simulation: ModuleType, accuracy: float, drop: float, max_drop: float, probability: float
) -> None:
    known = simulation.simulate(np.random.default_rng(0), 20_000, drop, accuracy=accuracy)
    plan = plan_images(spread_of_results(*known), drop=drop, max_drop=max_drop, probability=probability)
    output = simulation.decisions(plan.to_fail, drop, 200, max_drop=max_drop, accuracy=accuracy)
    assert output["failed"] / 200 == pytest.approx(probability, abs=0.07)


@pytest.mark.parametrize(
    ("accuracy", "max_drop"), [(0.5, 0.05), pytest.param(0.95, 0.02, marks=pytest.mark.nightly)]
)
def test_a_gate_passes_an_equal_model_as_often_as_planned(
    simulation: ModuleType, accuracy: float, max_drop: float
) -> None:
    known = simulation.simulate(np.random.default_rng(0), 20_000, 0.0, accuracy=accuracy)
    plan = plan_images(spread_of_results(*known), drop=2 * max_drop, max_drop=max_drop)
    output = simulation.decisions(plan.to_pass, 0.0, 200, max_drop=max_drop, accuracy=accuracy)
    assert output["passed"] / 200 == pytest.approx(0.8, abs=0.07)


def test_stated_and_measured_agree(simulation: ModuleType) -> None:
    """Stated accuracies give the spread that is measured over images."""
    new, old = simulation.simulate(np.random.default_rng(0), 20_000, 0.02, accuracy=0.7)
    measured = spread_of_results(new, old)
    apart = new.predictions("new").correct.astype(float) - old.predictions("old").correct
    versions = len(apart)
    differ = float((apart != 0).mean())
    between = np.corrcoef(apart)
    alike = float((between.sum() - versions) / (versions * (versions - 1)))
    stated = spread_of_accuracies(simulation.SUITE, 0.7, differ=differ, alike=alike)
    assert stated.deviation(0.02) == pytest.approx(measured.deviation(0.02), rel=0.03)
    assert stated.bounds == pytest.approx(measured.bounds)


def test_the_extra_image_counts(simulation: ModuleType) -> None:
    """Hardly any spread: the normal approximation alone would be content with a handful of images."""
    spread = Spread("mean_accuracy", "", np.ones(1), np.zeros(1), 0.0, (-1.0, 1.0), measured=0.001)
    plan = plan_images(spread, drop=0.05, max_drop=0.03, probability=0.8)
    assert plan.to_pass is not None
    assert plan.to_pass > 100


def test_smaller_drops_and_higher_probabilities_need_more() -> None:
    spread = spread_of_accuracies(get_suite("imagenet-c"), 0.4)
    plans = [plan_images(spread, drop=drop, probability=p) for drop in (0.06, 0.03) for p in (0.8, 0.9)]
    needed = [plan.to_fail for plan in plans if plan.to_fail is not None]
    assert needed == sorted(needed)
    assert len(set(needed)) == 4


def test_models_differ_at_least_by_the_drop() -> None:
    spread = spread_of_accuracies(get_suite("cifar10-c"), 0.999)
    assert spread.deviation(0.3) > 5 * spread.deviation(0.001)


def test_mce_weighs_corruptions_by_the_baseline() -> None:
    """A point of accuracy is more than a point of mCE, as the baseline makes fewer errors than all."""
    suite = get_suite("imagenet-c")
    mce, mean = (spread_of_accuracies(suite, 0.4, metric=name) for name in ("mce", "mean_accuracy"))
    assert mean.weights.sum() == pytest.approx(1)
    assert 1.1 < mce.weights.sum() < 1.5
    assert len(mce.weights) == 76
    assert mce.weights[0] == 0


def test_clean_images_count_if_the_suite_includes_them() -> None:
    suite = get_suite("mnist-c")
    low, high = (spread_of_accuracies(suite, 0.9, clean=clean) for clean in (0.9, 0.999))
    assert high.deviation(0.0) < low.deviation(0.0)


def test_one_model_of_a_store(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.8}))
    spread = spread_of_results(results)
    predictions = results.predictions("net")
    assert spread.differ[1] == pytest.approx(
        2 * DIFFER * (a := float(predictions.correct[1:].mean())) * (1 - a)
    )
    assert spread.alike == ALIKE
    assert shows(spread.source, "net", "300 images")


def test_clusters_are_units(fill: Fill) -> None:
    store = fill("s", {"new": 0.85, "old": 0.9})
    new, old = (open_results(store, models=[name]) for name in ("new", "old"))
    clusters = {image: str(i // 5) for i, image in enumerate(new.predictions("new").ids)}
    spread = spread_of_results(new, old, clusters=clusters)
    assert spread.images == 5
    alone = spread_of_results(new, old)
    assert spread.measured < alone.measured
    verdict = gate(new, old, clusters=clusters)
    assert verdict.drop is not None


def test_impossible_plans_are_reported(fill: Fill) -> None:
    spread = spread_of_accuracies(get_suite("cifar10-c"), 0.7)
    with pytest.raises(OptionError, match=r"drop.*max_drop"):
        plan_images(spread, drop=0.01, max_drop=0.01)
    with pytest.raises(OptionError, match="probability must be"):
        plan_images(spread, drop=0.02, probability=1.0)
    with pytest.raises(OptionError, match="drop must be below"):
        plan_images(spread, drop=2.0)
    with pytest.raises(OptionError, match=r"accuracy.*0.*1.*70"):
        spread_of_accuracies(get_suite("cifar10-c"), 70)
    with pytest.raises(OptionError, match="unknown metric"):
        spread_of_accuracies(get_suite("cifar10-c"), 0.7, metric="mce")
    results = open_results(fill("s", {"net": 0.8}))
    with pytest.raises(BeaufortError, match="two different models"):
        spread_of_results(results, results)
    with pytest.raises(OptionError, match="clusters requires a reference"):
        spread_of_results(results, clusters={})
    same = fill("same", {"a": 9.0, "b": 9.0}, images=10)
    with pytest.raises(BeaufortError, match="spread cannot be measured"):
        spread_of_results(open_results(same, models=["a"]), open_results(same, models=["b"]))


def test_no_number_is_enough_for_some_plans() -> None:
    spread = spread_of_accuracies(get_suite("cifar10-c"), 0.5, differ=1.0, alike=1.0)
    assert plan_images(spread, drop=0.010001, max_drop=0.01).to_fail is None
    assert plan_images(spread, drop=0.02, max_drop=0.0).to_pass is None


def test_a_suite_whose_baseline_is_a_model_is_planned_for_by_accuracy() -> None:
    """The accuracy needs no baseline, so none is looked up."""
    suite = replace(get_suite("imagenet-c"), name="own", baseline="old-net")
    assert spread_of_accuracies(suite, 0.4, metric="mean_accuracy").metric == "mean_accuracy"
    with pytest.raises(OptionError, match=r"baseline 'old-net'.*'none'"):
        spread_of_accuracies(suite, 0.4)


def test_a_plan_counts_its_images(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.7}, images=1), models=["net"])
    assert shows(spread_of_results(results, baseline="none").source, "net", "1 image", "digits")
