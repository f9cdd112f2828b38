"""Verdicts follow from the numbers, with three outcomes."""

from __future__ import annotations

import numpy as np
import pytest

from beaufort.studies import StudySettings
from beaufort.studies.corruption_selection import order_by_similarity, selection
from beaufort.studies.mnist_c import (
    MODELS,
    MnistResults,
    claims,
    error_ratios,
    every_corruption,
    figure_2,
    figure_3,
    figure_4,
    spearman,
    tuned_means,
)
from beaufort.studies.paper_tables import table_csv
from beaufort.studies.pessimal_noise import rank_one_fraction
from beaufort.studies.predictions import StudyPredictions

SETTINGS = StudySettings(study="mnist-c")
NAMES = ("none", *every_corruption(SETTINGS))
DIGITS = 4000


def predictions(accuracy: float, seed: int = 0, **under: float) -> StudyPredictions:
    """Return predictions that are correct on the first digits, with other fractions under some conditions."""
    labels = (np.arange(DIGITS) % 10).astype(np.uint8)
    predicted = np.stack([labels.copy() for _ in NAMES])
    for row, name in zip(predicted, NAMES, strict=True):
        right = round(DIGITS * (0.995 if name == "none" else under.get(name, accuracy)))
        row[right:] = (row[right:] + 1) % 10
    return StudyPredictions(NAMES, predicted, labels, {"seed": seed})


def study(
    models: dict[str, StudyPredictions], tuned: dict[str, StudyPredictions], runs: int = 2
) -> MnistResults:
    return MnistResults(
        SETTINGS, {k: [v] * runs for k, v in models.items()}, {k: [v] * runs for k, v in tuned.items()}
    )


def verdicts(results: MnistResults) -> dict[str, str]:
    found = claims(results, figure_2(results), figure_3(results), figure_4(results))
    return {one.statement: one.verdict for one in found}


def tuned(but: float, whole: float, single: float) -> dict[str, StudyPredictions]:
    found = {"all": predictions(whole), "single-none": predictions(single)}
    for name in every_corruption(SETTINGS):
        found |= {f"but-{name}": predictions(but), f"single-{name}": predictions(single)}
    return found


def test_as_in_the_paper() -> None:
    weak = predictions(0.8, brightness=0.2, fog=0.2, stripe=0.2)
    found = verdicts(study({"conv1": predictions(0.91), "conv2-pgd": weak}, tuned(0.91, 0.98, 0.99)))
    for start in (
        "Conv2 (PGD) loses",
        "Conv2 (PGD) collapses under fog",
        "Fine-tuning",
        "Over all corruptions",
    ):
        assert [verdict for text, verdict in found.items() if text.startswith(start)] == ["confirmed"]


def test_the_other_way_round() -> None:
    strong = predictions(0.97)
    found = verdicts(study({"conv1": predictions(0.91), "conv2-pgd": strong}, tuned(0.98, 0.98, 0.95)))
    for start in (
        "Conv2 (PGD) loses",
        "Conv2 (PGD) collapses under fog",
        "Fine-tuning",
        "Over all corruptions",
    ):
        assert [verdict for text, verdict in found.items() if text.startswith(start)] == ["refuted"]


def test_a_study_that_is_half_done() -> None:
    """A mean over rows has the seeds that all of them have, whichever are missing."""
    there = {name: [predictions(0.9, 0), predictions(0.8, 1)] for name in tuned(0, 0, 0)}
    there["but-fog"] = [predictions(0.8, 1)]
    results = MnistResults(SETTINGS, {"conv1": [predictions(0.7)]}, there)
    table = figure_4(results)
    assert table.rows["fog"]["all_but_one"].value == pytest.approx(0.8)
    assert table.rows["stripe"]["all_but_one"].value == pytest.approx(0.85)
    assert tuned_means(results)["all_but_one"].value == pytest.approx(0.8)
    assert tuned_means(results)["all"].value == pytest.approx(0.85)
    there["but-snow"] = [predictions(0.9, 0)]
    assert "all_but_one" not in tuned_means(results)
    assert "single" in tuned_means(results)
    del there["single-snow"]  # not among the rows of Figure 4, but one of all corruptions
    assert "single" not in tuned_means(results)
    assert "single" in figure_4(results).rows["mean_acc"]


def test_undecided() -> None:
    found = verdicts(study({"conv1": predictions(0.91), "conv2-pgd": predictions(0.91)}, {}))
    assert found["Conv2 (PGD) loses more to the corruptions than Conv1: lower mean accuracy"] == "undecided"


def test_one_run_of_a_model_decides_nothing() -> None:
    weak = predictions(0.8, fog=0.2)
    found = verdicts(study({"conv1": predictions(0.91), "conv2-pgd": weak}, {}, runs=1))
    assert found["Conv2 (PGD) collapses under fog: more than 10 points below Conv1"] == "undecided"
    assert found["Conv2 (PGD) loses more to the corruptions than Conv1: lower mean accuracy"] == "undecided"


def test_ratios_of_errors_are_the_papers_conclusions() -> None:
    found = figure_3(study({"conv1": predictions(0.9), "conv2-pgd": predictions(0.8)}, {}))
    ratios = {row.title: row for row in error_ratios(found)}
    assert ratios["Conv2 (PGD)"].to_conv1 == pytest.approx(2)
    assert ratios["Conv2 (PGD)"].to_clean == pytest.approx(0.2 / 0.005)
    assert ratios["Conv1"].to_conv1 == pytest.approx(1)
    assert 2.0 < ratios["Conv2 (PGD)"].printed_to_conv1 < 2.5


def test_relative_mce_is_the_papers_formula() -> None:
    ours, base = predictions(0.7), predictions(0.91)
    table = figure_2(study({"conv1": base, "conv2-pgd": ours}, {}, runs=1))
    entry = table.rows["relative_mce_percent"]["Conv2 (PGD)"]
    assert entry.value == pytest.approx((0.995 - 0.7) / (0.995 - 0.91))
    assert entry.low < entry.value < entry.high
    assert table.rows["mean_accuracy_percent"]["Conv2 (PGD)"].value == pytest.approx((0.995 + 15 * 0.7) / 16)
    assert all(one.spread is None for one in table.rows["relative_mce_percent"].values())  # one training
    assert set(table.columns) <= set(MODELS.values())
    assert table_csv(table).splitlines()[2].startswith("relative_mce_percent,100.00,347.06")


def test_similar_corruptions_are_neighbors() -> None:
    chosen = selection(study({"conv1": predictions(0.91)}, tuned(0.92, 0.98, 0.99)))
    assert chosen is not None
    assert chosen.transfer.shape == (31, 31)
    np.testing.assert_allclose(chosen.transfer, 8, atol=0.2)
    likeness = np.eye(4)
    likeness[0, 3] = likeness[3, 0] = 0.9
    likeness[1, 2] = likeness[2, 1] = 0.8
    order = order_by_similarity(likeness)
    assert abs(order.index(0) - order.index(3)) == abs(order.index(1) - order.index(2)) == 1


def test_small_statistics() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 5, 30).tolist(), rng.integers(0, 5, 30).tolist()
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
    assert rank_one_fraction(np.eye(4, dtype=np.float32)) == pytest.approx(0.25)
