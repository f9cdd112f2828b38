"""The three outcomes of the gate: when each occurs, and how often it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.metrics.stats import Estimate
from beaufort.results import (
    Check,
    Decision,
    Results,
    compare,
    gate,
    join_results,
    open_results,
    score,
    spread_of_results,
)
from beaufort.store import FileStore
from beaufort.suites import Suite

Fill = Callable[..., FileStore]


def check(low: float, value: float, high: float, *, limit: float, upper: bool = True, n: int = 100) -> Check:
    return Check("drop", "", Estimate(value, low, high, n), limit, upper=upper)


def test_the_whole_interval_decides() -> None:
    assert check(-0.01, 0.0, 0.009, limit=0.01).decision is Decision.PASSED
    assert check(0.011, 0.02, 0.03, limit=0.01).decision is Decision.FAILED
    assert check(-0.02, 0.0, 0.02, limit=0.01).decision is Decision.UNDECIDED
    assert check(0.005, 0.02, 0.03, limit=0.01).decision is Decision.UNDECIDED
    assert check(0.8, 0.9, 0.95, limit=0.7, upper=False).decision is Decision.PASSED
    assert check(0.8, 0.9, 0.95, limit=0.96, upper=False).decision is Decision.FAILED
    assert check(0.8, 0.9, 0.95, limit=0.85, upper=False).decision is Decision.UNDECIDED


def test_images_needed_looks_at_the_end_towards_the_limit() -> None:
    assert check(-0.5, 0.0, 0.02, limit=0.01).images_needed == 400
    assert check(0.0, 0.02, 0.5, limit=0.01).images_needed == 400
    assert check(0.0, 0.01, 0.02, limit=0.01).images_needed is None


@pytest.mark.parametrize("images", [100, 400])
def test_wrong_decisions_are_rare_at_the_limit(simulation: ModuleType, images: int) -> None:
    """A drop of exactly the allowed size: passed and failed may each occur in 2.5 % of all cases."""
    output = simulation.decisions(images, 0.01, 300)
    assert output["passed"] <= 0.03 * 300
    assert output["failed"] <= 0.03 * 300


def test_clear_cases_are_not_judged_wrongly(simulation: ModuleType) -> None:
    assert simulation.decisions(200, 0.03, 200)["passed"] <= 2
    assert simulation.decisions(200, 0.0, 200)["failed"] <= 2


def test_the_gate_decides_correctly_with_enough_images(simulation: ModuleType) -> None:
    assert simulation.decisions(4000, 0.03, 20)["failed"] >= 18
    assert simulation.decisions(16_000, 0.0, 20)["passed"] >= 18


def test_old_rule_passes_undecidable_differences(simulation: ModuleType) -> None:
    found = list(simulation.checks(100, 0.03, 100))
    assert sum(replace(one, rule="significance").decision is Decision.PASSED for one in found) > 40
    assert sum(one.decision is Decision.PASSED for one in found) <= 3


def test_one_image_decides_nothing(fill: Fill) -> None:
    store = fill("one", {"new": 0.9, "old": 0.9}, images=1)
    new, old = (open_results(store, models=[name]) for name in ("new", "old"))
    verdict = gate(new, old, max_drop=0.01)
    assert verdict.decision is Decision.UNDECIDED
    assert verdict.drop is not None
    assert verdict.drop.high - verdict.drop.low > 0.5


def test_equal_predictions_still_have_an_interval(simulation: ModuleType) -> None:
    """Models with the same predictions for 50 images: a drop of a point is not excluded."""
    equal = simulation.simulate(np.random.default_rng(0), 50, 0.0, same=1.0, other=0.0)
    verdict = gate(*equal)
    assert verdict.drop is not None
    assert verdict.drop.value == 0
    assert verdict.drop.low < -0.01
    assert verdict.drop.high > 0.01
    assert verdict.decision is Decision.UNDECIDED


def test_a_model_against_itself_has_no_drop(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.8}))
    verdict = gate(results, results, max_drop=0.0)
    assert verdict.ok
    assert verdict.drop is not None
    assert verdict.drop.exact


def test_floors(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.9}))
    verdict = gate(results, require=0.5, min_clean=0.5, min_worst=0.5)
    assert [one.name for one in verdict.checks] == ["value", "clean", "worst"]
    assert verdict.ok
    assert verdict.reference is None
    assert gate(results, min_clean=0.999).decision is Decision.FAILED
    worst = gate(results, min_worst=0.78).checks[0]
    assert worst.decision is Decision.UNDECIDED
    both = gate(results, require=0.99, min_worst=0.78)
    assert both.decision is Decision.FAILED


def test_mce_must_be_at_most(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.9}))
    assert gate(results, metric="mce", require=9.0).ok
    assert gate(results, metric="mce", require=0.5).decision is Decision.FAILED


def test_clusters_make_the_gate_less_sure(fill: Fill) -> None:
    store = fill("s", {"new": 0.85, "old": 0.9})
    new, old = (open_results(store, models=[name]) for name in ("new", "old"))
    ids = new.predictions("new").ids
    alone = gate(new, old)
    together = gate(new, old, clusters={image: str(i // 60) for i, image in enumerate(ids)})
    assert (together.images, together.clusters) == (300, 5)
    assert together.drop is not None
    assert alone.drop is not None
    assert together.drop.half_width > 2 * alone.drop.half_width


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "at least one of reference"),
        ({"min_clean": 80}, "min_clean must be .* 0 to 1, got 80"),
        ({"require": float("nan")}, "require must be"),
        ({"require": 1.01}, r"require must be .* for mean_accuracy, got 1.01"),
        ({"min_clean": 0.5, "max_drop": -1}, "max_drop must be"),
        ({"min_clean": 0.5, "metric": "mcee"}, "did you mean 'mce'"),
    ],
)
def test_invalid_options_are_reported(fill: Fill, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        gate(open_results(fill("s", {"net": 0.9})), **options)


def own_suite(baseline: str) -> Suite:
    values = {"severities": [1], "corruptions": ["fog"], "metrics": ["mce", "mean_accuracy"]}
    return Suite(name="own", version=1, dataset="digits", scale="imagenet", baseline=baseline, **values)  # type: ignore[arg-type]


def test_another_number_is_not_judged_in_place_of_one_without_its_baseline(fill: Fill) -> None:
    store = fill("s", {"net": 0.9, "new": 0.9}, suite=own_suite("old"))
    new, net = (open_results(store, models=[name]) for name in ("new", "net"))
    says = r"unknown baseline 'old' of own@1; available: new, net"
    with pytest.raises(UnknownNameError, match=says):
        gate(new, net)
    with pytest.raises(UnknownNameError, match=says):
        spread_of_results(new, net)
    with pytest.raises(UnknownNameError, match=says.replace("new, net", "net, new")):
        spread_of_results(net)
    assert spread_of_results(net, metric="mean_accuracy").metric == "mean_accuracy"
    assert gate(new, net, metric="mean_accuracy").metric == "mean_accuracy"
    old = fill("t", {"old": 0.5}, suite=own_suite("old"))
    assert gate(new, open_results(old)).metric == "mce"


@pytest.mark.parametrize("name", ["old", "alexnet"])
def test_the_baseline_is_that_of_a_report(fill: Fill, name: str) -> None:
    """A model of the store that is not compared can be the baseline, also with a published name."""
    store = fill("s", {"net": 0.8, "new": 0.9, name: 0.5}, suite=own_suite(name))
    new, net = (open_results(store, models=[model]) for model in ("new", "net"))
    reported = {one.model: one.metrics["mce"] for one in score(open_results(store)).models}
    verdict = gate(new, net)
    assert (verdict.metric, verdict.value, verdict.reference_value) == (
        "mce",
        reported["new"],
        reported["net"],
    )
    assert gate(new, require=1.0, baseline=name).value == reported["new"]
    assert spread_of_results(new, net).metric == "mce"


def test_plan_and_gate_explain_another_number_alike(fill: Fill) -> None:
    """It does not silently use the next metric of the suite."""
    store = fill("s", {"new": 0.9, "net": 0.8, "old": 2.0}, suite=own_suite("old"))
    new, net = (open_results(store, models=[model]) for model in ("new", "net"))
    notes = gate(new, net).notes
    assert notes[0].startswith("mCE is not shown: not enough images")
    for spread in (spread_of_results(new, net), spread_of_results(new)):
        assert spread.metric == "mean_accuracy"
        assert notes[0] in spread.notes
    assert spread_of_results(new, net, metric="mean_accuracy").notes == ()
    with pytest.raises(OptionError, match=r"mean_accuracy\..*0.*300"):
        gate(new, net, metric="mce")


def test_no_number_of_images_is_estimated_from_a_baseline_without_errors(fill: Fill) -> None:
    """There is no recommended number of images for a baseline without errors."""
    store = fill("s", {"new": 0.9, "old": 2.0}, suite=own_suite("old"))
    output = gate(open_results(store, models=["new"]), require=0.5).notes[0]
    assert "0 of 300 under fog" in output
    assert "would suffice" not in output


def test_baselines_of_two_stores(fill: Fill) -> None:
    suite = own_suite("old")
    new = open_results(fill("s", {"new": 0.9, "old": 0.5}, suite=suite), models=["new"])
    same = open_results(fill("t", {"net": 0.8, "old": 0.5}, suite=suite), models=["net"])
    assert join_results([new, same]).possible_baselines == ("new", "net", "old")
    assert gate(new, same).metric == "mce"
    net = fill("u", {"net": 0.8}, suite=suite)
    fill("u", {"old": 0.5}, suite=suite, weights="2")
    other = open_results(net, models=["net"])
    assert join_results([new, other]).possible_baselines == ("new", "net", "old (s)", "old (u)")
    with pytest.raises(UnknownNameError, match=r"new, net, old \(s\), old \(u\)"):
        gate(new, other)
    message = r"old is ambiguous: old \(s\) or old \(u\); pass one as baseline"
    with pytest.raises(UnknownNameError, match=message):
        gate(new, other, baseline="old")
    notes = score(join_results([new, other]), calibration=False).notes
    assert re.match(f"The suite's baseline is not used: {message}", notes[0])
    assert gate(new, other, baseline="old (s)").value == gate(new, same).value
    requested = open_results(net, models=["old"])  # comes before another of its name
    joined = join_results([new, requested])
    assert joined.possible_baselines == ("new", "old", "net")
    assert joined.cells["old"] == requested.cells["old"]


def test_a_baseline_that_several_stores_have_is_found_by_its_name(fill: Fill) -> None:
    """A name that two stores share is found, as `old (s)` and `old (t)`."""
    suite = own_suite("old")
    mine = open_results(fill("s", {"new": 0.9, "old": 0.5}, suite=suite))
    yours = open_results(fill("t", {"net": 0.8, "old": 0.5}, suite=suite))
    joined = join_results([mine, yours])
    assert joined.models == ("new", "old (s)", "net", "old (t)")
    assert joined.possible_baselines == (*joined.models, "old")
    scores = score(joined, calibration=False)
    assert scores.baseline is not None
    assert scores.baseline.name == "old"
    alone = {one.model: one.metrics["mce"] for one in score(mine, calibration=False).models}
    assert next(one for one in scores.models if one.model == "new").metrics["mce"] == alone["new"]
    other = fill("u", {"old": 0.5}, suite=suite, weights="2")
    assert "old" not in join_results([mine, open_results(other)]).possible_baselines


def test_the_model_itself_is_the_baseline_and_the_reference(fill: Fill) -> None:
    """A model can be the reference and the baseline of itself."""
    old = open_results(fill("s", {"new": 0.9, "old": 0.5}, suite=own_suite("old")), models=["old"])
    assert join_results([old, old]).models == ("old",)
    verdict = gate(old, old)
    assert (verdict.metric, verdict.value.value, verdict.decision) == ("mce", 1, "passed")


def test_rescored_predictions_are_not_used_as_a_baseline(fill: Fill) -> None:
    store = fill("s", {"new": 0.9, "old": 0.5}, suite=own_suite("old"))
    assert open_results(store, models=["new"]).others.keys() == {"old"}
    assert open_results(store, models=["new"], convention="all").others == {}


def test_results_in_memory(fill: Fill) -> None:
    """Gates and plans accept results without a store, with equal or different names."""
    results = open_results(fill("s", {"one": 0.9, "two": 0.6}))
    one, two = (results.predictions(name) for name in ("one", "two"))
    for first, second in (("net", "net"), ("old", "new")):
        old, new = Results.of(results.suite, {first: one}), Results.of(results.suite, {second: two})
        verdict = gate(new, old, metric="mean_accuracy", require=0.5, min_worst=0.1)
        assert verdict.drop is not None
        assert verdict.drop.value > 0
        assert spread_of_results(new, old, metric="mean_accuracy").measured > 0
        assert spread_of_results(new, metric="mean_accuracy").measured == 0
        assert len(compare(join_results([new, old])).differences) > 0


def test_a_repeated_gate_is_wrong_only_without_always_valid_intervals(simulation: ModuleType) -> None:
    """The true drop is the limit, so that both decisions are wrong; each gate is looked at 13 times."""
    wrong = {}
    for always_valid in (False, True):
        rng = np.random.default_rng(3)
        ended = [
            simulation.repeat(
                *simulation.simulate(rng, 4000, 0.01), always_valid=always_valid, looks=range(100, 4000, 300)
            )
            for _ in range(40)
        ]
        wrong[always_valid] = sum(one.decision is not Decision.UNDECIDED for one in ended)
    assert wrong[True] <= 2
    assert wrong[False] > wrong[True]


def test_an_always_valid_gate_stops_early_at_a_large_drop(simulation: ModuleType) -> None:
    rng = np.random.default_rng(4)
    ended = [simulation.repeat(*simulation.simulate(rng, 4000, 0.08), always_valid=True) for _ in range(20)]
    assert all(one.decision is Decision.FAILED for one in ended)
    assert np.mean([one.images for one in ended]) < 1000


def test_an_always_valid_gate_has_wider_intervals_in_all_checks(fill: Fill) -> None:
    store = fill("s", {"new": 0.8, "old": 0.9})
    new, old = (open_results(store, models=[name]) for name in ("new", "old"))
    limits: dict[str, Any] = {"require": 0.5, "min_clean": 0.5, "min_worst": 0.2}
    fixed, valid = (gate(new, old, **limits, always_valid=which) for which in (False, True))
    assert len(fixed.checks) == 4
    for one, other in zip(fixed.checks, valid.checks, strict=True):
        assert other.estimate.value == pytest.approx(one.estimate.value)
        assert other.estimate.half_width > one.estimate.half_width
        assert other.always_valid
        if one.images_needed is not None and other.form is not None:
            assert other.images_needed is None or other.images_needed >= one.images_needed
