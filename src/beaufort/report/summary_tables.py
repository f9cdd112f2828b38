"""Tables of scores for the text formats: the ranking, errors, sequences, C-bar, groups and training runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from beaufort._core.text import counted
from beaufort.corruptions import SUBSETS, corruptions
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.report.wording import ARROWS, units, words
from beaufort.results import Linear, ReplyScores, Scores, score_replies

_WIDE = 6
"""Largest number of models that are columns; more models are rows."""

TableCell = str | Estimate | None
"""Text, a number, or an empty cell."""

_Rows = list[tuple[TableCell, ...]]


@dataclass(frozen=True)
class Table:
    """A table of texts and estimates (fractions or ratios), which each format writes in its way."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    marks: tuple[str, ...] = ()
    """Direction of better values of each column: `lower`, `higher` or empty."""


def headline_table(scores: Scores) -> Table:
    """Return a table with a row per model: place, headline metrics, clean accuracy."""
    several = len(scores.models) > 1
    named = list(scores.models[0].metrics)
    header = ["Model", *(scores.metric_title(name) for name in named), "Clean accuracy"]
    marks = ["", *((metrics[name].better or "") for name in named), "higher"]
    rows: _Rows = []
    for model, one in zip(scores.models, scores.ranking, strict=True):
        row = [model.model, *(_metric_cell(name, model.metrics[name]) for name in named), model.clean]
        head = [one.place, " ".join(one.groups)] if several else []
        rows.append((*head, *row))
    if several:
        header, marks = ["Place", "Tie group", *header], ["", "", *marks]
    caption = (
        f"{scores.suite.title} ({scores.suite}), {counted(scores.images, 'image')} of "
        f"{scores.results.dataset}. In percent, with {100 * scores.level:g} % intervals over {units(scores)}."
    )
    return Table(caption, tuple(header), tuple(rows), tuple(marks))


def _metric_cell(name: str, estimate: Estimate) -> TableCell:
    """Return a cell in percent, or as text for metrics that are not in percent."""
    return estimate if metrics[name].in_percent else metrics[name].shown(estimate)


def corruption_table(scores: Scores) -> Table:
    """Return the error under each corruption, the mean over severities."""
    over = "under each corruption, the mean over severities"
    if scores.suite.sequences:
        over = "over each sequence, the mean over frames"
    with_clean = any(model.clean is not None for model in scores.models)
    heads = [*(["clean"] if with_clean else []), *map(words, scores.suite.families)]
    columns: dict[str, list[TableCell]] = {}
    for model in scores.models:
        clean = None if model.clean is None else error_of(model.clean)
        errors = [model.corruptions[name] for name in scores.suite.families]
        columns[model.model] = [*([clean] if with_clean else []), *errors]
    return _by_model(f"Error in percent {over}; n = {scores.images:,}.", "Corruption", heads, columns)


def _by_model(caption: str, corner: str, heads: list[str], columns: dict[str, list[TableCell]]) -> Table:
    """Return a table with models as columns, or as rows if there are many."""
    if len(columns) <= _WIDE:
        header = (corner, *columns)
        rows: _Rows = [(head, *cells) for head, *cells in zip(heads, *columns.values(), strict=True)]
    else:
        header, rows = ("Model", *heads), [(name, *column) for name, column in columns.items()]
    return Table(caption, header, tuple(rows), ("",) * len(header))


def baseline_words(scores: Scores) -> str:
    """Return the baseline that the numbers are divided by, in words."""
    if scores.baseline is None:
        return "No baseline."
    if scores.baseline.stored or scores.baseline.movement is not None:
        return f"Baseline: {scores.baseline.short_name}, {scores.baseline.source}."
    return f"Baseline: {scores.baseline.short_name} (`{scores.baseline.name}`), as published."


def error_of(accuracy: Estimate) -> Estimate:
    """Return 1 - x: the error of an accuracy, or the accuracy of an error."""
    return Estimate(1 - accuracy.value, 1 - accuracy.high, 1 - accuracy.low, accuracy.n, level=accuracy.level)


def optional_tables(scores: Scores) -> dict[str, Table]:
    """Return the tables that only some reports have, by their subject."""
    tables = {
        "sequences": _movement_table(scores),
        "C-bar": _unseen_table(scores),
        "groups": _group_table(scores),
        "training runs": _seeds_table(scores),
        "replies": reply_table(score_replies(scores.results, [model.model for model in scores.models])),
    }
    return {title: table for title, table in tables.items() if table is not None}


