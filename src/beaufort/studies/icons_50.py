"""Icons-50 (Hendrycks & Dietterich 2018, arXiv:1807.01697v1): tables, claims and pages from predictions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from beaufort._core.errors import OptionError
from beaufort._core.text import csv_text
from beaufort.data import icon_columns
from beaufort.metrics.stats import Estimate
from beaufort.studies.engine import run_facts
from beaufort.studies.failed_runs import CheckedRuns, check_runs, ending_facts
from beaufort.studies.icon_examples import example_sheet
from beaufort.studies.paper_tables import Claim, Measured, ReproducedTable, claim, measured, percent
from beaufort.studies.prediction_archive import predictions_by_seed
from beaufort.studies.predictions import StudyPredictions, machine_facts
from beaufort.studies.study_file import StudySettings, definition
from beaufort.studies.study_page import PageSection, StudyPage, claims_section, table_section
from beaufort.studies.study_tasks import Log, StudyTask

FILE = definition("icons-50")
ARMS: dict[str, dict[str, Any]] = FILE["arms"]
TITLES: dict[str, str] = {name: arm["title"] for name, arm in ARMS.items()}
SPLITS: dict[str, str] = {
    name: split["title"] for name, split in FILE["splits"].items() if "data" not in split
}
"""What each protocol holds out; `style-VENDOR` holds out another vendor."""
_TABLE = (*FILE["networks"], *FILE["others"])

PREDICTABLE = "subtypes, released rule, classes in training"
"""The column without icons whose class the released rule removes from training."""

_MENU = {"shake": "Shake-Shake", "subtype-styles": "Subtypes by style"}

Rows = NDArray[np.float64]
"""Whether icons are classified correctly, `(runs, icons)`."""


def plan(settings: StudySettings, only: Sequence[str], log: Log) -> list[list[StudyTask]]:
    """Return the training runs."""
    from beaufort.studies.trained_arms import training_tasks, wanted_arms

    given = dict(settings.data)
    needed = {"cifar-100-subtypes": "cifar-100", "imagenet-22k": "imagenet-22k"}
    for name in dict.fromkeys(needed.get(part, "icons-50") for part in only or ["style"] if part not in ARMS):
        if name not in given:
            why = (
                "most of its artwork must not be redistributed"
                if name == "icons-50"
                else "it has no free mirror"
            )
            raise OptionError(
                f"{name} cannot be downloaded, because {why}; add --data {name}=PATH with its directory or "
                "archive"
            )
    if "imagenet-22k" in only:
        from beaufort.studies.last_layer import last_layer_tasks

        return [training_tasks(settings, wanted_arms(settings, only)), last_layer_tasks(settings)]
    return [training_tasks(settings, wanted_arms(settings, only))]


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
    table = _table(results, "accuracy", "Accuracy on the held-out icons (percent)", "network", _TABLE, SPLITS)
    released, rows = SPLITS["subtype-released"], dict(table.rows)
    for name in _TABLE:
        correct = results.correct(name, "subtype-released")
        if correct is not None and (some := results.predictable(name, "subtype-released")).any():
            rows[TITLES[name]] = {**rows[TITLES[name]], PREDICTABLE: measured(correct[:, some])}
    columns = list(table.columns)
    if any(PREDICTABLE in row for row in rows.values()):
        columns.insert(columns.index(released) + 1, PREDICTABLE)
    return replace(table, columns=tuple(columns), rows=rows)


def arms_table(results: IconResults) -> ReproducedTable:
    """Return the arms about Shake-Shake, and the networks that the paper compares."""
    title = "Shake-Shake: method or length of training (percent)"
    names, splits = ("resnext29", *FILE["shake_arms"], "shake26-96d"), ("style", "subtype")
    table = _table(results, "shake", title, "arm", names, splits, printed=False)
    return replace(table, columns=tuple(SPLITS[split] for split in splits))


def styles_table(results: IconResults) -> ReproducedTable:
    """Return the accuracy on each vendor's icons of networks trained on those of all others."""
    splits = {split for _, split in results.predictions if split.startswith("style-")}
    splits |= {"style"} if splits else set()  # Microsoft's alone would compare nothing
    vendors = {split.removeprefix("style-") if split != "style" else "microsoft": split for split in splits}
    names = FILE["every_style"]
    cells = {
        vendor: {
            TITLES[name]: measured(correct)
            for name in names
            if (correct := results.correct(name, split)) is not None
        }
        for vendor, split in sorted(vendors.items())
    }
    columns = tuple(TITLES[name] for name in names)
    return ReproducedTable("styles", "Each style held out in turn (percent)", "held out", columns, cells)


