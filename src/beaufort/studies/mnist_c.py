"""MNIST-C (Mu & Gilmer 2019): Figures 2, 3 and 4 and the paper's conclusions, from predictions, and pages."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy import stats

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.metrics import MetricError, published_table, relative_mean_corruption_error
from beaufort.metrics.stats import Estimate, bootstrap
from beaufort.studies.corruption_selection import draw_selection, matrix_csv, selection
from beaufort.studies.engine import run_facts
from beaufort.studies.failed_runs import check_runs, ending_facts
from beaufort.studies.paper_tables import (
    Claim,
    Measured,
    ReproducedTable,
    claim,
    measured,
    measured_difference,
    table_csv,
)
from beaufort.studies.prediction_archive import predictions_by_seed
from beaufort.studies.predictions import StudyPredictions, machine_facts
from beaufort.studies.study_file import StudySettings, definition
from beaufort.studies.study_page import PageSection, StudyPage, claims_section, table_section
from beaufort.studies.study_tasks import Log, StudyTask
from beaufort.studies.verdicts import Requirement

FILE = definition("mnist-c")
MODELS: Mapping[str, str] = {name: FILE["arms"][name]["title"] for name in FILE["models"]}
"""The models of the tables, and the paper's names."""

CLEAN = "none"
"""The paper's name of the clean digits."""

COLUMNS = ("clean", "all_but_one", "all", "single")
"""Columns of Figure 4."""

EXPLANATIONS = "explanations.yaml"
"""Why numbers differ from the paper's, by `table/row/column` with * as a wildcard."""

_RESAMPLES = 2000
_MEAN, _RELATIVE = "mean_accuracy_percent", "relative_mce_percent"

Runs = Sequence[StudyPredictions]
Rows = NDArray[np.float64]
"""Whether digits are classified correctly, `(seeds, digits)`."""


def plan(settings: StudySettings, only: Sequence[str], log: Log) -> list[list[StudyTask]]:
    """Return the training runs, and the pessimal noise of the first Conv1."""
    from beaufort.studies.trained_arms import training_tasks, wanted_arms

    phases = [training_tasks(settings, wanted_arms(settings, only))]
    if not only or "pessimal" in only:
        call, options = "beaufort.studies.pessimal_noise:make_pessimal", {"settings": settings, "seed": 0}
        phases.append([StudyTask("pessimal noise", "pessimal/seed0.npz", call, options)])
    return phases


@dataclass(frozen=True)
class MnistResults:
    """All predictions of a study, sorted by seed."""

    settings: StudySettings
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
        return tuple(row for row in (CLEAN, *self.settings.corruptions) if all(row in some for some in each))


def every_corruption(settings: StudySettings) -> tuple[str, ...]:
    """Return the 31 corruptions that the 15 of the tables were selected from; those of the tables first."""
    return (*settings.corruptions, *settings.extra)


