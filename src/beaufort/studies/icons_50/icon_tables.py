"""The tables and claims of the study, from predictions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from beaufort.data import icon_columns
from beaufort.studies.engine import definition
from beaufort.studies.icons_50.icon_runs import ARMS, NETWORKS, OTHERS, SPLITS, VARIANTS
from beaufort.studies.paper_tables import Claim, Measured, ReproducedTable, decide, measured
from beaufort.studies.prediction_archive import predictions_by_seed
from beaufort.studies.predictions import StudyPredictions

PREDICTABLE = "subtypes, released rule, classes in training"
"""The column without icons whose class the released rule removes from training."""

Rows = NDArray[np.float64]
"""Whether icons are classified correctly, `(runs, icons)`."""


@dataclass(frozen=True)
class IconResults:
    """All predictions by network and split, sorted by seed."""

    predictions: Mapping[tuple[str, str], Sequence[StudyPredictions]]

    def correct(self, name: str, split: str) -> Rows | None:
        runs = self.predictions.get((name, split))
        return np.stack([one.row(split) for one in runs]).astype(np.float64) if runs else None

    def predictable(self, name: str, split: str) -> NDArray[np.bool_]:
        """Return which icons have a class that is in the training set."""
        one = self.predictions[name, split][0]
        return np.isin(one.labels, one.facts["trained_classes"])


def load_results(folder: Path) -> IconResults:
    """Read all predictions of a study."""
    found = {}
    for label, runs in predictions_by_seed(folder, "predictions").items():
        name, _, split = label.partition("@")
        found[name, split] = runs
    return IconResults(found)


def accuracy_table(results: IconResults) -> ReproducedTable:
    """Return the accuracy of every network on the held-out icons, beside the paper's under the same rule."""
    cells: dict[str, dict[str, Measured]] = {}
    columns = list(SPLITS.values())
    columns.insert(columns.index(SPLITS["subtype-released"]) + 1, PREDICTABLE)
    for name, variant in {**NETWORKS, **OTHERS}.items():
        row = cells.setdefault(variant.title, {})
        for split, title in SPLITS.items():
            if (correct := results.correct(name, split)) is None:
                continue
            row[title] = measured(correct, variant.paper.get(split))
            if split == "subtype-released" and (some := results.predictable(name, split)).any():
                row[PREDICTABLE] = measured(correct[:, some])
    there = tuple(title for title in columns if any(title in row for row in cells.values()))
    return _table("accuracy", "Accuracy on the held-out icons (percent)", "network", there, cells)


def arms_table(results: IconResults) -> ReproducedTable:
    """Return the arms about Shake-Shake, and the networks that the paper compares."""
    splits = ("style", "subtype")
    cells = {
        VARIANTS[name].title: {
            SPLITS[split]: measured(correct)
            for split in splits
            if (correct := results.correct(name, split)) is not None
        }
        for name in ("resnext29", *ARMS, "shake26-96d")
    }
    columns = tuple(SPLITS[split] for split in splits)
    return _table("shake", "Shake-Shake: method or length of training (percent)", "arm", columns, cells)


def styles_table(results: IconResults) -> ReproducedTable:
    """Return the accuracy on each vendor's icons of networks trained on those of all others."""
    splits = {split for _, split in results.predictions if split.startswith("style-")}
    splits |= {"style"} if splits else set()  # Microsoft's alone would compare nothing
    vendors = {split.removeprefix("style-") if split != "style" else "microsoft": split for split in splits}
    names = definition("icons-50")["every_style"]
    cells = {
        vendor: {
            VARIANTS[name].title: measured(correct)
            for name in names
            if (correct := results.correct(name, split)) is not None
        }
        for vendor, split in sorted(vendors.items())
    }
    columns = tuple(VARIANTS[name].title for name in names)
    return _table("styles", "Each style held out in turn (percent)", "held out", columns, cells)


def _table(
    name: str, title: str, corner: str, columns: tuple[str, ...], cells: Mapping[str, Mapping[str, Measured]]
) -> ReproducedTable:
    return ReproducedTable(name, title, corner, columns, {row: some for row, some in cells.items() if some})


@dataclass(frozen=True)
class GroupTable:
    """Accuracy by class, subtype or style."""

    name: str
    title: str
    corner: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[float]]
    """Number of icons, then fractions; the hardest group first."""


def group_tables(results: IconResults) -> list[GroupTable]:
    """Return the accuracy by class, subtype and style, as far as there are predictions."""
    tables = (
        ("classes", "Classes in Microsoft's style (percent correct)", "style", "class"),
        ("subtypes", "Held-out subtypes (percent correct)", "subtype", "subtype"),
        ("subtype-styles", "Held-out subtypes by style (percent correct)", "subtype", "style"),
    )
    every = [
        GroupTable(name, title, column, *by_group(results, split, column))
        for name, title, split, column in tables
    ]
    return [one for one in every if one.rows]


def by_group(results: IconResults, split: str, column: str) -> tuple[list[str], dict[str, list[float]]]:
    """Return the networks, and for each group the number of icons and the accuracy of each network.

    Groups are sorted by their mean over networks, the hardest first.
    """
    names = [name for name in (*NETWORKS, *OTHERS) if (name, split) in results.predictions]
    if not names:
        return [], {}
    ids = results.predictions[names[0], split][0].facts["ids"]
    by_id = {id: id.partition("/")[0] for id in ids} if column == "class" else icon_columns(ids)[column]
    groups = np.array([by_id[id] for id in ids])
    means = [some.mean(axis=0) for name in names if (some := results.correct(name, split)) is not None]
    rows = {
        str(group): [float((groups == group).sum()), *(float(one[groups == group].mean()) for one in means)]
        for group in np.unique(groups)
    }
    ordered = dict(sorted(rows.items(), key=lambda item: (np.mean(item[1][1:]), item[0])))
    return [VARIANTS[name].title for name in names], ordered


