"""The paper's Figures 2, 3 and 4 from answers, with intervals over digits and the spread over trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics import MetricError, published_table, relative_mean_corruption_error
from beaufort.metrics.stats import bootstrap
from beaufort.studies.mnist_c.mnist_models import CLEAN, COLUMNS, MODELS, MnistSettings
from beaufort.studies.paper_tables import Measured, ReproducedTable, measured
from beaufort.studies.predictions import StudyPredictions, predictions_by_seed

_RESAMPLES = 2000
Rows = NDArray[np.float64]
"""Which digits are right, `(seeds, digits)`."""


@dataclass(frozen=True)
class StudyResults:
    """All answers of a study that are there, trainings in the order of their seeds."""

    settings: MnistSettings
    models: Mapping[str, Sequence[StudyPredictions]]
    tuned: Mapping[str, Sequence[StudyPredictions]]


def load_results(folder: Path, settings: MnistSettings) -> StudyResults:
    """What a folder has."""
    return StudyResults(
        settings, predictions_by_seed(folder / "answers"), predictions_by_seed(folder / "tuned")
    )


def figure_3(results: StudyResults) -> ReproducedTable:
    """Accuracy of the models under each corruption."""
    paper = published_table("mnist-c-figure3")
    there = _models_there(results)
    rows = {
        row: {
            title: measured(
                _rows(results.models[name], row), paper[title].get("clean" if row == CLEAN else row)
            )
            for name, title in there.items()
        }
        for row in _table_rows(results, there)
    }
    return ReproducedTable(
        "fig3", "Accuracy of the models (percent)", "corruption", tuple(there.values()), rows
    )


def figure_2(results: StudyResults) -> ReproducedTable:
    """Mean accuracy over the rows of Figure 3, and relative mCE against our Conv1."""
    paper = published_table("mnist-c-figure2")
    there = _models_there(results)
    names = _table_rows(results, there)
    rows: dict[str, dict[str, Measured]] = {"mean_accuracy_percent": {}, "relative_mce_percent": {}}
    for name, title in there.items():
        stacked = np.stack([_rows(results.models[name], row) for row in names])
        rows["mean_accuracy_percent"][title] = measured(stacked.mean(axis=0), paper[title]["mean_accuracy"])
        base = np.stack([_rows(results.models["conv1"], row) for row in names])
        entry = _relative(stacked, base, names, paper[title]["relative_mce"], own=name == "conv1")
        if entry is not None:
            rows["relative_mce_percent"][title] = entry
    return ReproducedTable(
        "fig2", "Mean accuracy and relative mCE (percent)", "metric", tuple(there.values()), rows
    )


def figure_4(results: StudyResults) -> ReproducedTable:
    """Conv1 as it is, and tuned on all corruptions but the tested one, on all, and on the tested one."""
    paper = published_table("mnist-c-figure4")
    names = (CLEAN, *results.settings.benchmark)
    found = {column: _answers_to(results, column, names) for column in COLUMNS}
    rows: dict[str, dict[str, Measured]] = {}
    for row in names:
        key = "clean" if row == CLEAN else row
        rows[row] = {
            column: measured(_rows(answers[row], row), paper[column].get(key))
            for column, answers in found.items()
            if row in answers
        }
    rows["mean_acc"] = {
        column: measured(mean, paper[column].get("mean_accuracy"))
        for column, mean in _means_over(found, names).items()
    }
    return ReproducedTable("fig4", "Conv1 fine-tuned on corruptions (percent)", "corruption", COLUMNS, rows)


def tuned_means(results: StudyResults) -> dict[str, Measured]:
    """The means over all 31 corruptions that the paper's text has: clean, all but one, and all.

    Columns that lack one of the corruptions are left out.
    """
    printed = {"clean": 0.904, "all_but_one": 0.917, "all": 0.980, "single": None}
    names = results.settings.all_corruptions
    found = {column: _answers_to(results, column, names) for column in COLUMNS}
    return {column: measured(mean, printed[column]) for column, mean in _means_over(found, names).items()}


def _answers_to(
    results: StudyResults, column: str, names: Sequence[str]
) -> dict[str, Sequence[StudyPredictions]]:
    """Whose answers stand in a column of Figure 4, by row; rows that nobody was asked about are left out."""
    tuned = {row: _tuned(results, row)[column] for row in names}
    return {row: answers for row, answers in tuned.items() if answers and row in answers[0].conditions}


def _means_over(
    found: Mapping[str, Mapping[str, Sequence[StudyPredictions]]], names: Sequence[str]
) -> dict[str, Rows]:
    """The mean over rows of each column that has all of them, of the seeds that are in every row.

    A study may be half done: one row has more seeds than another then.
    """
    means = {}
    for column, answers in found.items():
        seeds = [{one.facts["seed"] for one in some} for some in answers.values()]
        common = set.intersection(*seeds) if len(answers) == len(names) else set()
        if common:
            kept = {row: [o for o in some if o.facts["seed"] in common] for row, some in answers.items()}
            means[column] = np.stack([_rows(some, row) for row, some in kept.items()]).mean(axis=0)
    return means


def _tuned(results: StudyResults, row: str) -> dict[str, Sequence[StudyPredictions]]:
    """Whose answers stand in a row of Figure 4; clean digits are never among what `all` is trained on."""
    but = "all" if row == CLEAN else f"but-{row}"
    labels = {"all_but_one": but, "all": "all", "single": f"single-{row}"}
    chosen = {column: results.tuned.get(label, ()) for column, label in labels.items()}
    return {"clean": results.models.get("conv1", ()), **chosen}


def _models_there(results: StudyResults) -> dict[str, str]:
    return {name: title for name, title in MODELS.items() if name in results.models}


def _table_rows(results: StudyResults, there: Mapping[str, str]) -> tuple[str, ...]:
    """Clean digits and the benchmark's corruptions that all models were asked about."""
    rows = (CLEAN, *results.settings.benchmark)
    asked = [set(results.models[name][0].conditions) for name in there]
    return tuple(row for row in rows if all(row in some for some in asked))


def _rows(answers: Sequence[StudyPredictions], condition: str) -> Rows:
    return np.stack([one.row(condition) for one in answers]).astype(np.float64)


def _relative(
    ours: NDArray[np.float64], base: NDArray[np.float64], names: Sequence[str], printed: float, *, own: bool
) -> Measured | None:
    """Relative mCE of arrays `(rows, seeds, digits)`, clean digits first; None where it is not defined."""
    if own:
        return Measured(1.0, 1.0, 1.0, 0.0 if ours.shape[1] > 1 else None, 1.0, 1.0, printed)
    count = len(names)

    def statistic(means: NDArray[np.float64]) -> Any:
        errors = {name: 1 - means[..., count + i, None] for i, name in enumerate(names) if i}
        bases = {name: 1 - means[..., i, None] for i, name in enumerate(names) if i}
        return relative_mean_corruption_error(errors, 1 - means[..., count], bases, 1 - means[..., 0])

    try:
        columns = np.concatenate([base.mean(axis=1), ours.mean(axis=1)]).T
        whole = bootstrap(columns, statistic, resamples=_RESAMPLES)
        pairs = range(min(ours.shape[1], base.shape[1]))
        each = [
            bootstrap(np.concatenate([base[:, s], ours[:, s]]).T, statistic, resamples=_RESAMPLES)
            for s in pairs
        ]
    except MetricError:
        return None
    values = [one.value for one in each]
    return Measured(
        whole.value,
        whole.low,
        whole.high,
        float(np.std(values, ddof=1)) if len(values) > 1 else None,
        min(one.low for one in each),
        max(one.high for one in each),
        printed,
    )
