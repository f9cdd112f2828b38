"""From a store to metrics: the right predictions, formulas and errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.metrics import get_baseline, published_table
from beaufort.metrics.stats import clopper_pearson
from beaufort.report import to_text
from beaufort.results import (
    Results,
    ResultsError,
    compare,
    gate,
    join_results,
    open_results,
    open_targets,
    score,
    spread_of_results,
)
from beaufort.results.baseline import published_baseline
from beaufort.results.metric_forms import columns_of, find_divisor, metric_forms
from beaufort.store import Cell, FileStore, without_prediction
from beaufort.suites import Suite, get_suite
from tests.commands import shows

Fill = Callable[..., FileStore]

SMALL = Suite(
    name="small",
    version=1,
    dataset="digits",
    scale="imagenet",
    corruptions=("fog", "contrast"),
    severities=(1, 2, 3, 4, 5),
    baseline="alexnet",
    metrics=("mce", "relative_mce"),
)


def test_headline_numbers_against_plain_arithmetic(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.8}, suite=SMALL))
    one = score(results, resamples=200).models[0]
    predictions = results.predictions("net")
    wrong = 1 - predictions.correct.mean(axis=1)
    table = {(c.corruption, c.severity): e for c, e in zip(predictions.conditions, wrong, strict=True)}
    alexnet = get_baseline("alexnet")
    assert alexnet.clean is not None
    ratios, lost = [], []
    for name in SMALL.corruptions:
        base = alexnet.errors[name]
        ratios.append(sum(table[name, s] for s in range(1, 6)) / sum(base))
        gain = sum(table[name, s] - table[None, None] for s in range(1, 6))
        lost.append(gain / sum(b - alexnet.clean for b in base))
        assert one.ce[name].value == pytest.approx(ratios[-1])
        assert one.corruptions[name].value == pytest.approx(np.mean([table[name, s] for s in range(1, 6)]))
    assert list(one.metrics) == ["mce", "relative_mce", "mean_accuracy"]
    assert one.metrics["mce"].value == pytest.approx(np.mean(ratios))
    assert one.metrics["relative_mce"].value == pytest.approx(np.mean(lost))
    corrupted = [error for (name, _), error in table.items() if name]
    assert one.metrics["mean_accuracy"].value == pytest.approx(1 - np.mean(corrupted))
    for estimate in one.metrics.values():
        assert estimate.low < estimate.value < estimate.high
        assert estimate.n == 300
    hits = int(predictions.correct[0].sum())
    assert one.clean == clopper_pearson(hits, 300)


def test_the_mean_of_mnist_c_counts_the_clean_digits(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.8}))
    one = score(results, resamples=50).models[0]
    assert one.headline.value == pytest.approx(results.predictions("net").correct.mean())
    assert len(results.predictions("net").conditions) == 16


def test_conv1_against_itself_is_one() -> None:
    """A network with the baseline's own errors has a relative mCE of 100 %, whatever they are."""
    suite = get_suite("mnist-c")
    reference = published_baseline(suite, "conv1")
    assert reference.errors is not None
    columns = columns_of(suite)
    means = np.array([reference.clean if name is None else reference.errors[name] for name in columns])
    images = 10_000
    errors = (np.arange(images)[:, None] < np.round(means * images)).astype(float)
    made = metric_forms(suite, columns, "conv1 again", errors, find_divisor(reference, columns, None))
    assert made["relative_mce"].value == pytest.approx(1)
    assert made["mce"].value == pytest.approx(1)
    printed = published_table("mnist-c-figure2")["Conv1"]["mean_accuracy"]
    assert made["mean_accuracy"].value == pytest.approx(printed, abs=5e-5)


def test_a_stored_baseline_has_an_uncertainty_of_its_own(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.7, "old": 0.6}, suite=SMALL))
    scores = score(results, baseline="old", resamples=500)
    assert scores.baseline is not None
    assert scores.baseline.stored
    own = next(one for one in scores.models if one.model == "old").metrics["mce"]
    assert own.exact
    assert own.value == pytest.approx(1)
    net = next(one for one in scores.models if one.model == "net").metrics["mce"]
    assert net.low < net.value < net.high
    fixed = score(results, resamples=500)
    assert fixed.baseline is not None
    assert fixed.baseline.name == "alexnet"