def subtypes_of_cifar(results: IconResults) -> ReproducedTable:
    """Return the accuracy on classes of CIFAR-100 left out of their superclass, and on all others."""
    paper = {"held-out classes": 1 - 0.597, "other classes": 1 - 0.132}
    names = [name for name, split in FILE["splits"].items() if "data" in split]
    arm, rows = "wrn40-2", {}
    for split in names:
        both = [results.correct(arm, one) for one in (split, f"{split}-seen")]
        cells = {title: measured(one) for title, one in zip(paper, both, strict=True) if one is not None}
        if cells:
            rows[FILE["splits"][split]["title"]] = cells
    if len(rows) == len(names):  # the paper prints means over the four numbers of classes
        rows["mean"] = {title: _mean([row[title] for row in rows.values()], paper[title]) for title in paper}
    title = "Classes of CIFAR-100 left out of their superclass (percent)"
    return ReproducedTable("cifar-100-subtypes", title, "held out", tuple(paper), rows)


def superclasses_of_imagenet(results: IconResults) -> ReproducedTable:
    """Return the accuracy of new last layers on classes of ImageNet-1k and on others."""
    columns = {"imagenet-22k-seen": "classes of ImageNet-1k", "imagenet-22k": "other classes"}
    rows: dict[str, dict[str, Measured]] = {}
    for (name, split), _ in sorted(results.predictions.items()):
        if split in columns and (correct := results.correct(name, split)) is not None:
            rows.setdefault(name, {})[columns[split]] = measured(correct)
    title = "25 superclasses of ImageNet-22K (percent)"
    return ReproducedTable("imagenet-22k", title, "network", tuple(columns.values()), rows)


def _mean(cells: Sequence[Measured], printed: float) -> Measured:
    """Return the mean of cells over different images, which count as independent."""
    value, count = float(np.mean([one.value for one in cells])), len(cells)
    low, high = (
        value + sign * math.sqrt(sum((end(one) - one.value) ** 2 for one in cells)) / count
        for sign, end in ((-1, lambda one: one.low), (1, lambda one: one.high))
    )
    spreads = [one.spread for one in cells if one.spread is not None]
    spread = math.sqrt(sum(one**2 for one in spreads)) / count if spreads else None
    return Measured(value, low, high, spread, low, high, printed, min(one.runs for one in cells))


def _table(
    results: IconResults,
    name: str,
    title: str,
    corner: str,
    arms: Iterable[str],
    splits: Iterable[str],
    *,
    printed: bool = True,
) -> ReproducedTable:
    cells: dict[str, dict[str, Measured]] = {}
    for arm, split in product(arms, splits):
        if (correct := results.correct(arm, split)) is not None:
            paper = ARMS[arm].get("paper", {}).get(split) if printed else None
            cells.setdefault(TITLES[arm], {})[SPLITS[split]] = measured(correct, paper)
    columns = tuple(one for one in SPLITS.values() if any(one in row for row in cells.values()))
    return ReproducedTable(name, title, corner, columns, cells)


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
    names = [name for name in _TABLE if (name, split) in results.predictions]
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
    return [TITLES[name] for name in names], ordered


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
    for name, split in product(_TABLE, SPLITS):
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
        return claim(
            FILE["claims"]["compared"],
            "",
            self.estimate,
            runs=min(self.runs),
            name="",
            first="",
            second="",
            split="",
        ).verdict

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.value, self.low, self.high, 0)


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
    compared = product(FILE["compared"], ("style", "subtype"))
    every = (_effect(results, name, split, first, second) for (name, first, second), split in compared)
    return [one for one in every if one is not None]