def load_results(folder: Path, settings: StudySettings) -> MnistResults:
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
    names = (CLEAN, *results.settings.corruptions)
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
    printed, names = FILE["printed_means"], every_corruption(results.settings)
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
    """Yield the claims of the study's file that the existing predictions can test."""
    declared = FILE["claims"]
    if "Conv1" in fig3.columns and fig3.rows:
        clean, mean = fig3.rows[CLEAN]["Conv1"], fig2.rows[_MEAN]["Conv1"]
        rows = [row["Conv1"] for name, row in fig3.rows.items() if name != CLEAN]
        rho = spearman([row.value for row in rows], [row.printed or 0.0 for row in rows])
        yield claim(declared["clean"], clean.interval, clean.estimate)
        yield claim(declared["ranks"], f"{rho:.3f} over {len(rows)} corruptions", Estimate(rho, rho, rho, 0))
        yield claim(declared["mean"], mean.interval, mean.estimate, runs=mean.runs)
    for title, entry in fig2.rows[_MEAN].items():
        if title != "Conv1":
            value, low, high = measured_difference(entry, fig2.rows[_MEAN]["Conv1"])
            text = f"{100 * value:+.2f} points [{100 * low:+.2f}, {100 * high:+.2f}]"
            found = Estimate(value, low, high, 0)
            yield claim(declared["loses"], text, found, runs=entry.runs, model=title)
    collapse = declared["collapse"]
    for title, name in product(collapse["models"], collapse["corruptions"]):
        if ours := fig3.rows.get(name, {}).get(title):
            conv1 = fig3.rows[name]["Conv1"]
            gap = Estimate(conv1.value - ours.value, conv1.low - ours.high, conv1.high - ours.low, 0)
            text = f"{ours.interval}, Conv1 {conv1.interval}"
            yield claim(collapse, text, gap, runs=ours.runs, model=title, corruption=name)
    single = {
        row: cells["single"] for row, cells in fig4.rows.items() if "single" in cells and row != "mean_acc"
    }
    if single:
        bound = declared["tuned"]["above"]
        below = [f"{row} {entry.interval}" for row, entry in single.items() if entry.value < bound]
        text = f"not under {', '.join(below)}" if below else f"in all {len(single)} rows"
        least = min(entry.value for entry in single.values())
        yield claim(declared["tuned"], text, Estimate(least, least, least, 0))
    means = tuned_means(results)
    if {"clean", "all_but_one", "all"} <= means.keys():
        clean, but, every = (means[column] for column in ("clean", "all_but_one", "all"))
        gain, most = ((one.low - clean.high, one.high - clean.low) for one in (but, every))
        half = Estimate(0, gain[0] - most[1] / 2, gain[1] - most[0] / 2, 0)
        text = "; ".join(f"{column} {entry.interval}" for column, entry in means.items())
        yield claim(declared["transfer"], text, half, also=[Requirement(Estimate(0, *most, 0), ">")])


class ErrorRatio(NamedTuple):
    """Mean error under the corruptions divided by Conv1's and by that on clean digits; ours, the paper's."""

    title: str
    to_conv1: float
    printed_to_conv1: float
    to_clean: float
    printed_to_clean: float


def error_ratios(fig3: ReproducedTable) -> list[ErrorRatio]:
    """Return the ratios of errors of every model, from the accuracies of Figure 3."""
    names = [name for name in fig3.rows if name != CLEAN]

    def errors(title: str, which: str) -> tuple[float, float]:
        values = {name: getattr(row[title], which) for name, row in fig3.rows.items()}
        return 1 - float(np.mean([values[name] for name in names])), 1 - values[CLEAN]

    base = {which: errors("Conv1", which)[0] for which in ("value", "printed")}
    ratios = []
    for title in fig3.columns:
        both = []
        for which, conv1 in base.items():
            corrupted, clean = errors(title, which)
            both.append((corrupted / conv1, corrupted / clean if clean else math.inf))
        ratios.append(ErrorRatio(title, both[0][0], both[1][0], both[0][1], both[1][1]))
    return ratios


def ratios_section(fig3: ReproducedTable) -> PageSection:
    """Return a section with the ratios of errors."""
    rows = [(one.title, *(f"{value:.2f}" for value in one[1:])) for one in error_ratios(fig3)]
    chosen = [
        one for one in error_ratios(fig3) if one.title in [MODELS[name] for name in FILE["adversarial"]]
    ]
    ends = [
        f"{min(values):.1f} to {max(values):.1f}"
        for values in zip(*((one.to_conv1, one.printed_to_conv1) for one in chosen), strict=True)
    ]
    text = (
        f"The adversarially trained networks have {ends[0]} times the mean corrupted error of Conv1, in the "
        f"paper {ends[1]}."
        if chosen
        else ""
    )
    head = ("model", "corrupted error / Conv1's", "paper", "corrupted / clean error", "paper")
    return PageSection(id="ratios", title="Ratios of errors", text=text, head=head, rows=rows)


