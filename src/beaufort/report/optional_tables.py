"""Tables that only some reports have: accuracy in groups of images, and the spread over trainings."""

from __future__ import annotations

from beaufort.metrics import metrics
from beaufort.report._text import counted
from beaufort.report.tables import WIDE, Table, TableCell
from beaufort.results import GroupScores, Scores, Seeds

__all__ = ["group_table", "seeds_table"]

_WORST = "worst group"


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
            spread.mean,
            f"{100 * spread.deviation:.2f}",
            f"{100 * spread.lowest:.1f} to {100 * spread.highest:.1f}",
            ", ".join(seeds.models),
        )
        for name, spread in seeds.metrics.items()
    ]


_SIGNS = {"lower": " ↓", "higher": " ↑"}
