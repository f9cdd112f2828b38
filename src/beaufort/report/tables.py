"""The two tables of every text format, and the numbers that a ranking shows."""

from __future__ import annotations

from dataclasses import dataclass

from beaufort._core.text import counted
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.report._text import units, words
from beaufort.results import Scores

WIDE = 6
"""Models up to which the table of corruptions has one column each; beyond, models are its rows."""


TableCell = str | Estimate | None
"""A text, a number, or nothing."""


@dataclass(frozen=True)
class Table:
    """Cells for a format to write: texts, and estimates that are shares or ratios."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    marks: tuple[str, ...] = ()
    """For each column which way is good: `lower`, `higher`, or nothing."""


_OVER = "under each corruption, the mean over severities"


def headline_table(scores: Scores) -> Table:
    """A row a model: place, headline numbers, clean accuracy."""
    several = len(scores.models) > 1
    named = list(scores.models[0].metrics)
    places = {one.name: one for one in scores.ranking}
    header = ["Model", *(scores.metric_title(name) for name in named), "Clean accuracy"]
    marks = ["", *((metrics[name].better or "") for name in named), "higher"]
    rows: list[tuple[TableCell, ...]] = []
    for model in scores.models:
        row = [model.model, *(metric_cell(name, model.metrics[name]) for name in named), model.clean]
        one = places[model.model]
        head = [one.place, " ".join(one.groups)] if several else []
        rows.append((*head, *row))
    if several:
        header, marks = ["Place", "Tie group", *header], ["", "", *marks]
    return Table(_caption(scores), tuple(header), tuple(rows), tuple(marks))


def metric_cell(name: str, estimate: Estimate) -> TableCell:
    """Cells are in percent; a number that is no share is written out."""
    return estimate if metrics[name].in_percent else metrics[name].shown(estimate)


def corruption_table(scores: Scores) -> Table:
    """The error under each corruption, the mean over severities: models as columns, or as rows if many."""
    over = "over each sequence, the mean over frames" if scores.suite.sequences else _OVER
    caption = f"Error in percent {over}; n = {scores.images:,}."
    names = list(scores.suite.families)
    clean = {model.model: None if model.clean is None else error_of(model.clean) for model in scores.models}
    with_clean = any(clean.values())
    rows: list[tuple[TableCell, ...]]
    if len(scores.models) <= WIDE:
        header = ("Corruption", *(model.model for model in scores.models))
        first = [("clean", *clean.values())] if with_clean else []
        rows = list(first)
        for name in names:
            rows.append((words(name), *(model.corruptions[name] for model in scores.models)))
    else:
        header = ("Model", *(["clean"] if with_clean else []), *map(words, names))
        rows = [
            (
                model.model,
                *([clean[model.model]] if with_clean else []),
                *(model.corruptions[name] for name in names),
            )
            for model in scores.models
        ]
    return Table(caption, header, tuple(rows), ("",) * len(header))


def baseline_words(scores: Scores) -> str:
    """Which baseline the numbers are divided by."""
    if scores.baseline is None:
        return "No baseline."
    if scores.baseline.stored or scores.baseline.movement is not None:
        return f"Baseline: {scores.baseline.short_name}, {scores.baseline.source}."
    return f"Baseline: {scores.baseline.short_name} (`{scores.baseline.name}`), as published."


def error_of(accuracy: Estimate) -> Estimate:
    """The share of wrong answers where an accuracy is the share of right ones, and the other way around."""
    return Estimate(1 - accuracy.value, 1 - accuracy.high, 1 - accuracy.low, accuracy.n, level=accuracy.level)


def _caption(scores: Scores) -> str:
    """What the numbers are and rest on."""
    return (
        f"{scores.suite.title} ({scores.suite}), {counted(scores.images, 'image')} of "
        f"{scores.results.dataset}. In percent, with {100 * scores.level:g} % intervals over {units(scores)}."
    )
