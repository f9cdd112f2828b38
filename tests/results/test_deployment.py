"""Flips between two versions of a model, and the test that they are few under every condition."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from beaufort._core.errors import OptionError
from beaufort.metrics.stats import clopper_pearson
from beaufort.results import (
    Decision,
    Predictions,
    Results,
    compare_deployment,
    gate,
    join_results,
    largest_flips,
    open_results,
)
from beaufort.store import FileStore
from beaufort.suites import Suite
from tests.commands import invoke

Fill = Callable[..., FileStore]

SUITE = Suite(
    name="two", version=1, dataset="digits", scale="mnist", corruptions=("fog", "shear"), severities=(1, 5)
)
SHORT = replace(SUITE, severities=(3,))


@pytest.fixture
def pair(fill: Fill) -> Results:
    return open_results(fill("s", {"a": 0.9, "b": 0.8}, suite=SUITE))


def test_flips_agree_with_a_loop(pair: Results) -> None:
    found = compare_deployment(pair, ["a", "b"])
    a, b = pair.predictions("a"), pair.predictions("b")
    images: dict[str, int] = {}
    for row, one in enumerate(found.conditions):
        broken = fixed = changed = 0
        for place, label in enumerate(a.labels):
            first, second = a.top[row, place, 0], b.top[row, place, 0]
            broken += first == label and second != label
            fixed += first != label and second == label
            changed += first != label and second not in (label, first)
            if first != second:
                images[a.ids[place]] = images.get(a.ids[place], 0) + 1
        n = len(a)
        assert one.condition == a.conditions[row]
        assert one.broken == clopper_pearson(broken, n)
        assert one.fixed == clopper_pearson(fixed, n)
        assert one.changed == clopper_pearson(changed, n)
        assert one.flips == clopper_pearson(broken + fixed + changed, n)
        assert one.agreement.value == 1 - one.flips.value
        assert one.first.value - one.second.value == pytest.approx((broken - fixed) / n, abs=1e-12)
    assert {image.id: len(image.flips) for image in found.images} == images
    counts = [len(image.flips) for image in found.images]
    assert counts == sorted(counts, reverse=True)
    mean = np.mean([one.flips.value for one in found.conditions])
    assert found.agreement.value == pytest.approx(1 - mean, abs=1e-12)
    assert {one.metric for one in found.calibration} >= {"ece", "nll"}
    assert found.most_flips.flips.value == max(one.flips.value for one in found.conditions)


def predictions(top: np.ndarray, labels: np.ndarray, model: str = "net") -> Predictions:
    """Return predictions of these classes, `(conditions, images)`, under clean images, fog and shear."""
    conditions = tuple(SHORT.conditions("digits"))
    zero = np.zeros(top.shape, np.float32)
    ids = tuple(str(i) for i in range(top.shape[1]))
    return Predictions(
        model, conditions, ids, labels.astype(np.int32), top[..., None], zero + 0.9, zero, zero, zero, 0
    )


def made(rng: np.random.Generator, images: int, rates: list[float]) -> tuple[Predictions, Predictions]:
    """Return a model, and a version whose predictions flip at a rate under each condition."""
    first = np.zeros((len(rates), images), np.int32)
    second = (rng.random(first.shape) < np.array(rates)[:, None]).astype(np.int32)
    labels = np.zeros(images)
    return predictions(first, labels), predictions(second, labels)


def test_the_gap_opens_where_more_is_lost_than_on_clean_images() -> None:
    first, second = made(np.random.default_rng(0), 500, [0.02, 0.2, 0.02])
    conditions = first.conditions
    results = Results.of(SHORT, {"a": first, "b": second})
    found = compare_deployment(results)
    assert [one.condition for one in found.opening] == [conditions[1]]
    clean, fog, _ = found.conditions
    assert clean.gap is None
    assert fog.gap is not None
    lost = [one.first.value - one.second.value for one in (clean, fog)]
    assert fog.gap.value == pytest.approx(lost[1] - lost[0], abs=1e-12)
    assert fog.gap.low > 0


@pytest.mark.parametrize("rates", [[0.02, 0.02, 0.02], [0.0, 0.0, 0.03], [0.3, 0.29, 0.1]])
def test_the_interval_of_the_largest_fraction_covers(rates: list[float]) -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        estimate = largest_flips(*made(rng, 150, rates)).estimate
        hits += estimate.low <= max(rates) <= estimate.high
    assert hits >= 0.93 * 300


def test_equivalence_is_an_intersection_union_test() -> None:
    """No condition is adjusted for a pass, and each is for a failure."""
    first, second = made(np.random.default_rng(0), 400, [0.0, 0.0, 0.0])
    assert largest_flips(first, second).estimate.high == pytest.approx(clopper_pearson(0, 400).high)
    first, second = made(np.random.default_rng(0), 400, [0.0, 0.1, 0.0])
    estimate = largest_flips(first, second).estimate
    hits = round(400 * estimate.value)
    assert estimate.low == pytest.approx(clopper_pearson(hits, 400, 1 - 0.05 / 3).low)
    assert estimate.high == pytest.approx(clopper_pearson(hits, 400).high)


def test_the_gate_has_three_decisions() -> None:
    first, second = made(np.random.default_rng(0), 400, [0.01, 0.05, 0.01])
    old = Results.of(SHORT, {"old": predictions(first.top[..., 0], first.labels, "old")})
    new = Results.of(SHORT, {"new": predictions(second.top[..., 0], second.labels, "new")})
    decisions = {}
    for limit in (0.2, 0.05, 0.01):
        check = next(one for one in gate(new, old, max_flips=limit).checks if one.name == "flips")
        decisions[limit] = check.decision
        assert check.limit == limit
    assert list(decisions.values()) == [Decision.PASSED, Decision.UNDECIDED, Decision.FAILED]
    always = next(
        one for one in gate(new, old, max_flips=0.05, always_valid=True).checks if one.name == "flips"
    )
    once = next(one for one in gate(new, old, max_flips=0.05).checks if one.name == "flips")
    assert always.estimate.half_width > once.estimate.half_width
    assert (once.images_needed or 0) > 400


def test_an_undecided_gate_reports_the_images_of_the_adjusted_interval() -> None:
    first, second = made(np.random.default_rng(0), 400, [0.0, 0.03, 0.0])
    flips = second.top[..., 0] != 0
    rate = float(flips[1].mean())
    limit = clopper_pearson(int(flips[1].sum()), 400).low - 0.0005  # excluded, were it one condition
    old = Results.of(SHORT, {"old": predictions(first.top[..., 0], first.labels, "old")})
    new = Results.of(SHORT, {"new": predictions(second.top[..., 0], second.labels, "new")})
    check = next(one for one in gate(new, old, max_flips=limit).checks if one.name == "flips")
    assert check.decision is Decision.UNDECIDED
    needed = check.images_needed
    assert needed is not None
    assert needed > 410
    assert clopper_pearson(round(rate * needed), needed, 1 - 0.05 / 3).low == pytest.approx(limit, abs=0.002)


def test_a_model_agrees_with_itself_exactly(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.8}))
    verdict = gate(results, results, max_drop=0.0, max_flips=0.0)
    assert verdict.ok
    with pytest.raises(OptionError, match="net"):
        compare_deployment(join_results([results, results]))


def test_max_flips_requires_a_reference(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.8}))
    with pytest.raises(OptionError, match="reference"):
        gate(results, max_flips=0.01, require=0.5)


def test_the_commands(fill: Fill) -> None:
    store = fill("s", {"b": 0.8, "a": 0.9}).location
    words = ("compare", "b", "a", "--store", store, "--deployment")
    text = invoke(*words)
    assert text.startswith("a instead of b, mnist-c@1 on digits, 300 images")
    assert "digits/fog" in text
    facts = json.loads(invoke(*words, "--json"))
    assert (facts["first"], facts["second"], facts["images"]) == ("b", "a", 300)
    assert len(facts["conditions"]) == 16
    flips = sum(len(image["flips"]) for image in facts["flipped_images"])
    assert flips == sum(round(300 * one["flips"]["value"]) for one in facts["conditions"])
    assert "--baseline" in invoke(*words, "--baseline", "a", code=2)
    assert "--max-flips requires --reference" in invoke(
        "gate", "a", "--store", store, "--max-flips", "1", code=2
    )
    gated = ("gate", "a", "--reference", "b", "--store", store, "--max-drop", "50", "--max-flips")
    assert "gate: passed" in invoke(*gated, "60")
    assert "gate: failed" in invoke(*gated, "1", code=1)
    checks = json.loads(invoke(*gated, "60", "--json"))["checks"]
    assert [one["name"] for one in checks] == ["drop", "flips"]