def _effect(results: IconResults, name: str, split: str, first: str, second: str) -> Effect | None:
    a, b = results.correct(first, split), results.correct(second, split)
    if a is None or b is None:
        return None
    titles = TITLES[first], TITLES[second]
    return Effect(name, SPLITS[split], *titles, *difference(a, b), (len(a), len(b)))


def claims(results: IconResults, compared: Sequence[Effect]) -> Iterator[Claim]:
    """Yield the claims of the study's file that the existing predictions can test."""
    declared = FILE["claims"]

    def of(one: Effect) -> Claim:
        return claim(
            declared["compared"],
            f"{one.points}, {_runs_text(*one.runs)}",
            one.estimate,
            runs=min(one.runs),
            name=one.name,
            first=one.first,
            second=one.second,
            split=one.split,
        )

    yield from map(of, compared)
    for name, split in product(FILE["networks"], ("style", "subtype")):
        # a new surface is harder than a new rendition, so the amount of training data is not the cause
        easy, hard = results.correct(name, "traditional"), results.correct(name, split)
        if easy is not None and hard is not None:
            first, second = measured(easy), measured(hard)
            least, most = first.lowest - second.highest, first.highest - second.lowest
            text = (
                f"{100 * first.value:.1f} and {100 * second.value:.1f}, {100 * least:+.1f} to "
                f"{100 * most:+.1f} points apart by the runs' own intervals, "
                f"{_runs_text(len(easy), len(hard))}"
            )
            apart, runs = Estimate(first.value - second.value, least, most, 0), min(len(easy), len(hard))
            yield claim(declared["easier"], text, apart, runs=runs, network=TITLES[name], split=SPLITS[split])
    for name in FILE["multiscale"]:
        if one := _effect(results, "multiscale features", "style", "msdnet", name):
            yield of(one)


def _runs_text(first: int, second: int) -> str:
    if first == second == 1:
        return "one run of each"
    return f"{first} runs of each" if first == second else f"{first} and {second} runs"


