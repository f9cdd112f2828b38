"""From a store to numbers: the right answers, the right formula, and the right refusal."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from beaufort.errors import OptionError, UnknownNameError
from beaufort.metrics import get_baseline, published_table
from beaufort.results import (
    ResultsError,
    compare,
    gate,
    join_results,
    open_results,
    open_target,
    score,
)
from beaufort.stats import clopper_pearson
from beaufort.store import Cell, FileStore, unanswered
from beaufort.suites import Suite, get_suite

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
    answers = results.answers("net")
    wrong = 1 - answers.correct.mean(axis=1)
    table = {(c.corruption, c.severity): e for c, e in zip(answers.conditions, wrong, strict=True)}
    alexnet = get_baseline("alexnet")
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
    hits = int(answers.correct[0].sum())
    assert one.clean == clopper_pearson(hits, 300)


def test_the_mean_of_mnist_c_counts_the_clean_digits(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.8}))
    one = score(results, resamples=50).models[0]
    assert one.headline.value == pytest.approx(results.answers("net").correct.mean())
    assert len(results.answers("net").conditions) == 16


def test_conv1_against_itself_is_one(fill: Fill) -> None:
    """A network with the baseline's own errors has a relative mCE of 100 %, whatever they are."""
    from beaufort.results.baseline import published_reference
    from beaufort.results.scores import columns_of, statistics

    suite = get_suite("mnist-c")
    reference = published_reference(suite, "conv1")
    columns = columns_of(suite)
    means = np.array([reference.clean if name is None else reference.errors[name] for name in columns])
    made = statistics(suite, columns, reference)
    assert made["relative_mce"](means, means) == pytest.approx(1)
    assert made["mce"](means, means) == pytest.approx(1)
    printed = published_table("mnist-c-figure2")["Conv1"]["mean_accuracy"]
    assert made["mean_accuracy"](means, means) == pytest.approx(printed, abs=5e-5)


def test_a_stored_baseline_is_resampled_along(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.7, "old": 0.6}, suite=SMALL))
    scores = score(results, baseline="old", resamples=500)
    assert scores.reference is not None
    assert scores.reference.stored
    own = next(one for one in scores.models if one.model == "old").metrics["mce"]
    assert (own.value, own.low, own.high) == pytest.approx((1, 1, 1))
    fixed = score(results, resamples=500)
    assert fixed.reference.name == "alexnet"


def test_a_stored_baseline_that_loses_nothing_has_no_relative_mce(fill: Fill) -> None:
    """With few images some resamples of a baseline are no worse corrupted than clean."""
    results = open_results(fill("s", {"net": 0.7, "old": 0.95}, suite=SMALL, images=20))
    scores = score(results, baseline="old", resamples=500)
    assert list(scores.models[0].metrics) == ["mce", "mean_accuracy"]
    assert scores.models[0].relative_ce == {}


def test_values_are_exact(fill: Fill) -> None:
    """Resamples are made in single precision; what is printed as the value is not."""
    results = open_results(fill("s", {"net": 0.7}, suite=SMALL))
    one = score(results, resamples=50).models[0]
    answers = results.answers("net")
    wrong = (~answers.correct[answers.rows["fog"]]).sum()
    assert one.corruptions["fog"].value == pytest.approx(wrong / (5 * 300), abs=1e-15)


def test_without_a_baseline_there_is_no_mce(fill: Fill) -> None:
    scores = score(open_results(fill("s", {"net": 0.7}, suite=SMALL)), baseline="none", resamples=50)
    assert list(scores.models[0].metrics) == ["mean_accuracy"]
    assert scores.models[0].ce == {}
    with pytest.raises(UnknownNameError, match="did you mean 'alexnet'"):
        score(open_results(fill("s", {"net": 0.7}, suite=SMALL)), baseline="alexnett")


def test_the_suite_is_that_of_the_last_run_or_found(fill: Fill) -> None:
    assert open_results(fill("a", {"net": 0.7}, suite=SMALL)).suite == SMALL
    assert str(open_results(fill("b", {"net": 0.7}, record=False)).suite) == "mnist-c@1"
    with pytest.raises(ResultsError, match="--suite"):
        open_results(fill("c", {"net": 0.7}, suite=SMALL, record=False))
    assert open_results(fill("c", {"net": 0.7}, suite=SMALL, record=False), suite=SMALL).models == ("net",)


def test_models_that_lack_conditions_are_told_and_left_out(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.7, "half": 0.6}, skip=3))
    assert results.models == ("net",)
    assert results.incomplete == {"half": 3}
    with pytest.raises(ResultsError, match="half lacks 3"):
        open_results(fill("t", {"half": 0.6}, skip=3), suite="mnist-c")
    with pytest.raises(ResultsError, match="holds no answers"):
        open_results(FileStore("memory://empty-results"))