class Confusion(NamedTuple):
    """Icons of one class that a network took for another."""

    network: str
    split: str
    label: str
    predicted: str
    icons: float
    """Mean number over training runs."""
    fraction: float
    """Of the held-out icons of the class."""


def confusions(results: IconResults, *, most: int) -> list[Confusion]:
    """Return the most frequent confusions of each network and split, among classes in the training set."""
    found = []
    for name, split in product((*NETWORKS, *OTHERS), SPLITS):
        runs = results.predictions.get((name, split))
        if not runs:
            continue
        predictable, classes = results.predictable(name, split), runs[0].facts["classes"]
        pairs: Counter[tuple[int, int]] = Counter()
        for one in runs:
            wrong = ~one.row(split) & predictable
            pairs.update(zip(one.labels[wrong].tolist(), one.predicted[0][wrong].tolist(), strict=True))
        sizes = Counter(runs[0].labels.tolist())
        for (label, predicted), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:most]:
            mean = count / len(runs)
            found.append(
                Confusion(name, split, classes[label], classes[predicted], mean, mean / sizes[label])
            )
    return found


@dataclass(frozen=True)
class Effect:
    """Difference between the accuracies of two networks on the same icons."""

    name: str
    split: str
    first: str
    second: str
    value: float
    low: float
    high: float
    """95 % interval over icons and over training runs."""
    runs: tuple[int, int]

    @property
    def points(self) -> str:
        return f"{100 * self.value:+.1f} points [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"

    @property
    def verdict(self) -> str:
        """The verdict on the claim that the first network is more accurate."""
        return decide(confirmed=self.low > 0, refuted=self.high < 0, runs=min(self.runs))


def difference(first: Rows, second: Rows) -> tuple[float, float, float]:
    """Return the difference of two means and its interval, for arrays `(runs, icons)` over the same icons.

    Icons are paired, runs are not. The variances of both add up; the quantile is that of Student's t with the
    degrees of freedom of Welch and Satterthwaite.

    >>> ones, halves = np.ones((2, 8)), np.tile([0.0, 1.0], (2, 4))
    >>> [round(value, 2) for value in difference(ones, halves)]
    [0.5, 0.05, 0.95]
    """
    paired = first.mean(axis=0) - second.mean(axis=0)
    parts = [(paired.var(ddof=1) / len(paired), len(paired) - 1)]
    for rows in (first, second):
        if len(rows) > 1:
            parts.append((rows.mean(axis=1).var(ddof=1) / len(rows), len(rows) - 1))
    variance = sum(part for part, _ in parts)
    value = float(paired.mean())
    if variance == 0:  # no two icons differ, so with 95 % confidence at most a fraction of 3/n would
        width = 3 / len(paired)
    else:
        freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
        width = float(special.stdtrit(freedom, 0.975)) * math.sqrt(variance)
    return value, max(-1.0, value - width), min(1.0, value + width)


def effects(results: IconResults) -> list[Effect]:
    """Return the comparisons about Shake-Shake for which both networks have predictions."""
    compared = product(definition("icons-50")["compared"], ("style", "subtype"))
    every = (_effect(results, name, split, first, second) for (name, first, second), split in compared)
    return [one for one in every if one is not None]


def _effect(results: IconResults, name: str, split: str, first: str, second: str) -> Effect | None:
    a, b = results.correct(first, split), results.correct(second, split)
    if a is None or b is None:
        return None
    titles = VARIANTS[first].title, VARIANTS[second].title
    return Effect(name, SPLITS[split], *titles, *difference(a, b), (len(a), len(b)))


def claims(results: IconResults, compared: Sequence[Effect]) -> Iterator[Claim]:
    """Yield the claims that the existing predictions can test."""
    multiscale = [
        _effect(results, "multiscale features", "style", "msdnet", name)
        for name in definition("icons-50")["multiscale"]
    ]

    def claim(one: Effect) -> Claim:
        statement = f"{one.name}: {one.first} is more accurate than {one.second} on {one.split}"
        return Claim(statement, f"{one.points}, {_runs_text(*one.runs)}", one.verdict)

    yield from map(claim, compared)
    for name, split in product(NETWORKS, ("style", "subtype")):
        # a new surface is harder than a new rendition, so the amount of training data is not the cause
        easy, hard = results.correct(name, "traditional"), results.correct(name, split)
        if easy is not None and hard is not None:
            first, second = measured(easy), measured(hard)
            least, most = first.lowest - second.highest, first.highest - second.lowest
            yield Claim(
                f"{VARIANTS[name].title} is more than 10 points better on {SPLITS['traditional']} than on "
                f"{SPLITS[split]}",
                f"{100 * first.value:.1f} and {100 * second.value:.1f}, {100 * least:+.1f} to "
                f"{100 * most:+.1f} points apart by the runs' own intervals, "
                f"{_runs_text(len(easy), len(hard))}",
                decide(confirmed=least > 0.1, refuted=most < 0.1, runs=min(len(easy), len(hard))),
            )
    yield from (claim(one) for one in multiscale if one is not None)


def _runs_text(first: int, second: int) -> str:
    if first == second == 1:
        return "one run of each"
    return f"{first} runs of each" if first == second else f"{first} and {second} runs"