def test_a_stored_baseline_that_may_lose_nothing_has_no_relative_mce(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.7, "old": 0.5}, suite=SMALL, images=20, alike=0))
    scores = score(results, baseline="old")
    assert list(scores.models[0].metrics) == ["mce", "mean_accuracy"]
    assert scores.models[0].relative_ce == {}
    assert any(shows(note, "Relative mCE", "not shown") for note in scores.notes)


def test_baseline_with_rare_errors_reports_the_images_needed(fill: Fill) -> None:
    """Resamples without errors under fog do not raise an error."""
    results = open_results(fill("s", {"net": 0.7, "old": 0.99}, suite=SMALL, images=35, alike=0))
    scores = score(results, baseline="old")
    assert list(scores.models[0].metrics) == ["mean_accuracy"]
    messages = [note for note in scores.notes if note.startswith("mCE is not shown: not enough images")]
    assert len(messages) == 1
    assert "350 images" in messages[0]


def test_values_are_exact(fill: Fill) -> None:
    """Resamples are made in single precision; what is printed as the value is not."""
    results = open_results(fill("s", {"net": 0.7}, suite=SMALL))
    one = score(results, resamples=50).models[0]
    predictions = results.predictions("net")
    wrong = (~predictions.correct[predictions.rows["fog"]]).sum()
    assert one.corruptions["fog"].value == pytest.approx(wrong / (5 * 300), abs=1e-15)


def test_mce_requires_a_baseline(fill: Fill) -> None:
    scores = score(open_results(fill("s", {"net": 0.7}, suite=SMALL)), baseline="none", resamples=50)
    assert list(scores.models[0].metrics) == ["mean_accuracy"]
    assert scores.models[0].ce == {}
    with pytest.raises(UnknownNameError, match="did you mean 'alexnet'"):
        score(open_results(fill("s", {"net": 0.7}, suite=SMALL)), baseline="alexnett")


def test_a_suite_baseline_without_predictions_is_reported(fill: Fill) -> None:
    """Other metrics are computed, and requesting a missing one by name is an error."""
    suite = Suite.from_dict({**SMALL.as_dict(), "baseline": "old"})
    scores = score(open_results(fill("s", {"net": 0.7}, suite=suite)), resamples=50)
    assert scores.baseline is None
    assert list(scores.models[0].metrics) == ["mean_accuracy"]
    assert any(note.startswith("The suite's baseline, old, is not used: ") for note in scores.notes)
    both = score(open_results(fill("t", {"net": 0.7, "old": 0.5}, suite=suite)), resamples=50)
    assert both.baseline is not None
    assert both.headline == "mce"


def test_the_suite_is_that_of_the_last_run_or_found(fill: Fill) -> None:
    assert open_results(fill("a", {"net": 0.7}, suite=SMALL)).suite == SMALL
    assert str(open_results(fill("b", {"net": 0.7}, record=False)).suite) == "mnist-c@1"
    with pytest.raises(ResultsError, match="--suite"):
        open_results(fill("c", {"net": 0.7}, suite=SMALL, record=False))
    assert open_results(fill("c", {"net": 0.7}, suite=SMALL, record=False), suite=SMALL).models == ("net",)


def test_incomplete_models_are_reported_and_omitted(fill: Fill, tmp_path: Path) -> None:
    results = open_results(fill("s", {"net": 0.7, "half": 0.6}, skip=3))
    assert results.models == ("net",)
    assert results.incomplete == {"half": 3}
    with pytest.raises(ResultsError, match=r"^half .*\b3 of .*\b16 .*mnist-c"):
        open_results(tmp_path / "s", models=["half"])  # net has them all
    with pytest.raises(ResultsError, match=r"^no model .*half .*\b3\b"):
        open_results(fill("t", {"half": 0.6}, skip=3), suite="mnist-c")
    with pytest.raises(ResultsError, match="has no predictions"):
        open_results(FileStore("memory://empty-results"))