def test_seeds_are_not_mixed(fill: Fill) -> None:
    fill("s", {"net": 0.7}, seed=0, record=False)
    both = fill("s", {"net": 0.7}, seed=1, record=False)
    with pytest.raises(ResultsError, match="seeds 0, 1"):
        open_results(both, suite="mnist-c")
    assert open_results(both, suite="mnist-c", seed=1).setting.seed == 1
    with pytest.raises(ResultsError, match="seed 5"):
        open_results(both, suite="mnist-c", seed=5)


def test_two_models_of_one_name_are_told_apart(fill: Fill) -> None:
    store = fill("s", {"net": 0.7})
    for cell in list(store.cells().values()):
        other = Cell({**cell.model, "digest": "sha256:feed0123"}, cell.data, cell.condition)
        store.write(other, 0, store.read(cell).drop_columns(["place"]))
    assert open_results(store).models == ("net#feed0123", "net#net")


def test_unread_images_are_left_out_everywhere(fill: Fill) -> None:
    store = fill("s", {"net": 0.7})
    cell = next(iter(store.cells().values()))
    table = store.read(cell).drop_columns(["place"])
    lost = unanswered(["digit/0"], [int(table["label"][0].as_py())], table.schema)
    import pyarrow as pa

    store.write(cell, 0, pa.concat_tables([lost, table.slice(1)]))
    answers = open_results(store).answers("net")
    assert len(answers) == 299
    assert answers.unread == 1
    assert answers.ids[0] == "digit/1"


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
    made = compare(results, resamples=500)
    assert len(made.differences) == 3 * 3  # pairs × metrics
    first, second = results.answers("good"), results.answers("bad")
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
    with pytest.raises(OptionError, match="two models"):
        compare(results, ["good"])


def test_paired_intervals_are_narrower_than_unpaired(fill: Fill) -> None:
    """Pairing pays: both models find the same digits hard."""
    results = open_results(fill("s", {"a": 0.7, "b": 0.65}))
    made = compare(results, resamples=2000)
    difference = next(one for one in made.differences if one.metric == "mean_accuracy")
    alone = [one.metrics["mean_accuracy"].half_width for one in made.scores.models]
    assert difference.difference.half_width < 0.8 * np.hypot(*alone)


def test_gate_lets_through_what_is_not_worse(fill: Fill) -> None:
    new = open_results(fill("new", {"net": 0.80}))
    old = open_results(fill("old", {"net": 0.80}))
    assert gate(new, old, resamples=500).ok
    worse = open_results(fill("worse", {"net": 0.6}))
    verdict = gate(worse, old, max_drop=0.01, resamples=500)
    assert not verdict.ok
    assert verdict.drop.value > 0.1
    assert gate(worse, old, max_drop=0.5, resamples=500).ok  # that much is allowed
    assert gate(old, worse, resamples=500).ok  # better is never a drop
    assert not gate(worse, old, metric="relative_mce", resamples=500).ok
    with pytest.raises(OptionError, match="did you mean 'mce'"):
        gate(new, old, metric="mcee")


def test_gate_does_not_cry_wolf(fill: Fill) -> None:
    """Few images: a drop that may be chance passes, and the verdict says that it is not significant."""
    new = open_results(fill("new", {"net": 0.78}, images=25, alike=0, luck=1))
    old = open_results(fill("old", {"net": 0.80}, images=25, alike=0))
    verdict = gate(new, old, resamples=500)
    assert verdict.ok
    assert not verdict.significant


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"images": 299}, "other data"),
        ({"seed": 1}, "seeds 0 and 1"),
        ({"suite": "mnist-c-extra"}, "mnist-c@1 and mnist-c-extra@1"),
    ],
)
def test_gate_refuses_what_cannot_be_compared(fill: Fill, other: dict[str, object], why: str) -> None:
    new = open_results(fill("new", {"net": 0.8}))
    old = open_results(fill("old", {"net": 0.8}, **other))
    with pytest.raises(ResultsError, match=why):
        gate(new, old)


def test_gate_refuses_another_version_of_the_suite(fill: Fill) -> None:
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
    assert open_target("other", store.location).models == ("other",)
    assert open_target(single.location, store.location).models == ("net",)
    assert open_target(f"{store.location}::net").models == ("net",)
    with pytest.raises(ResultsError, match="has 2 models: net, other; name one as"):
        open_target(store.location)
    with pytest.raises(ResultsError, match="'otter' is not a model"):
        open_target("otter", store.location)
    with pytest.raises(ResultsError, match="STORE::MODEL"):
        open_target("::net", store.location)


def test_scores_do_not_depend_on_the_order_of_conditions_in_the_store(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.7}))
    names = [condition.corruption for condition in results.answers("net").conditions]
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
        assert ece.value == pytest.approx(sum(n / total * abs(c - a) for n, c, a in spread), abs=1e-6)


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