def study_files(folder: Path, settings: StudySettings) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file that the existing predictions allow."""
    results, texts = load_results(folder), FILE
    if not results.predictions:
        raise OptionError(f"{folder} has no predictions yet; run the study first")
    compared, groups = effects(results), group_tables(results)
    sections, images = [], {}
    if found := list(claims(results, compared)):
        sections.append(claims_section(found))
    for table in (
        accuracy_table(results),
        arms_table(results),
        styles_table(results),
        subtypes_of_cifar(results),
        superclasses_of_imagenet(results),
    ):
        if table.rows:
            yield f"{table.name}.csv", cells_csv(table).encode()
            remark = _shake_text(compared) if table.name == "shake" else ""
            sections.append(table_section(table, menu=_MENU.get(table.name, ""), remark=remark))
    if compared:
        yield "shake-effects.csv", effects_csv(compared).encode()
    for group in groups:
        yield f"{group.name}.csv", groups_csv(group).encode()
        sections.append(_group_section(group))
    yield "confusions.csv", confusions_csv(confusions(results, most=20)).encode()
    if frequent := confusions(results, most=3):
        head = ("network", "held out", "class", "predicted", "icons", "of the class")
        text = texts["confusions_text"]
        rows = [
            (
                *(TITLES[one.network], SPLITS[one.split], one.label, one.predicted),
                *(f"{one.icons:.3g}", f"{one.fraction:.0%}"),
            )
            for one in frequent
        ]
        sections.append(PageSection(id="confusions", title="Confusions", text=text, head=head, rows=rows))
    if examples := settings.dataset("examples"):
        sheet = example_sheet(Path(examples))
        images["examples.png"] = sheet.png
        sections.append(
            PageSection(
                id="examples",
                title="Examples by style",
                menu="Examples",
                text=sheet.about,
                figures={"examples.png": "icons by style"},
                notes=sheet.credits,
            )
        )
    yield from images.items()
    runs, every = _check(results), [one for some in results.predictions.values() for one in some]
    facts = {
        **machine_facts(every),
        "training runs": f"{len(every)}: {_run_counts(results)}",
        "no sign of learning": runs.text,
        "training time": f"{sum(one.facts['seconds'] for one in every) / 60:.1f} minutes in total",
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
    yield from page.files(images)


def _check(results: IconResults) -> CheckedRuns:
    every = []
    for (name, split), some in results.predictions.items():
        if name not in TITLES or split.endswith("-seen"):  # last layers, and other images of a network
            continue
        title = TITLES[name]
        held_out = SPLITS.get(split) or f"{split.removeprefix('style-')}'s style"
        inside = f"all numbers of {title} on {held_out}"
        every += [(f"{title} without {held_out}", inside, ending_facts(one)) for one in some]
    return check_runs(every)


def _run_counts(results: IconResults) -> str:
    """Return how many training runs, which differ only in their seed, there are of each network and split."""
    counts: dict[str, set[int]] = {}
    for (name, _), some in results.predictions.items():
        counts.setdefault(TITLES.get(name, f"the last layer of {name}"), set()).add(len(some))
    titles: dict[str, list[str]] = {}
    for title, found in sorted(counts.items()):
        few, many = min(found), max(found)
        titles.setdefault(str(few) if few == many else f"{few} to {many}", []).append(title)
    if len(titles) == 1:
        return f"{next(iter(titles))} for each network and split"
    return "; ".join(f"{count} for {', '.join(some)}" for count, some in sorted(titles.items(), reverse=True))


def _shake_text(compared: Sequence[Effect]) -> str:
    texts = FILE
    names = [name for name, _, _ in texts["compared"][: texts["summarized"]]]
    words = {"confirmed": "an improvement", "refuted": "a loss", "undecided": "undecided"}
    lines = [
        f"{one.name}, on {one.split}: {one.points}, {words[one.verdict]}"
        for one in compared
        if one.name in names
    ]
    return "; ".join(lines) + "." if lines else ""


def _group_section(group: GroupTable) -> PageSection:
    most = 10
    return PageSection(
        id=group.name,
        title=group.title,
        menu=_MENU.get(group.name, group.name.capitalize()),
        text=FILE["groups_text"],
        head=(group.corner, "icons", *group.columns),
        rows=[
            (name, f"{icons:.0f}", *(f"{100 * one:.0f}" for one in fractions))
            for name, (icons, *fractions) in group.rows.items()
        ],
        most=most,
        remark=f"`{group.name}.csv` has all {len(group.rows)}." if len(group.rows) > most else "",
    )


def cells_csv(table: ReproducedTable) -> str:
    """Return a row for each cell: value, interval over icons, spread over runs, the paper's value."""
    names = {"styles": "network", "cifar-100-subtypes": "tested on", "imagenet-22k": "tested on"}
    across = names.get(table.name, "held out")
    rows = [
        [row, column, *map(percent, (one.value, one.low, one.high, one.spread, one.printed))]
        for row, cells in table.rows.items()
        for column in table.columns
        if (one := cells.get(column))
    ]
    return csv_text([table.corner, across, "accuracy", "low", "high", "sd over seeds", "paper"], rows)


def effects_csv(effects: Sequence[Effect]) -> str:
    """Return a row for each comparison, in points."""
    head = ["comparison", "held out", "first", "second", "difference", "low", "high"]
    rows = [
        [one.name, one.split, one.first, one.second, *map(percent, (one.value, one.low, one.high)), *one.runs]
        for one in effects
    ]
    return csv_text([*head, "runs of first", "runs of second"], rows)


def groups_csv(table: GroupTable) -> str:
    """Return a row for each class, subtype or style."""
    rows = [
        [name, f"{icons:.0f}", *map(percent, fractions)] for name, (icons, *fractions) in table.rows.items()
    ]
    return csv_text([table.corner, "icons", *table.columns], rows)


def confusions_csv(confusions: Sequence[Confusion]) -> str:
    """Return a row for each confusion."""
    rows = [
        (
            *(TITLES[one.network], SPLITS[one.split], one.label, one.predicted),
            *(f"{one.icons:.2f}", percent(one.fraction)),
        )
        for one in confusions
    ]
    return csv_text(["network", "held out", "class", "predicted", "icons", "percent of the class"], rows)