def test_seeds_are_not_mixed(fill: Fill) -> None:
    fill("s", {"net": 0.7}, seed=0, record=False)
    both = fill("s", {"net": 0.7}, seed=1, record=False)
    with pytest.raises(ResultsError, match=r"2 seeds \(0, 1\)"):
        open_results(both, suite="mnist-c")
    assert open_results(both, suite="mnist-c", seed=1).setting.seed == 1
    with pytest.raises(ResultsError, match="seed 5"):
        open_results(both, suite="mnist-c", seed=5)


def test_two_models_of_one_name_are_distinguished(fill: Fill) -> None:
    store = fill("s", {"net": 0.7})
    for cell in list(store.cells().values()):
        other = Cell({**cell.model, "digest": "sha256:feed0123"}, cell.data, cell.condition)
        store.write(other, 0, store.read(cell).drop_columns(["place"]))
    assert open_results(store).models == ("net#feed0123", "net#net")


def test_unread_images_are_left_out_everywhere(fill: Fill) -> None:
    store = fill("s", {"net": 0.7})
    cell = next(iter(store.cells().values()))
    table = store.read(cell).drop_columns(["place"])
    lost = without_prediction(["digit/0"], [int(table["label"][0].as_py())], table.schema)
    import pyarrow as pa

    store.write(cell, 0, pa.concat_tables([lost, table.slice(1)]))
    predictions = open_results(store).predictions("net")
    assert len(predictions) == 299
    assert predictions.unread == 1
    assert predictions.ids[0] == "digit/1"
    message = "Omitted: 1 image without a prediction."
    scores = score(open_results(store), calibration=False)
    assert message in scores.notes
    assert all(message in to_text(scores, form) for form in ("md", "latex", "json", "card"))
    verdict = gate(open_results(store), min_clean=0.01)
    assert message in verdict.notes


def test_models_on_other_numbers_of_images_meet_on_the_common_ones(fill: Fill) -> None:
    store = fill("s", {"net": 0.7})
    short = {**next(iter(store.cells().values())).model, "name": "short", "digest": "sha256:short"}
    for cell in list(store.cells().values()):
        rows = store.read(cell).drop_columns(["place"]).slice(0, 120)
        store.write(Cell(short, cell.data, cell.condition), 0, rows)
    scores = score(open_results(store), resamples=50)
    assert scores.images == 120
    values = [one.headline.value for one in scores.models]
    assert values[0] == values[1]


def test_compare_counts_by_hand(fill: Fill) -> None:
    results = open_results(fill("s", {"good": 0.9, "bad": 0.5, "same": 0.5}))
    made = compare(results)
    assert len(made.differences) == 3 * 3  # pairs × metrics
    first, second = results.predictions("good"), results.predictions("bad")
    tests = (
        made.conditions["good", "bad"]
        if ("good", "bad") in made.conditions
        else made.conditions["bad", "good"]
    )
    fog = next(test for test in tests if test.condition.corruption == "fog")
    row = [c.corruption for c in first.conditions].index("fog")
    discordant = {
        int((first.correct[row] & ~second.correct[row]).sum()),
        int((~first.correct[row] & second.correct[row]).sum()),
    }
    assert {fog.only_first, fog.only_second} == discordant
    assert fog.p_holm >= fog.p
    ranking = {place.name: place for place in made.scores.ranking}
    assert ranking["good"].best == ranking["good"].worst == 1
    assert set(ranking["bad"].groups) & set(ranking["same"].groups)
    with pytest.raises(OptionError, match="at least two"):
        compare(results, ["good"])


