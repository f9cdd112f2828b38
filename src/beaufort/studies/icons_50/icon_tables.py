"""The tables of the study from answers, with intervals over icons and the spread over trainings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort.data import icon_columns
from beaufort.studies.icons_50.icon_networks import ARMS, NETWORKS, OTHERS, PAPER, SPLITS, STYLES_BY, VARIANTS
from beaufort.studies.paper_tables import Measured, ReproducedTable, measured
from beaufort.studies.predictions import StudyPredictions, predictions_by_seed

ANSWERABLE = "subtypes, released rule, classes in training"
"""The column that leaves out icons whose class the released rule removes from training altogether."""


@dataclass(frozen=True)
class IconResults:
    """All answers that are there, by network and split, trainings in the order of their seeds."""

    predictions: Mapping[tuple[str, str], Sequence[StudyPredictions]]

    def correct(self, name: str, split: str) -> NDArray[np.float64] | None:
        """Which icons are right, `(trainings, icons)`; None without answers."""
        found = self.predictions.get((name, split))
        return None if not found else np.stack([one.row(split) for one in found]).astype(np.float64)

    def answerable(self, name: str, split: str) -> NDArray[np.bool_]:
        """Which of the icons have a class that some icon of the training has."""
        one = self.predictions[name, split][0]
        return np.isin(one.labels, one.facts["trained_classes"])


def load_results(folder: Path) -> IconResults:
    """What a folder has."""
    found = {}
    for label, answers in predictions_by_seed(folder / "answers").items():
        name, _, split = label.partition("@")
        found[name, split] = answers
    return IconResults(found)


def accuracy_table(results: IconResults) -> ReproducedTable:
    """Accuracy of every network on what was held out; the paper's beside it where its rule is the same."""
    rows: dict[str, dict[str, Measured]] = {}
    for name in (*NETWORKS, *OTHERS):
        cells = {}
        for split, title in SPLITS.items():
            right = results.correct(name, split)
            if right is None:
                continue
            cells[title] = measured(right, PAPER.get(name, {}).get(split))
            if split == "subtype-released":
                some = right[:, results.answerable(name, split)]
                if some.shape[1]:
                    cells[ANSWERABLE] = measured(some, None)
        if cells:
            rows[VARIANTS[name].title] = cells
    titles = list(SPLITS.values())
    titles.insert(titles.index(SPLITS["subtype-released"]) + 1, ANSWERABLE)
    columns = tuple(title for title in titles if any(title in cells for cells in rows.values()))
    return ReproducedTable("accuracy", "Accuracy on what was held out (percent)", "network", columns, rows)


def arms_table(results: IconResults) -> ReproducedTable:
    """The arms of the question about Shake-Shake, and the networks that the paper compares."""
    splits = ("style", "subtype")
    cells = {
        VARIANTS[name].title: {SPLITS[split]: results.correct(name, split) for split in splits}
        for name in ("resnext29", *ARMS, "shake26-96d")
    }
    columns = tuple(SPLITS[split] for split in splits)
    return _table("shake", "Shake-Shake: method or length (percent)", "arm", columns, cells)


def styles_table(results: IconResults) -> ReproducedTable:
    """Accuracy on each vendor's icons of networks that have seen all others'."""
    splits = {split for _, split in results.predictions if split.startswith("style-")}
    splits |= {"style"} if splits else set()  # Microsoft's alone are no comparison of styles
    vendors = {split.removeprefix("style-") if split != "style" else "microsoft": split for split in splits}
    cells = {
        vendor: {VARIANTS[name].title: results.correct(name, split) for name in STYLES_BY}
        for vendor, split in sorted(vendors.items())
    }
    columns = tuple(VARIANTS[name].title for name in STYLES_BY)
    return _table("styles", "Each style held out in turn (percent)", "held out", columns, cells)


def _table(
    name: str,
    title: str,
    corner: str,
    columns: tuple[str, ...],
    cells: Mapping[str, Mapping[str, NDArray[np.float64] | None]],
) -> ReproducedTable:
    """Return a table of what is there, without rows of which nothing is."""
    rows = {
        row: {column: measured(one, None) for column, one in some.items() if one is not None}
        for row, some in cells.items()
    }
    return ReproducedTable(name, title, corner, columns, {row: some for row, some in rows.items() if some})


@dataclass(frozen=True)
class GroupTable:
    """Accuracy by class, subtype or style."""

    name: str
    title: str
    corner: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[float]]
    """The number of icons first, then fractions; the hardest group first."""


_GROUPS = (
    ("classes", "Classes in Microsoft's style (percent right)", "style", "class"),
    ("subtypes", "Held-out subtypes (percent right)", "subtype", "subtype"),
    ("subtype-styles", "Held-out subtypes by style (percent right)", "subtype", "style"),
)


def group_tables(results: IconResults) -> list[GroupTable]:
    """Return accuracy by class, subtype and style, as far as there are predictions."""
    every = [
        GroupTable(name, title, column, *by_group(results, split, column))
        for name, title, split, column in _GROUPS
    ]
    return [one for one in every if one.rows]


def by_group(results: IconResults, split: str, column: str) -> tuple[list[str], dict[str, list[float]]]:
    """Accuracy by class, subtype or style of the held-out icons: column titles, and a row for each group.

    Rows begin with the number of icons and stand in the order of their mean over networks, the hardest first.
    """
    names = [name for name in (*NETWORKS, *OTHERS) if (name, split) in results.predictions]
    if not names:
        return [], {}
    ids = results.predictions[names[0], split][0].facts["ids"]
    groups = np.array(
        [id.partition("/")[0] for id in ids]
        if column == "class"
        else [icon_columns([id])[column][id] for id in ids]
    )
    means = [found.mean(axis=0) for name in names if (found := results.correct(name, split)) is not None]
    rows = {
        str(group): [float((groups == group).sum()), *(float(one[groups == group].mean()) for one in means)]
        for group in np.unique(groups)
    }
    ordered = dict(sorted(rows.items(), key=lambda item: (np.mean(item[1][1:]), item[0])))
    return [VARIANTS[name].title for name in names], ordered


class Confusion(NamedTuple):
    """Icons of one class that were taken for another."""

    network: str
    split: str
    label: str
    predicted: str
    icons: float
    """In the mean over trainings."""
    fraction: float
    """Of the held-out icons of the class."""


def confusions(results: IconResults, *, most: int) -> list[Confusion]:
    """The most frequent confusions of each network and split, among icons that can be answered."""
    found = []
    for name, split in product((*NETWORKS, *OTHERS), SPLITS):
        answers = results.predictions.get((name, split))
        if not answers:
            continue
        can_be_right = results.answerable(name, split)
        classes = answers[0].facts["classes"]
        pairs: Counter[tuple[int, int]] = Counter()
        for one in answers:
            wrong = ~one.row(split) & can_be_right
            pairs.update(zip(one.labels[wrong].tolist(), one.predicted[0][wrong].tolist(), strict=True))
        sizes = Counter(answers[0].labels.tolist())
        for (label, answer), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:most]:
            mean = count / len(answers)
            found.append(Confusion(name, split, classes[label], classes[answer], mean, mean / sizes[label]))
    return found