def spearman(first: list[float], second: list[float]) -> float:
    """Return Spearman's rank correlation; tied values share their mean rank.

    >>> spearman([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    if min(len(set(first)), len(set(second))) < 2:
        return 0.0
    return float(round(stats.spearmanr(first, second).statistic, 12))


def study_files(folder: Path, settings: StudySettings) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file that the existing predictions allow."""
    results = load_results(folder, settings)
    if not results.models.get("conv1"):
        raise OptionError(f"{folder} has no predictions of Conv1 yet; run the study first")
    fig2, fig3, fig4 = figure_2(results), figure_3(results), figure_4(results)
    tables = [table for table in (fig2, fig3, fig4) if any(table.rows.values())]
    for table in tables:
        yield f"{table.name}.csv", table_csv(table).encode()
    figures: dict[str, bytes] = {}
    if (chosen := selection(results)) is not None:
        yield "transfer.csv", matrix_csv(chosen.names, "trained on", 100 * chosen.accuracy, 2).encode()
        yield "failures.csv", matrix_csv(chosen.names, "wrong under", chosen.failures, 3).encode()
        figures["selection.svg"] = draw_selection(chosen).svg().encode()
    figures |= _galleries(results)
    yield from figures.items()
    means = "; ".join(f"{column} {entry}" for column, entry in tuned_means(results).items())
    remark = f"Over all {len(every_corruption(settings))} corruptions: {means}." if means else ""
    sections = [claims_section(list(claims(results, fig2, fig3, fig4)))]
    remarks = {fig2.name: relative_mce_remark(fig3), fig4.name: remark}
    for table in tables:
        title = f"{table.title} ({table.name})"
        sections.append(table_section(table, title=title, remark=remarks.get(table.name, "")))
    if "Conv1" in fig3.columns and fig3.rows[CLEAN]["Conv1"].value < 1:
        sections.append(ratios_section(fig3))
    from beaufort.studies.pessimal_noise import read_pessimal

    if matrices := [read_pessimal(path) for path in sorted((folder / "pessimal").glob("seed*.npz"))]:
        file = io.BytesIO()
        np.save(file, matrices[0][0])
        yield "pessimal_noise_matrix.npy", file.getvalue()
        text = " ".join(_noise_text(*one) for one in matrices)
        sections.append(PageSection(id="noise", title="Pessimal noise", text=text))
    head, differing = ("cell", "ours", "explanation"), list(_differences(tables, _explanations(folder)))
    sections += [
        PageSection(
            id="differences",
            title="Differences from the paper",
            text=_count_differences([fig3, fig4]),
            head=head,
            rows=differing,
        ),
        PageSection(id="figures", title="Figures", figures={name: name for name in figures}),
    ]
    texts, runs = FILE, check_runs([*_model_runs(results), *_tuned_runs(results)])
    models, tuned = (dict(by_name) for by_name in (results.models, results.tuned))
    facts = {
        **machine_facts(one for some in (*models.values(), *tuned.values()) for one in some),
        "seeds": ", ".join(f"{title} {len(models[name])}" for name, title in results.titles.items()),
        "training runs": f"{sum(map(len, models.values()))} models, "
        f"{sum(map(len, tuned.values()))} fine-tuned",
        "no sign of learning": runs.text,
        **run_facts(folder),
    }
    page = StudyPage(
        title=texts["title"],
        facts=facts,
        rule=texts["rule"],
        sections=sections,
        runs=runs,
        rehearse=settings.rehearse,
        unit=texts["unit"],
    )
    yield from page.files(figures)


def _count_differences(tables: list[ReproducedTable]) -> str:
    counts = []
    for table in tables:
        cells = [entry for row in table.rows.values() for entry in row.values() if entry.printed is not None]
        if cells:
            counts.append(f"{sum(one.differs for one in cells)} of {len(cells)} cells of {table.name}")
    return f"Different beyond chance: {', '.join(counts)}." if counts else ""


