"""Selective prediction and prediction sets from stored predictions."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort._core.errors import OptionError
from beaufort.evaluation import RunOptions
from beaufort.metrics import accuracy_at_coverage, area_under_risk_coverage, fit_temperature
from beaufort.models import as_model
from beaufort.results import (
    Results,
    evaluate,
    gate,
    open_results,
    score_abstention,
    selective_by_severity,
    sets_by_severity,
)
from beaufort.results.abstention import _set_score, aurc_form, selective_form, stored_logits
from beaufort.store import FileStore
from beaufort.suites import Suite
from tests.commands import invoke, shows

Fill = Callable[..., FileStore]

CLASSES = 6


def outputs(images: np.ndarray) -> np.ndarray:
    """Return overconfident logits of a class that the gray value of an image hints at."""
    gray = images.mean(axis=(1, 2, 3))
    noise = images[:, ::7, ::5, 0].astype(np.float64).std(axis=(1, 2))
    centers = np.linspace(40, 215, CLASSES)
    return np.asarray(-(((gray[:, None] - centers) / (9 + noise[:, None] / 8)) ** 2), np.float32)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a store with all logits of one model on 240 gray images, clean and with two corruptions."""
    rng = np.random.default_rng(0)
    labels = np.arange(240) % CLASSES
    gray = np.linspace(40, 215, CLASSES)[labels] + rng.normal(0, 14, 240)
    images = np.clip(gray[:, None, None, None] + rng.normal(0, 10, (240, 32, 32, 3)), 0, 255).astype(np.uint8)
    suite = Suite(
        name="two",
        version=1,
        dataset="arrays",
        scale="cifar",
        corruptions=("fog", "contrast"),
        severities=(1, 5),
    )
    model = as_model(outputs, name="net", classes=CLASSES, version="1")
    store = str(tmp_path_factory.mktemp("kept") / "store")
    evaluate(model, suite, (images, labels), store, options=RunOptions(keep_logits=True))
    return store


@pytest.fixture(scope="module")
def results(kept: str) -> Results:
    return open_results(kept)


def test_numbers_agree_with_the_metrics(results: Results) -> None:
    (found,) = score_abstention(results, coverage=0.7)
    one = results.predictions("net")
    assert found.images == 240
    for row, condition in enumerate(found.conditions):
        confidence, correct = one.confidence[row], one.correct[row]
        assert condition.aurc.value == pytest.approx(area_under_risk_coverage(confidence, correct), abs=1e-9)
        assert condition.selective.value == pytest.approx(
            accuracy_at_coverage(confidence, correct, 0.7), abs=1e-9
        )
        assert condition.accuracy.value == correct.mean()


def test_sets_keep_their_coverage_on_clean_images_and_lose_it_under_a_shift(results: Results) -> None:
    (found,) = score_abstention(results)
    assert found.scaling is not None
    assert 80 < found.calibrated_on < 160
    assert [score.method for score in found.conditions[0].sets] == ["lac", "aps", "raps"]
    for score in found.conditions[0].sets:
        assert score.coverage.n == 240 - found.calibrated_on
        assert 1 <= score.size.high <= CLASSES
    halves = [score_abstention(results, seed=seed)[0].conditions[0] for seed in range(12)]
    for number in range(3):
        assert 0.87 <= np.mean([one.sets[number].coverage.value for one in halves]) <= 0.93
    worst = min(found.conditions, key=lambda one: one.accuracy.value)
    assert worst.sets[0].coverage.high < 0.9


def test_sets_agree_with_a_loop(results: Results) -> None:
    """LAC: the threshold is an order statistic of 1 - p of the labels of clean calibration images."""
    from beaufort.results.abstention import _Split

    (found,) = score_abstention(results, set_coverage=0.8)
    one = results.predictions("net")
    chosen = _Split.of(one, None, None, 0).calibrating

    def rows(condition: Any) -> list[list[float]]:
        logits = stored_logits(results, "net", condition, one.ids)
        assert logits is not None
        wide = np.exp(logits.astype(np.float64))
        return list((wide / wide.sum(axis=1, keepdims=True)).tolist())

    clean = rows(one.conditions[0])
    ordered = sorted(1 - clean[i][one.labels[i]] for i in range(240) if chosen[i])
    threshold = ordered[int(np.ceil((len(ordered) + 1) * 0.8)) - 1]
    for number, condition in enumerate(one.conditions):
        p = rows(condition)
        judged = [i for i in range(240) if not chosen[i]]
        sets = {i: [k for k in range(CLASSES) if 1 - p[i][k] <= threshold] for i in judged}
        score = found.conditions[number].sets[0]
        hits = np.mean([one.labels[i] in sets[i] for i in judged])
        assert score.coverage.value == pytest.approx(hits, abs=1e-9)
        assert score.size.value == pytest.approx(np.mean([len(some) for some in sets.values()]), abs=1e-9)
    logits = stored_logits(results, "net", one.conditions[0], one.ids)
    assert logits is not None
    assert found.scaling is not None
    assert found.scaling.temperature == fit_temperature(logits[chosen], one.labels[chosen])


