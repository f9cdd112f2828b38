"""Scores as rows of a table, a data frame, HTML and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from beaufort._core.optional import require
from beaufort._core.pages import render_table
from beaufort._core.text import printable
from beaufort.corruptions import Severity, parse_severity
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.suites.frames import frames_shift_name

if TYPE_CHECKING:
    import pandas as pd

    from beaufort.results.differences import Seeds
    from beaufort.results.scores import ModelScores, Scores

ALL = "*"
"""Value of `corruption` for all corruptions together."""


class TidyRow(NamedTuple):
    """One number; a fraction or ratio, not percent."""

    model: str
    """A model, or the recipe of training runs, whose metrics have `seeds_` before their name."""
    condition: str | None
    corruption: str | None
    severity: Severity | None
    """These three are empty for numbers over several."""
    metric: str
    value: float
    low: float | None
    high: float | None
    """The interval; empty where a number describes the sample and not the population: the calibration
    error with its chance part, what chance adds, and the spread over training runs."""
    n: int
    group: str | None
    """The group of images that a number is about, if it is about one."""
    convention: str = ""
    dataset: str = ""


COLUMNS = TidyRow._fields


def tidy_rows(scores: Scores) -> Iterator[TidyRow]:
    """Return all numbers of all models."""

    def placed(rows: Iterator[TidyRow], model: str) -> Iterator[TidyRow]:
        space = scores.results.space(model)
        convention = "all" if space.identity else space.convention
        return (row._replace(convention=convention, dataset=scores.results.dataset) for row in rows)

    for model in scores.models:
        yield from placed(_rows(model), model.model)
    for seeds in scores.seeds:
        yield from placed(_seed_rows(seeds), seeds.models[0])


def _rows(model: ModelScores) -> Iterator[TidyRow]:
    name = model.model
    for metric, estimate in model.metrics.items():
        yield _row(name, metric, estimate)
    by_corruption = {"error": model.corruptions, "ce": model.ce, "relative_ce": model.relative_ce}
    for metric, estimates in by_corruption.items():
        for corruption, estimate in estimates.items():
            yield _row(name, metric, estimate, corruption=corruption)
    for kind, by_sequence in model.movement.items():
        for sequence, estimate in by_sequence.items():
            yield _row(name, kind, estimate, corruption=frames_shift_name(sequence))
    for condition in model.conditions:
        about = {"condition": str(condition), "severity": condition.severity}
        about["corruption"] = condition.corruption or None
        yield _row(name, "accuracy", model.conditions[condition], **about)
        yield _row(name, "accuracy5", model.top5[condition], **about)
    for severity, one in model.calibration.items():
        if severity == "clean":
            clean = next((str(condition) for condition in model.conditions if condition.clean), None)
            about = {"condition": clean}
        else:
            known = severity[0].isdigit()  # else "corrupted"
            about = {"corruption": ALL, "severity": parse_severity(severity) if known else None}
        for metric in ("ece", "confidence", "nll", "brier", "entropy"):
            if (estimate := getattr(one, metric)) is not None:
                yield _row(name, metric, estimate, **about)
        for metric, value in (("raw_ece", one.raw_ece), ("ece_floor", one.floor)):
            yield _row(name, metric, one.ece, **about)._replace(value=value, low=None, high=None)
    if model.groups is not None:
        for group, estimate in model.groups.accuracies.items():
            yield _row(name, "group_accuracy", estimate, corruption=ALL, group=group)
        worst = model.groups
        yield _row(name, "worst_group_accuracy", worst.worst, corruption=ALL, group=worst.worst_name)


def _seed_rows(seeds: Seeds) -> Iterator[TidyRow]:
    for name, one in seeds.metrics.items():
        row = _row(seeds.name, f"seeds_{name}", one.mean)
        yield row
        for about, value in (("sd", one.deviation), ("lowest", one.lowest), ("highest", one.highest)):
            yield row._replace(metric=f"seeds_{name}_{about}", value=value, low=None, high=None)


def _row(model: str, metric: str, estimate: Estimate, **about: Any) -> TidyRow:
    known = {"condition": None, "corruption": None, "severity": None, "group": None, **about}
    return TidyRow(model, metric=metric, **{name: getattr(estimate, name) for name in _ESTIMATE}, **known)


_ESTIMATE = ("value", "low", "high", "n")


def data_frame(columns: Mapping[str, Sequence[Any]], integers: Sequence[str] = ()) -> pd.DataFrame:
    """A pandas data frame; `integers` are columns of numbers, usually integers, some of them missing."""
    pandas = require("pandas", "pandas", what="data frames")
    kinds = {name: "Float64" if any(map(_fraction, columns[name])) else "Int64" for name in integers}
    frame: pd.DataFrame = pandas.DataFrame(dict(columns)).astype(kinds)
    return frame


def _fraction(value: object) -> bool:
    return isinstance(value, float) and not value.is_integer()


_ARROWS = {"lower": " ↓", "higher": " ↑"}


def _headline_cells(scores: Scores) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: place, model, headline metrics, and clean accuracy if it is separate."""
    named = list(scores.models[0].metrics)
    heads = [f"{scores.metric_title(name)}{_ARROWS.get(metrics[name].better or '', '')}" for name in named]
    rows = [
        [ranked.place, one.model, *(metrics[name].shown(one.metrics[name]) for name in named)]
        for one, ranked in zip(scores.models, scores.ranking, strict=True)
    ]
    if scores.with_clean:
        heads.append("Clean accuracy ↑")
        for row, one in zip(rows, scores.models, strict=True):
            row.append(f"{one.clean:.1%}")
    return ["Place", "Model", *heads], rows


def _headline_caption(scores: Scores) -> str:
    return (
        f"{scores.suite.title}, {scores.images:,} images of {scores.results.dataset}; "
        f"{100 * scores.level:g} % intervals in brackets"
    )


def scores_html(scores: Scores) -> str:
    """Return the headline metrics as an HTML table."""
    return render_table(_headline_caption(scores), *_headline_cells(scores), scores.notes)


def scores_text(scores: Scores) -> str:
    """Return the headline metrics as a text table."""
    head, rows = _headline_cells(scores)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
    return printable("\n".join([_headline_caption(scores), *lines, *scores.notes]), keep="\n")