def test_paired_intervals_are_narrower_than_unpaired(fill: Fill) -> None:
    """Pairing pays: both models find the same digits hard."""
    results = open_results(fill("s", {"a": 0.7, "b": 0.65}))
    made = compare(results)
    difference = next(one for one in made.differences if one.metric == "mean_accuracy")
    forms = made.scores.pairs.forms
    a, b = (forms[name]["mean_accuracy"] for name in "ab")
    both = (b - a).standard_error
    assert both is not None
    assert a.standard_error is not None
    assert b.standard_error is not None
    assert both < 0.8 * np.hypot(a.standard_error, b.standard_error)
    assert difference.difference.half_width > 1.96 * both  # adjusted for the family


def test_differences_of_equal_models_never_contradict_the_ranking(fill: Fill) -> None:
    """Intervals and letters are one statement: an interval without zero, and no letter in common."""
    for luck in range(5):
        skills = {f"net{i}": 0.7 for i in range(6)}
        made = compare(open_results(fill(f"s{luck}", skills, luck=luck, alike=0, images=120)))
        letters = {one.name: {*one.groups} for one in made.scores.ranking}
        headline = made.scores.headline
        for one in made.differences:
            assert one.significant == (one.p < 0.05)
            if one.metric == headline:
                assert one.significant == (not letters[one.first] & letters[one.second])


def test_three_perfect_images_are_not_certainty(fill: Fill) -> None:
    scores = score(open_results(fill("s", {"net": 2.0}, images=3)))
    one = scores.models[0]
    assert one.clean is not None
    assert one.headline is not None
    assert one.clean.value == one.headline.value == 1
    assert one.headline.low == pytest.approx(one.clean.low)
    assert any("Too few images" in note for note in scores.notes)
    for estimate in (*one.metrics.values(), *one.corruptions.values(), *one.ce.values()):
        assert estimate.low < estimate.high
    for calibration in one.calibration.values():
        for name in ("ece", "confidence", "nll", "brier", "entropy"):
            estimate = getattr(calibration, name)
            assert estimate.low < estimate.high


def test_a_corruption_of_one_condition_has_the_exact_interval(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.9}))
    one = score(results).models[0]
    wrong = int((~results.predictions("net").correct[1]).sum())
    name = results.suite.corruptions[0]
    exact = clopper_pearson(wrong, 300)
    assert (one.corruptions[name].low, one.corruptions[name].high) == pytest.approx((exact.low, exact.high))


def test_other_classes_than_the_baselines_have_no_mce(fill: Fill) -> None:
    """AlexNet's errors are among 1,000 classes, so they do not apply to five."""
    store = fill("s", {"net": 0.7}, suite=SMALL)
    run = store.runs()[0]
    facts = {key: run[key] for key in ("suite", "data", "seed", "models")}
    store.write_run(facts, {"images": 300, "classes": list("abcde"), "time": "2027"})
    scores = score(open_results(store))
    assert list(scores.models[0].metrics) == ["mean_accuracy"]
    message = "The suite's baseline, alexnet, is not used: the published errors of AlexNet"
    messages = [note for note in scores.notes if note.startswith(message)]
    assert len(messages) == 1
    assert "1,000 classes" in messages[0]
    with pytest.raises(ResultsError, match=r"'alexnet'.*1,000 classes.*'none'"):
        score(open_results(store), baseline="alexnet")