def _differences(
    tables: list[ReproducedTable], explanations: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the cells whose printed number is outside our intervals: place, values, explanation."""
    for table in tables:
        for row, cells in table.rows.items():
            for column, entry in cells.items():
                if entry.differs:
                    place = f"{table.name}/{row}/{column}"
                    found = (text for pattern, text in explanations.items() if fnmatchcase(place, pattern))
                    values = f"{100 * entry.value:.2f}, paper {100 * (entry.printed or 0):.2f}"
                    yield f"{table.name}, {row}, {column}", values, next(found, "not explained")


def _explanations(folder: Path) -> dict[str, str]:
    path = folder / EXPLANATIONS
    if not path.is_file():
        return {}
    import yaml

    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise OptionError(f"{path} must have lines of the form 'table/row/column: explanation'")
    return {str(key): str(value) for key, value in found.items()}


def _noise_text(matrix: np.ndarray[Any, Any], about: Mapping[str, Any]) -> str:
    from beaufort.studies.pessimal_noise import rank_one_fraction

    accuracy = about["accuracy"]
    names = [name for name in ("clean", "white", "published", "ours") if name in accuracy]
    return (
        f"Accuracy of Conv1 (seed {about['seed']}) in percent: "
        f"{', '.join(f'{name} {100 * accuracy[name]:.2f}' for name in names)}. "
        f"{100 * rank_one_fraction(matrix):.2f} % of our matrix's energy is in one direction."
    )


def _galleries(results: MnistResults) -> dict[str, bytes]:
    """Return an image of misclassified digits for each model; none if the digits are not available."""
    try:
        return {
            f"errors-{name}.png": _error_gallery(title, results.models[name][0], results.settings)
            for name, title in results.titles.items()
        }
    except BeaufortError:  # the tables do not need the digits
        return {}


_COLUMNS, _SCALE, _GAP, _NAMES, _HEAD = 12, 2, 4, 110, 30
_TILE = 28 * _SCALE
_LINE = _TILE + 16


def _error_gallery(title: str, predictions: StudyPredictions, settings: StudySettings) -> bytes:
    """Draw digits that are wrong under a condition as a PNG, chosen at random, a row per condition."""
    from beaufort.studies.trained_arms import test_images

    digits = test_images(settings)
    names = [name for name in (CLEAN, *settings.corruptions) if name in predictions.conditions]
    width = _NAMES + _COLUMNS * (_TILE + _GAP) + _GAP
    sheet = Image.new("RGB", (width, _HEAD + len(names) * (_LINE + _GAP)), "white")
    draw = ImageDraw.Draw(sheet)
    large, middle, small = map(ImageFont.load_default, (13, 12, 11))
    heading = f"{title}: random misclassified digits (clean prediction → prediction, label)"
    draw.text((_GAP, 6), heading, "black", large)
    clean = predictions.predicted[predictions.conditions.index(CLEAN)]
    for number, name in enumerate(names):
        top = _HEAD + number * (_LINE + _GAP)
        correct = predictions.row(name)
        draw.text((_GAP, top + 16), name.replace("_", " "), "black", middle)
        draw.text((_GAP, top + 32), f"{1 - correct.mean():.1%} wrong", "dimgray", small)
        wrong = np.random.default_rng(number).permutation(np.flatnonzero(~correct))
        for column, place in enumerate(wrong[:_COLUMNS]):
            left = _NAMES + column * (_TILE + _GAP)
            digit = Image.fromarray(digits.images[name][int(place), 0].cpu().numpy())
            sheet.paste(digit.resize((_TILE, _TILE), Image.Resampling.NEAREST), (left, top))
            predicted = predictions.predicted[predictions.conditions.index(name), place]
            text = f"{clean[place]}→{predicted} ({predictions.labels[place]})"
            draw.text((left, top + _TILE), text, "black", small)
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()


def _model_runs(results: MnistResults) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for name, title in results.titles.items():
        for seed, predictions in enumerate(results.models[name]):
            inside = f"fig2 and fig3, {title}, and conclusions about it"
            if name == "conv1":
                inside += (
                    ", relative mCE of all models; fig4, clean, and fine-tuning of this seed; failures.csv"
                )
            yield title, inside + ("" if seed else f"; errors-{name}.png"), ending_facts(predictions)


def _tuned_runs(results: MnistResults) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    means = "means of that column over rows that all have this seed"
    for label, runs in results.tuned.items():
        kind, _, row = label.partition("-")
        inside = {
            "all": f"fig4, all; all_but_one of {CLEAN}",
            "but": f"fig4, {row}, all_but_one; {means}",
            "single": f"fig4, {row}, single; {means}; transfer.csv, {row}; selection.svg",
        }[kind]
        for predictions in runs:
            yield f"Conv1 tuned on {label.replace('-', ' ')}", inside, ending_facts(predictions)
