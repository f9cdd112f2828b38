"""Tables that only some reports have: sequences, C-bar, groups of images, trainings of one recipe."""

from __future__ import annotations

from beaufort._core.text import counted
from beaufort.corruptions import SUBSETS, corruptions
from beaufort.metrics import metrics
from beaufort.report._text import units, words
from beaufort.report.tables import WIDE, Table, TableCell, metric_cell
from beaufort.results import GroupScores, Linear, Scores, Seeds

_WORST = "worst group"


def optional_tables(scores: Scores) -> dict[str, Table]:
    """Those that there are, by what they are about."""
    tables = {
        "sequences": movement_table(scores),
        "C-bar": unseen_table(scores),
        "groups": group_table(scores),
        "trainings": seeds_table(scores),
    }
    return {title: table for title, table in tables.items() if table is not None}


def movement_table(scores: Scores) -> Table | None:
    """How often answers flip and how far the five best classes move over each sequence, a row each."""
    if not scores.suite.sequences:
        return None
    kinds = list(scores.models[0].movement)
    columns = [(model, kind) for model in scores.models for kind in kinds]
    rows: list[tuple[TableCell, ...]] = [
        (words(name), *(metric_cell(kind, model.movement[kind][name]) for model, kind in columns))
        for name in scores.suite.sequences
    ]
    far = "; and how far the five best classes move, from 0 to 15" if len(kinds) > 1 else ""
    caption = (
        "Flip probability in percent: the share of frames whose answer is another than that of the frame "
        f"before, for noise that of the first one{far}. Intervals are over {units(scores)}. Labels are not "
        "used: a model that always says the same has 0."
    )
    heads = [_moved(model.model, kind, several=len(scores.models) > 1) for model, kind in columns]
    return Table(caption, ("Sequence", *heads), tuple(rows), ("", *("lower" for _ in columns)))


def _moved(model: str, kind: str, *, several: bool) -> str:
    """The head of a column."""
    title = {"flip_probability": "flips", "top5_distance": "top-5 distance"}[kind]
    return f"{model}, {title}" if several else title.capitalize()


def unseen_table(scores: Scores) -> Table | None:
    """The error on corruptions that nobody tuned for beside that on the common ones, if a suite has both."""
    names = scores.suite.corruptions
    unseen = [name for name in names if corruptions[name].group == "unseen"]
    common = [name for name in names if name in SUBSETS["common"]]
    if not unseen or not common:
        return None
    rows: list[tuple[TableCell, ...]] = []
    for model in scores.models:
        forms = model.error_forms
        first, second = (Linear.mean([forms[name] for name in part]) for part in (common, unseen))
        rows.append((model.model, *(one.estimate(scores.level) for one in (first, second, second - first))))
    caption = (
        f"Error in percent, the mean over {counted(len(common), 'corruption')} and, beside it, over "
        f"{counted(len(unseen), 'corruption')} of C-bar. An augmentation that looks like a corruption lowers "
        "the error under it; C-bar was chosen to be unlike ImageNet-C."
    )
    header = ("Model", f"Common ({len(common)})", f"C-bar ({len(unseen)})", "C-bar minus common")
    return Table(caption, header, tuple(rows), ("", "lower", "lower", ""))


def group_table(scores: Scores) -> Table | None:
    """The accuracy in each group and in the worst one: models as columns, or as rows if many."""
    found = {model.model: model.groups for model in scores.models if model.groups is not None}
    if not found:
        return None
    first = next(iter(found.values()))
    heads = [_WORST, *(f"{name} (n = {one.n:,})" for name, one in first.accuracies.items())]
    columns = {name: _column(groups) for name, groups in found.items()}
    unit = "n counts images" if scores.clusters == scores.images else "n counts clusters of images"
    caption = (
        f"Accuracy in percent in {counted(len(first.accuracies), 'group')} of images, the mean over all "
        f"conditions; all intervals of a model hold together with {100 * scores.level:g} %; {unit}."
    )
    rows: list[tuple[TableCell, ...]]
    if len(found) <= WIDE:
        header = ("Group", *found)
        rows = [(head, *(column[i] for column in columns.values())) for i, head in enumerate(heads)]
        rows.insert(1, ("which is", *(groups.worst_name for groups in found.values())))
    else:
        header = ("Model", "Which is worst", *heads)
        rows = [(name, found[name].worst_name, *column) for name, column in columns.items()]
    return Table(caption, header, tuple(rows), ("",) * len(header))


def _column(groups: GroupScores) -> list[TableCell]:
    return [groups.worst, *groups.accuracies.values()]


def seeds_table(scores: Scores) -> Table | None:
    """For each recipe and metric the mean over trainings, and how much they vary."""
    if not scores.seeds:
        return None
    rows = [row for seeds in scores.seeds for row in _seed_rows(scores, seeds)]
    caption = (
        "Trainings of one recipe. The interval is over images, for just these trainings; the standard "
        "deviation is over trainings."
    )
    header = ("Recipe", "Metric", "Mean", "SD over trainings", "Range", "Trainings")
    return Table(caption, header, tuple(rows), ("",) * len(header))


def _seed_rows(scores: Scores, seeds: Seeds) -> list[tuple[TableCell, ...]]:
    return [
        (
            seeds.name,
            f"{scores.metric_title(name)}{_SIGNS.get(metrics[name].better or '', '')}",
            metric_cell(name, spread.mean),
            f"{_times(name) * spread.deviation:.2f}",
            f"{_times(name) * spread.lowest:.1f} to {_times(name) * spread.highest:.1f}",
            ", ".join(seeds.models),
        )
        for name, spread in seeds.metrics.items()
    ]


def _times(name: str) -> int:
    return 100 if metrics[name].in_percent else 1


_SIGNS = {"lower": " ↓", "higher": " ↑"}