def reply_table(replies: Sequence[ReplyScores]) -> Table | None:
    """Return the outcomes of the replies of chat models; None if there are none."""
    if not replies:
        return None
    names = list(replies[0].outcomes)
    rows: _Rows = [
        (one.model, one.title, *(one.outcomes[name] for name in names), one.position_bias) for one in replies
    ]
    caption = (
        "Replies of chat models without a prediction, in percent; they count as errors. Refused: the model "
        "or its service declined; unreadable: no class was named; several: more than one was; inconsistent: "
        "the replies to both orders of the names differ. Position bias: choices from the first half of the "
        "names minus those from the second half, whose order is random. Means over corruptions, with "
        f"{100 * replies[0].level:g} % intervals over images."
    )
    header = ("Model", "Images", *(name.capitalize() for name in names), "Position bias")
    return Table(caption, header, tuple(rows), ("", "", *("lower" for _ in names), ""))


def _movement_table(scores: Scores) -> Table | None:
    """Return the flip probability and the top-5 distance of each sequence."""
    if not scores.suite.sequences:
        return None
    several, kinds = len(scores.models) > 1, list(scores.models[0].movement)
    columns = [(model, kind) for model in scores.models for kind in kinds]
    rows: _Rows = [
        (words(name), *(_metric_cell(kind, model.movement[kind][name]) for model, kind in columns))
        for name in scores.suite.sequences
    ]
    far = "; and the top-5 distance, from 0 to 15" if len(kinds) > 1 else ""
    caption = (
        "Flip probability in percent: the fraction of frames whose prediction differs from that of the "
        f"previous frame (for noise, of the first one){far}. Intervals are over {units(scores)}. Labels are "
        "not used: a model that always predicts the same class has 0."
    )
    titles = {"flip_probability": "flips", "top5_distance": "top-5 distance"}
    heads = [
        f"{one.model}, {titles[kind]}" if several else titles[kind].capitalize() for one, kind in columns
    ]
    return Table(caption, ("Sequence", *heads), tuple(rows), ("", *("lower" for _ in columns)))


def _unseen_table(scores: Scores) -> Table | None:
    """Return the errors under common corruptions and under those of C-bar, if a suite has both."""
    names = scores.suite.corruptions
    unseen = [name for name in names if corruptions[name].group == "unseen"]
    common = [name for name in names if name in SUBSETS["common"]]
    if not unseen or not common:
        return None
    rows: _Rows = []
    for model in scores.models:
        first, second = (Linear.mean([model.error_forms[name] for name in part]) for part in (common, unseen))
        rows.append((model.model, *(one.estimate(scores.level) for one in (first, second, second - first))))
    caption = (
        f"Error in percent, the mean over {counted(len(common), 'common corruption')} and over "
        f"{counted(len(unseen), 'corruption')} of C-bar, which are dissimilar to those of ImageNet-C. Data "
        "augmentation that is similar to a corruption lowers the error under it."
    )
    header = ("Model", f"Common ({len(common)})", f"C-bar ({len(unseen)})", "C-bar minus common")
    return Table(caption, header, tuple(rows), ("", "lower", "lower", ""))


def _group_table(scores: Scores) -> Table | None:
    """Return the accuracy in each group and in the worst one."""
    found = {model.model: model.groups for model in scores.models if model.groups is not None}
    if not found:
        return None
    first = next(iter(found.values()))
    sizes = [f"{name} (n = {one.n:,})" for name, one in first.accuracies.items()]
    unit = "n counts images" if scores.clusters == scores.images else "n counts clusters of images"
    caption = (
        f"Accuracy in percent in {counted(len(first.accuracies), 'group')} of images, the mean over all "
        f"conditions, with {100 * scores.level:g} % intervals adjusted for all groups; {unit}."
    )
    columns: dict[str, list[TableCell]] = {}
    if len(found) <= _WIDE:
        heads = ["worst group", "its name", *sizes]
        for name, one in found.items():
            columns[name] = [one.worst, one.worst_name, *one.accuracies.values()]
    else:
        heads = ["Worst group", "its accuracy", *sizes]
        for name, one in found.items():
            columns[name] = [one.worst_name, one.worst, *one.accuracies.values()]
    return _by_model(caption, "Group", heads, columns)


def _seeds_table(scores: Scores) -> Table | None:
    """Return the mean and the spread of each metric over the training runs of each recipe."""
    if not scores.seeds:
        return None
    rows: _Rows = []
    for seeds in scores.seeds:
        for name, spread in seeds.metrics.items():
            times = 100 if metrics[name].in_percent else 1
            rows.append(
                (
                    seeds.name,
                    f"{scores.metric_title(name)}{ARROWS[metrics[name].better or '']}",
                    _metric_cell(name, spread.mean),
                    f"{times * spread.deviation:.2f}",
                    f"{times * spread.lowest:.1f} to {times * spread.highest:.1f}",
                    ", ".join(seeds.models),
                )
            )
    caption = (
        "Training runs of one recipe. The interval of the mean is over images, for these runs; the standard "
        "deviation (SD) is over runs."
    )
    header = ("Recipe", "Metric", "Mean", "SD over runs", "Range", "Training runs")
    return Table(caption, header, tuple(rows), ("",) * len(header))
