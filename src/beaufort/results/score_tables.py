"""Scores as rows of a table, a data frame, HTML and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from beaufort._core.optional import require
from beaufort._core.pages import render_table
from beaufort._core.text import printable
from beaufort.corruptions import Severity, parse_severity
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import kind_of_frames

if TYPE_CHECKING:
    import pandas as pd

    from beaufort.results.differences import Seeds
    from beaufort.results.scores import ModelScores, Scores


COLUMNS = (
    *("model", "condition", "corruption", "severity", "metric", "value", "low", "high", "n", "group"),
    *("convention", "dataset"),
)
"""`condition` and `severity` are empty for numbers over several; `low` and `high` where a number describes
the sample and not the truth behind it: the calibration error with its chance part, what chance adds, and the
spread over trainings. `group` names the group of images that a number is about, if it is about one; numbers
about several trainings have the name of their recipe as `model` and `seeds_` before their metric. `dataset`
tells the numbers of a suite of several data sets apart."""

ALL = "*"
"""Stands in `corruption` for all of them together."""

TidyRow = tuple[
    str, str | None, str | None, Severity | None, str, float, float | None, float | None, int, str | None
]


def tidy_rows(scores: Scores) -> Iterator[tuple[Any, ...]]:
    """All numbers of all models, in the order of `COLUMNS`; shares and ratios, not percent."""
    dataset = scores.results.dataset
    for model in scores.models:
        convention = _convention(scores, model.model)
        yield from ((*row, convention, dataset) for row in _rows(model))
    for seeds in scores.seeds:
        convention = _convention(scores, seeds.models[0])
        yield from ((*row, convention, dataset) for row in _seed_rows(seeds))


def data_frame(columns: Mapping[str, Sequence[Any]], integers: Sequence[str] = ()) -> pd.DataFrame:
    """A pandas data frame; `integers` are columns of numbers, whole as a rule, some of them absent."""
    pandas = require("pandas", "pandas", what="data frames")
    kinds = {name: "Float64" if any(map(_fraction, columns[name])) else "Int64" for name in integers}
    frame: pd.DataFrame = pandas.DataFrame(dict(columns)).astype(kinds)
    return frame


def _fraction(value: object) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _convention(scores: Scores, model: str) -> str:
    """What competes for a model's answers, by name."""
    space = scores.results.space(model)
    return "all" if space.identity else space.convention


def _rows(model: ModelScores) -> Iterator[TidyRow]:
    for name, estimate in model.metrics.items():
        yield _row(model.model, None, None, None, name, estimate)
    for metric, by_name in (
        ("error", model.corruptions),
        ("ce", model.ce),
        ("relative_ce", model.relative_ce),
    ):
        for name, estimate in by_name.items():
            yield _row(model.model, None, name, None, metric, estimate)
    for kind, by_sequence in model.movement.items():
        for name, estimate in by_sequence.items():
            yield _row(model.model, None, kind_of_frames(name), None, kind, estimate)
    for condition, estimate in model.conditions.items():
        yield _row(model.model, condition, condition.corruption, condition.severity, "accuracy", estimate)
        top5 = model.top5[condition]
        yield _row(model.model, condition, condition.corruption, condition.severity, "accuracy5", top5)
    for group, one in model.calibration.items():
        severity = parse_severity(group) if group[0].isdigit() else None
        clean = next((c for c in model.conditions if c.clean), None) if group == "clean" else None
        corruption = None if group == "clean" else ALL
        for metric in ("ece", "confidence", "nll", "brier", "entropy"):
            if (estimate := getattr(one, metric)) is not None:
                yield _row(model.model, clean, corruption, severity, metric, estimate)
        for metric, value in (("raw_ece", one.raw_ece), ("ece_floor", one.floor)):
            bare = _row(model.model, clean, corruption, severity, metric, one.ece)
            yield (*bare[:5], value, None, None, one.ece.n, None)
    if model.groups is not None:
        for group, estimate in model.groups.accuracies.items():
            yield _row(model.model, None, ALL, None, "group_accuracy", estimate, group)
        worst = model.groups
        yield _row(model.model, None, ALL, None, "worst_group_accuracy", worst.worst, worst.worst_name)


def _seed_rows(seeds: Seeds) -> Iterator[TidyRow]:
    for name, one in seeds.metrics.items():
        row = _row(seeds.name, None, None, None, f"seeds_{name}", one.mean)
        yield row
        for about, value in (("sd", one.deviation), ("lowest", one.lowest), ("highest", one.highest)):
            yield (*row[:4], f"seeds_{name}_{about}", value, None, None, one.mean.n, None)


def _row(
    model: str,
    condition: Condition | None,
    corruption: str | None,
    severity: Severity | None,
    metric: str,
    estimate: Estimate,
    group: str | None = None,
) -> TidyRow:
    return (
        model,
        None if condition is None else str(condition),
        corruption or None,
        severity,
        metric,
        estimate.value,
        estimate.low,
        estimate.high,
        estimate.n,
        group,
    )


_ARROWS = {"lower": " ↓", "higher": " ↑"}


def _headline_cells(scores: Scores) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: place, model, headline numbers, and clean accuracy where it is a number of its own."""
    named = list(scores.models[0].metrics)
    places = {one.name: one.place for one in scores.ranking}
    heads = [f"{scores.metric_title(name)}{_ARROWS.get(metrics[name].better or '', '')}" for name in named]
    rows = [
        [places[one.model], one.model, *(metrics[name].shown(one.metrics[name]) for name in named)]
        for one in scores.models
    ]
    if scores.with_clean:
        heads.append("Clean accuracy ↑")
        for row, one in zip(rows, scores.models, strict=True):
            row.append(f"{one.clean:.1%}")
    return ["Place", "Model", *heads], rows


def _headline_caption(scores: Scores) -> str:
    return (
        f"{scores.suite.title}, {scores.images:,} images of {scores.results.dataset}; in brackets "
        f"{100 * scores.level:g} % intervals"
    )


def scores_html(scores: Scores) -> str:
    """The headline numbers as a notebook shows them."""
    return render_table(_headline_caption(scores), *_headline_cells(scores), scores.notes)


def scores_text(scores: Scores) -> str:
    """The headline numbers as a text table."""
    head, rows = _headline_cells(scores)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
    return printable("\n".join([_headline_caption(scores), *lines, *scores.notes]), keep="\n")