def test_the_temperature_lowers_the_loss_on_clean_images(results: Results) -> None:
    (found,) = score_abstention(results)
    assert found.scaling is not None
    before, after = found.scaling.before["clean"].nll, found.scaling.after["clean"].nll
    assert before is not None
    assert after is not None
    assert after.value < before.value
    assert list(found.scaling.before) == ["clean", "1", "5"]
    assert found.scaling.after["5"].accuracy == found.scaling.before["5"].accuracy


def test_clusters_are_in_one_half(results: Results) -> None:
    ids = results.predictions("net").ids
    clusters = {image: str(i // 8) for i, image in enumerate(ids)}
    (found,) = score_abstention(results, clusters=clusters)
    assert found.calibrated_on % 8 == 0
    assert found.conditions[0].aurc.n == 30
    assert found.conditions[0].sets[0].coverage.n == 30 - found.calibrated_on // 8


def test_missing_logits_error_names_the_option(fill: Fill) -> None:
    store = fill("s", {"net": 0.8}).location
    (found,) = score_abstention(open_results(store))
    assert found.scaling is None
    assert not found.conditions[0].sets
    assert "keep_logits=true" in found.notes[0]
    text = invoke("report", store, "--table", "abstention")
    assert "digits/fog" in text.replace("\\", "")
    assert "keep_logits=true" in text.replace("\\", "")


def test_the_table(kept: str, tmp_path: Path) -> None:
    text = invoke("report", kept, "--table", "abstention")
    assert "RAPS set size" in text
    assert "| severity 5 |" in text
    (facts,) = json.loads(invoke("report", kept, "--table", "abstention", "--format", "json"))
    assert facts["temperature"] > 0
    target = tmp_path / "numbers.csv"
    invoke("report", kept, "--table", "abstention", "-o", str(target))
    with target.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = {(row["condition"], row["number"]): float(row["value"]) for row in rows}
    for where, values in facts["numbers"].items():
        for name, value in values.items():
            assert numbers[where, name] == pytest.approx(value["value"])
    for words in (["--table", "abstention,measure=error"], ["--table", "abstention", "--title", "T"]):
        assert "abstention" in invoke("report", kept, "--format", "md", *words, code=2)
    invoke("report", kept, "--table", "abstention", "--format", "latex", code=2)


def test_the_page_has_means_by_severity(kept: str, results: Results, tmp_path: Path) -> None:
    (found,) = score_abstention(results)
    by_severity = selective_by_severity(results.predictions("net"))
    assert list(by_severity) == ["clean", "1", "5"]
    assert by_severity["clean"].aurc == found.conditions[0].aurc
    strong = [one for one in found.conditions if one.condition.severity == 5]
    assert by_severity["5"].aurc.value == pytest.approx(np.mean([one.aurc.value for one in strong]))
    assert by_severity["5"].selective.value == pytest.approx(np.mean([one.selective.value for one in strong]))
    target = tmp_path / "report.html"
    invoke("report", kept, "-o", str(target))
    page = target.read_text(encoding="utf-8")
    assert "AURC, severity 5" in page
    assert f"{100 * by_severity['5'].aurc.value:.1f}" in page


def test_fractions_are_not_percent(results: Results) -> None:
    with pytest.raises(OptionError, match="coverage"):
        score_abstention(results, coverage=80)


def test_intervals_stay_between_0_and_1(fill: Fill) -> None:
    for skill in (0.0, 1.0):
        store = fill(f"s{skill}", {"net": skill}, alike=0, images=30)
        (found,) = score_abstention(open_results(store))
        for one in found.conditions:
            for value in (one.aurc, one.selective):
                assert 0 <= value.low <= value.value + 1e-12
                assert value.value - 1e-12 <= value.high <= 1 + 1e-12
                assert value.low < value.high


def draw(rng: np.random.Generator, n: int, accuracy: float, slope: int) -> tuple[np.ndarray, np.ndarray]:
    confidence = rng.random(n)
    chance = 1 - (1 - accuracy) * (1 + slope) * (1 - confidence) ** slope
    return confidence, rng.random(n) < chance


@pytest.mark.parametrize(
    ("images", "accuracy", "slope"),
    [(30, 0.6, 1), (200, 0.3, 0), (200, 0.75, 3), (400, 0.9, 3), (100, 0.98, 1)],
)
def test_intervals_cover(images: int, accuracy: float, slope: int) -> None:
    rng = np.random.default_rng(1)
    many = draw(rng, 1_000_000, accuracy, slope)
    area, selected = area_under_risk_coverage(*many), accuracy_at_coverage(*many, 0.8)
    hits = np.zeros(2)
    for _ in range(400):
        one = draw(rng, images, accuracy, slope)
        first, second = aurc_form(*one).estimate(0.95), selective_form(*one, 0.8).estimate(0.95)
        hits += [first.low <= area <= first.high, second.low <= selected <= second.high]
    assert hits.min() >= 0.93 * 400


def test_sets_by_severity(kept: str, results: Results, tmp_path: Path) -> None:
    (found,), (by_severity,) = score_abstention(results), sets_by_severity(results)
    assert list(by_severity.scores) == ["clean", "1", "5"]
    assert by_severity.scores["clean"] == found.conditions[0].sets
    strong = [one.sets for one in found.conditions if one.condition.severity == 5]
    for number, score in enumerate(by_severity.scores["5"]):
        assert score.coverage.value == pytest.approx(np.mean([one[number].coverage.value for one in strong]))
        assert score.size.value == pytest.approx(np.mean([one[number].size.value for one in strong]))
    target = tmp_path / "report.html"
    invoke("report", kept, "-o", str(target))
    page = target.read_text(encoding="utf-8")
    assert "Coverage, severity 5" in page
    assert f"{100 * by_severity.scores['5'][0].coverage.value:.1f}" in page


def test_floors_in_the_gate(kept: str, results: Results) -> None:
    (found,) = sets_by_severity(results)
    for group in ("clean", "1", "5"):
        value = found.scores[group][0].coverage
        for limit, decision in ((value.low - 0.01, "passed"), (value.high + 0.01, "failed")):
            (check,) = gate(results, floors={f"lac@{group}": limit}).checks
            assert (check.name, check.decision, check.estimate) == (f"lac@{group}", decision, value)
    (check,) = gate(results, floors={"aps@5": found.scores["5"][1].coverage.value - 0.001}).checks
    assert check.decision == "undecided"
    assert check.images_needed is not None
    assert check.images_needed > 240  # all images, of which half calibrate
    wide = gate(results, floors={"lac@5": 0.5}, always_valid=True).checks[0].estimate
    assert wide.high - wide.low > found.scores["5"][0].coverage.high - found.scores["5"][0].coverage.low
    text = invoke("gate", "net", "--store", kept, "--require", "lac@clean=1,raps@5=1,clean=10")
    assert shows(text, "coverage of LAC", "clean images", "90 %", "at least 1 %")
    assert shows(text, "coverage of RAPS", "severity 5")
    invoke("gate", "net", "--store", kept, "--require", "lac@5=99.9", code=1)
    for wrong in ("lac@7=50", "top@5=50", "lac@5=500", "lac=50"):
        assert wrong.partition("=")[0] in invoke("gate", "net", "--store", kept, "--require", wrong, code=2)


def test_a_floor_requires_logits(fill: Fill) -> None:
    store = fill("s", {"net": 0.8}).location
    assert "keep_logits=true" in invoke(
        *("gate", "net", "--store", store, "--require", "lac@3=50"), code=2
    ).replace("\n", "")


def test_intervals_of_coverage_by_severity_cover() -> None:
    """The mean over conditions of one image is between 0 and 1, and the conditions depend on each other."""
    rng = np.random.default_rng(2)
    chances = np.array([0.95, 0.85, 0.6])
    many = np.random.default_rng(3).random((1_000_000, 2))
    truth = np.mean([(many[:, 0] * 0.6 + 0.4 * many[:, 1] < chance).mean() for chance in chances])
    hits = 0
    for _ in range(400):
        hard = rng.random(100)[:, None]
        contained = [hard[:, 0] * 0.6 + 0.4 * rng.random(100) < chance for chance in chances]
        one = _set_score("lac", contained, [np.full(100, 0.1)] * 3, 10, None, 0.95).coverage
        hits += one.low <= truth <= one.high
    assert hits >= 0.93 * 400