def test_clusters_widen_intervals(fill: Fill) -> None:
    """Ten copies of thirty images are thirty images."""
    results = open_results(fill("s", {"net": 0.7}))
    alone = score(results)
    together = score(results, clusters={f"digit/{i}": str(i // 10) for i in range(300)})
    assert together.clusters == 30
    assert together.models[0].headline.value == pytest.approx(alone.models[0].headline.value)
    assert together.models[0].headline.n == 30
    few = score(results, clusters={f"digit/{i}": str(i // 100) for i in range(300)}, calibration=False)
    assert any("Too few clusters: " in note and " of 3 " in note for note in few.notes)
    single = score(results, clusters={f"digit/{i}": str(i) for i in range(300)})
    assert single.models[0].headline.low == pytest.approx(alone.models[0].headline.low)
    with pytest.raises(ResultsError, match="images have no value"):
        score(results, clusters={"digit/0": "a"})
    with pytest.raises(ResultsError, match="at least two clusters"):
        score(results, clusters={f"digit/{i}": "a" for i in range(300)})


def test_the_worst_group(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.7}))
    named = {f"digit/{i}": "few" if i < 30 else "many" for i in range(300)}
    groups = score(results, groups=named).models[0].groups
    right = results.predictions("net").correct.mean(axis=0)
    assert groups is not None
    assert groups.accuracies["few"].value == pytest.approx(right[:30].mean())
    assert groups.worst.value == min(one.value for one in groups.accuracies.values())
    assert groups.worst.low <= groups.worst.value <= groups.worst.high
    assert groups.accuracies["few"].half_width > groups.accuracies["many"].half_width


def test_seeds_of_one_recipe(fill: Fill) -> None:
    results = open_results(fill("s", {"a": 0.7, "b": 0.72, "c": 0.5}))
    scores = score(results, seeds={"recipe": ["a", "b"]})
    spread = scores.seeds[0].metrics["mean_accuracy"]
    values = [one.metrics["mean_accuracy"].value for one in scores.models if one.model in "ab"]
    assert spread.mean.value == pytest.approx(np.mean(values))
    assert spread.deviation == pytest.approx(np.std(values, ddof=1))
    assert spread.mean.low < spread.mean.value < spread.mean.high
    with pytest.raises(OptionError, match="at least two models"):
        score(results, seeds={"recipe": ["a"]})
    with pytest.raises(OptionError, match="unknown model 'd'"):
        score(results, seeds={"recipe": ["a", "d"]})


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"images": 299}, "different data"),
        ({"seed": 1}, "seeds 0 and 1"),
        ({"suite": "mnist-c-extra"}, "mnist-c@1 and mnist-c-extra@1"),
    ],
)
def test_gate_rejects_incomparable_results(fill: Fill, other: dict[str, object], why: str) -> None:
    new = open_results(fill("new", {"net": 0.8}))
    old = open_results(fill("old", {"net": 0.8}, **other))
    with pytest.raises(ResultsError, match=why):
        gate(new, old)


def test_gate_rejects_another_version_of_the_suite(fill: Fill) -> None:
    second = Suite(**{**{f: getattr(SMALL, f) for f in SMALL.__dataclass_fields__}, "version": 2})
    new = open_results(fill("new", {"net": 0.8}, suite=second))
    old = open_results(fill("old", {"net": 0.8}, suite=SMALL))
    with pytest.raises(ResultsError, match="small@2 and small@1"):
        gate(new, old)


def test_stores_side_by_side(fill: Fill) -> None:
    parts = [open_results(fill(name, {"net": skill})) for name, skill in (("a", 0.7), ("b", 0.8))]
    joined = join_results(parts)
    assert joined.models == ("net (a)", "net (b)")
    by_place = {one.model: one.headline.value for one in score(joined, resamples=50).models}
    for part, name in zip(parts, joined.models, strict=True):
        assert score(part, resamples=50).models[0].headline.value == by_place[name]


def test_targets(fill: Fill, tmp_path: object) -> None:
    store = fill("s", {"net": 0.7, "other": 0.6})
    single = fill("one", {"net": 0.7})

    def opened(text: str, store: str = "results") -> tuple[Results, ...]:
        return open_targets([(text, "model")], store)[0]

    assert opened("other", store.location)[0].models == ("other",)
    assert opened(single.location, store.location)[0].models == ("net",)
    assert opened(f"{store.location}::net")[0].models == ("net",)
    with pytest.raises(ResultsError, match=r"2 models.* net, other"):
        opened(store.location)
    with pytest.raises(ResultsError, match=r"'otter'"):
        opened("otter", store.location)
    with pytest.raises(ResultsError, match="STORE::MODEL"):
        opened("::net", store.location)


def test_scores_do_not_depend_on_the_order_of_conditions_in_the_store(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.7}))
    names = [condition.corruption for condition in results.predictions("net").conditions]
    assert names == [None, *get_suite("mnist-c").corruptions]


