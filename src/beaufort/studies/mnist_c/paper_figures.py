"""The paper's Figures 2, 3 and 4 and its conclusions, from predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from beaufort.metrics import MetricError, published_table, relative_mean_corruption_error
from beaufort.metrics.stats import bootstrap
from beaufort.studies.engine import definition
from beaufort.studies.mnist_c.mnist_runs import CLEAN, MODELS, MnistSettings
from beaufort.studies.paper_tables import (
    Claim,
    Measured,
    ReproducedTable,
    decide,
    measured,
    measured_difference,
)
from beaufort.studies.prediction_archive import predictions_by_seed
from beaufort.studies.predictions import StudyPredictions

COLUMNS = ("clean", "all_but_one", "all", "single")
"""Columns of Figure 4."""

_RESAMPLES = 2000
_MEAN, _RELATIVE = "mean_accuracy_percent", "relative_mce_percent"

Runs = Sequence[StudyPredictions]
Rows = NDArray[np.float64]
"""Whether digits are classified correctly, `(seeds, digits)`."""


@dataclass(frozen=True)
class MnistResults:
    """All predictions of a study, sorted by seed."""

    settings: MnistSettings
    models: Mapping[str, Runs]
    tuned: Mapping[str, Runs]

    @property
    def titles(self) -> dict[str, str]:
        """The models with predictions, and their names."""
        return {name: title for name, title in MODELS.items() if name in self.models}

    @property
    def rows(self) -> tuple[str, ...]:
        """Clean digits and the corruptions of the benchmark for which all models have predictions."""
        each = [self.models[name][0].conditions for name in self.titles]
        return tuple(row for row in (CLEAN, *self.settings.benchmark) if all(row in some for some in each))


def load_results(folder: Path, settings: MnistSettings) -> MnistResults:
    """Read all predictions of a study."""
    return MnistResults(
        settings, predictions_by_seed(folder, "predictions"), predictions_by_seed(folder, "tuned")
    )


def figure_3(results: MnistResults) -> ReproducedTable:
    """Return the accuracy of the models under each corruption."""
    paper, titles = published_table("mnist-c-figure3"), results.titles
    rows = {
        row: {
            title: measured(
                _correct(results.models[name], row), paper[title].get("clean" if row == CLEAN else row)
            )
            for name, title in titles.items()
        }
        for row in results.rows
    }
    columns = tuple(titles.values())
    return ReproducedTable("fig3", "Accuracy of the models (percent)", "corruption", columns, rows)


def figure_2(results: MnistResults) -> ReproducedTable:
    """Return the mean accuracy over the rows of Figure 3, and relative mCE against our Conv1."""
    paper, titles, names = published_table("mnist-c-figure2"), results.titles, results.rows
    rows: dict[str, dict[str, Measured]] = {_MEAN: {}, _RELATIVE: {}}
    for name, title in titles.items():
        ours, base = (
            np.stack([_correct(results.models[one], row) for row in names]) for one in (name, "conv1")
        )
        rows[_MEAN][title] = measured(ours.mean(axis=0), paper[title]["mean_accuracy"])
        printed = paper[title]["relative_mce"]
        if name == "conv1":
            spread = 0.0 if ours.shape[1] > 1 else None
            rows[_RELATIVE][title] = Measured(1.0, 1.0, 1.0, spread, 1.0, 1.0, printed, ours.shape[1])
        elif entry := _relative_mce(ours, base, names, printed):
            rows[_RELATIVE][title] = entry
    columns = tuple(titles.values())
    return ReproducedTable("fig2", "Mean accuracy and relative mCE (percent)", "metric", columns, rows)


def _relative_mce(
    ours: NDArray[np.float64], base: NDArray[np.float64], names: Sequence[str], printed: float
) -> Measured | None:
    """Return relative mCE of arrays `(rows, seeds, digits)`, clean digits first; None if undefined."""
    count = len(names)

    def statistic(means: NDArray[np.float64]) -> Any:
        errors = {name: 1 - means[..., count + i, None] for i, name in enumerate(names) if i}
        bases = {name: 1 - means[..., i, None] for i, name in enumerate(names) if i}
        return relative_mean_corruption_error(errors, 1 - means[..., count], bases, 1 - means[..., 0])

    def estimate(base: NDArray[np.float64], ours: NDArray[np.float64]) -> Any:
        return bootstrap(np.concatenate([base, ours]).T, statistic, resamples=_RESAMPLES)

    try:
        whole = estimate(base.mean(axis=1), ours.mean(axis=1))
        each = [estimate(base[:, seed], ours[:, seed]) for seed in range(min(ours.shape[1], base.shape[1]))]
    except MetricError:
        return None
    spread = float(np.std([one.value for one in each], ddof=1)) if len(each) > 1 else None
    lowest, highest = min(one.low for one in each), max(one.high for one in each)
    return Measured(whole.value, whole.low, whole.high, spread, lowest, highest, printed, len(each))


def relative_mce_remark(table: ReproducedTable) -> str:
    """Return which corruption contributes most to relative mCE, from the accuracies of Figure 3.

    A small loss of Conv1 is a small divisor, so that its variation between training runs decides the metric.
    """
    names = [name for name in table.rows if name != CLEAN]
    losses = {
        title: {name: table.rows[CLEAN][title].value - table.rows[name][title].value for name in names}
        for title in table.columns
    }
    base = losses.pop("Conv1", {})
    if not losses or not base or min(base.values()) <= 0:
        return ""
    ratios = {title: {name: loss[name] / base[name] for name in names} for title, loss in losses.items()}
    largest = max(names, key=lambda name: sum(one[name] for one in ratios.values()))
    parts = [
        f"{100 * one[largest] / sum(one.values()):.0f} % ({title})"
        for title, one in ratios.items()
        if sum(one.values()) > 0
    ]
    spread = table.rows[largest]["Conv1"].spread
    over_runs = (
        "" if spread is None else f", with a standard deviation of {100 * spread:.2f} over training runs"
    )
    return (
        f"{largest} alone contributes {', '.join(parts)} of relative mCE: its divisor, the loss of Conv1, "
        f"is {100 * base[largest]:.2f} points{over_runs}. Relative mCE therefore differs greatly between "
        "training runs, and the conclusions use mean accuracy."
    )


def figure_4(results: MnistResults) -> ReproducedTable:
    """Return the accuracy of Conv1 as it is, and tuned on all corruptions but the tested one, all, and it."""
    paper = published_table("mnist-c-figure4")
    names = (CLEAN, *results.settings.benchmark)
    columns = {column: _column(results, column, names) for column in COLUMNS}
    rows: dict[str, dict[str, Measured]] = {}
    for row in names:
        key = "clean" if row == CLEAN else row
        rows[row] = {
            column: measured(_correct(runs[row], row), paper[column].get(key))
            for column, runs in columns.items()
            if row in runs
        }
    rows["mean_acc"] = {
        column: measured(mean, paper[column].get("mean_accuracy"))
        for column, mean in _means(columns, names).items()
    }
    return ReproducedTable("fig4", "Conv1 fine-tuned on corruptions (percent)", "corruption", COLUMNS, rows)


def tuned_means(results: MnistResults) -> dict[str, Measured]:
    """Return the means over all 31 corruptions; columns that lack one of them are left out."""
    printed, names = definition("mnist-c")["printed_means"], results.settings.all_corruptions
    means = _means({column: _column(results, column, names) for column in COLUMNS}, names)
    return {column: measured(mean, printed.get(column)) for column, mean in means.items()}


def _column(results: MnistResults, column: str, names: Sequence[str]) -> dict[str, Runs]:
    """Return the predictions in a column of Figure 4, by row; no network trains on clean digits."""

    def runs(row: str) -> Runs:
        if column == "clean":
            return results.models.get("conv1", ())
        labels = {
            "all_but_one": "all" if row == CLEAN else f"but-{row}",
            "all": "all",
            "single": f"single-{row}",
        }
        return results.tuned.get(labels[column], ())

    return {row: some for row in names if (some := runs(row)) and row in some[0].conditions}


def _means(columns: Mapping[str, Mapping[str, Runs]], names: Sequence[str]) -> dict[str, Rows]:
    """Return the mean over rows of each complete column, over the seeds that all of its rows have."""
    means = {}
    for column, by_row in columns.items():
        seeds = [{one.facts["seed"] for one in runs} for runs in by_row.values()]
        if len(by_row) == len(names) and (common := set.intersection(*seeds)):
            rows = [
                _correct([one for one in runs if one.facts["seed"] in common], row)
                for row, runs in by_row.items()
            ]
            means[column] = np.stack(rows).mean(axis=0)
    return means


def _correct(runs: Runs, condition: str) -> Rows:
    return np.stack([one.row(condition) for one in runs]).astype(np.float64)


def claims(
    results: MnistResults, fig2: ReproducedTable, fig3: ReproducedTable, fig4: ReproducedTable
) -> Iterator[Claim]:
    """Yield the claims that the existing predictions can test."""
    if "Conv1" in fig3.columns and fig3.rows:
        clean, mean = fig3.rows[CLEAN]["Conv1"], fig2.rows[_MEAN]["Conv1"]
        rows = [row["Conv1"] for name, row in fig3.rows.items() if name != CLEAN]
        rho = spearman([row.value for row in rows], [row.printed or 0.0 for row in rows])
        yield _point_claim(
            "Conv1 classifies at least 99.0 % of the clean digits", clean.interval, clean.value >= 0.99
        )
        statement = (
            "Conv1's accuracies rank the corruptions as the paper's do (Spearman's correlation at least 0.85)"
        )
        yield _point_claim(statement, f"{rho:.3f} over {len(rows)} corruptions", rho >= 0.85)
        near = abs(mean.value - 0.9121) <= 0.025
        yield _point_claim(
            "Conv1's mean accuracy is within 2.5 points of the paper's 91.21", mean.interval, near
        )
    for title, entry in fig2.rows[_MEAN].items():
        if title != "Conv1":
            value, low, high = measured_difference(entry, fig2.rows[_MEAN]["Conv1"])
            yield Claim(
                f"{title} loses more to the corruptions than Conv1: lower mean accuracy",
                f"{100 * value:+.2f} points [{100 * low:+.2f}, {100 * high:+.2f}]",
                decide(confirmed=high < 0, refuted=low > 0),
            )
    collapse = definition("mnist-c")["collapse"]
    for title in collapse["models"]:
        for name in collapse["corruptions"]:
            if ours := fig3.rows.get(name, {}).get(title):
                conv1 = fig3.rows[name]["Conv1"]
                yield Claim(
                    f"{title} collapses under {name}: more than 10 points below Conv1",
                    f"{ours.interval}, Conv1 {conv1.interval}",
                    decide(confirmed=conv1.low - ours.high > 0.1, refuted=conv1.high - ours.low <= 0.1),
                )
    single = {
        row: cells["single"] for row, cells in fig4.rows.items() if "single" in cells and row != "mean_acc"
    }
    if single:
        below = [f"{row} {entry.interval}" for row, entry in single.items() if entry.value < 0.985]
        text = f"not under {', '.join(below)}" if below else f"in all {len(single)} rows"
        yield _point_claim("Fine-tuning on the tested corruption gives at least 98.5 %", text, not below)
    means = tuned_means(results)
    if {"clean", "all_but_one", "all"} <= means.keys():
        clean, but, every = (means[column] for column in ("clean", "all_but_one", "all"))
        gain, most = ((one.low - clean.high, one.high - clean.low) for one in (but, every))
        yield Claim(
            "Over all corruptions, training on all but the tested one gains less than half of what training "
            "on all gains (in the paper from 90.4 to 91.7 and 98.0)",
            "; ".join(f"{column} {entry.interval}" for column, entry in means.items()),
            decide(confirmed=most[0] > 0 and gain[1] < most[0] / 2, refuted=gain[0] >= most[1] / 2),
        )


def _point_claim(statement: str, text: str, holds: bool) -> Claim:
    return Claim(statement, text, decide(confirmed=holds, refuted=not holds))


def spearman(first: list[float], second: list[float]) -> float:
    """Return Spearman's rank correlation; tied values share their mean rank.

    >>> spearman([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    if min(len(set(first)), len(set(second))) < 2:
        return 0.0
    return float(round(stats.spearmanr(first, second).statistic, 12))