def test_calibration_is_by_severity(fill: Fill) -> None:
    one = score(open_results(fill("s", {"net": 0.7}, suite=SMALL)), resamples=50).models[0]
    assert list(one.calibration) == ["clean", "1", "2", "3", "4", "5"]
    for calibration in one.calibration.values():
        ece = calibration.ece
        assert ece.low <= ece.value <= ece.high
        assert sum(calibration.counts) in (300, 600)
        spread = zip(calibration.counts, calibration.bin_confidence, calibration.bin_accuracy, strict=True)
        total = sum(calibration.counts)
        printed = sum(n / total * abs(c - a) for n, c, a in spread)
        assert calibration.raw_ece == pytest.approx(printed, abs=1e-6)
        assert ece.value <= calibration.raw_ece
        assert calibration.floor > 0


def test_one_corruption_is_a_suite_too(fill: Fill) -> None:
    single = Suite(
        name="one",
        version=1,
        dataset="digits",
        scale="cifar",
        corruptions=("fog",),
        severities=(3,),
        clean=False,
    )
    one = score(open_results(fill("s", {"net": 0.7}, suite=single)), resamples=50).models[0]
    assert one.clean is None
    assert list(one.metrics) == ["mean_accuracy"]
    assert list(itertools.chain(one.relative_ce, one.ce)) == []


def test_a_model_with_fewer_images_is_reported(fill: Fill, tmp_path: Path) -> None:
    """A baseline with a fifth of the images does not silently reduce every metric to them."""
    suite = replace(SMALL, baseline="old", metrics=("mce", "mean_accuracy"))
    whole = fill("s", {"net": 0.7, "old": 0.5}, suite=suite)
    few = FileStore(tmp_path / "few")
    for cell in whole.cells().values():
        rows = whole.read(cell).drop_columns("place")
        few.write(cell, 0, rows.slice(0, 60) if cell.model["name"] == "old" else rows, {})
    message = "Only images that all of these models have predictions for are used: old has 60, net 300."
    net = open_results(few, suite=suite, models=["net"])
    assert score(net, calibration=False).images == 60
    assert message in score(net, calibration=False).notes
    assert gate(net, require=2.0).notes == (message,)
    assert gate(net, require=0.1, baseline="none", metric="mean_accuracy").notes == ()
    assert not any("predictions for" in note for note in score(open_results(whole), calibration=False).notes)


def test_results_in_memory_are_joined_judged_and_printed(fill: Fill) -> None:
    stored = open_results(fill("s", {"good": 0.9, "bad": 0.6}))
    good, bad = (Results.of(stored.suite, {"net": stored.predictions(name)}) for name in ("good", "bad"))
    joined = join_results([good, bad])
    assert joined.models == ("net (results 1)", "net (results 2)")
    assert join_results([good, good]).models == ("net",)
    verdict = gate(bad, good, metric="mean_accuracy", baseline="none")
    assert str(verdict).startswith(f"gate {verdict.decision}")
    drop = verdict.drop
    whole = score(stored, baseline="none", calibration=False)
    by_name = {one.model: one.metrics["mean_accuracy"].value for one in whole.models}
    assert drop is not None
    assert drop.value == pytest.approx(by_name["good"] - by_name["bad"])
    assert spread_of_results(bad, good, baseline="none").measured > 0
    other = Results.of(stored.suite, {"net": stored.predictions("good")}, dataset="other")
    with pytest.raises(ResultsError, match="other"):
        join_results([good, other])
    text = str(whole)
    assert text.splitlines()[0].startswith(whole.suite.title)
    assert all(one in text for one in ("good", "bad", "Place"))
    compared = compare(stored, baseline="none")
    for one in (whole, whole.models[0], whole.pairs.forms["good"]["mean_accuracy"], compared, good):
        assert len(repr(one)) < 200
    assert repr(stored.predictions("good")).startswith("<Predictions of good")
