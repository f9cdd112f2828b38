"""Every number as a row of one table, for whatever reads CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from beaufort.conditions import Condition
from beaufort.results import ModelScores, Scores, Seeds
from beaufort.sanitize import spreadsheet_cell
from beaufort.stats import Estimate

__all__ = ["COLUMNS", "to_csv"]

COLUMNS = (
    *("model", "condition", "corruption", "severity", "metric", "value", "low", "high", "n", "group"),
    "convention",
)
"""`condition` and `severity` are empty for numbers over several; `low` and `high` where a number describes
the sample and not the truth behind it: the calibration error with its chance part, what chance adds, and the
spread over trainings. `group` names the group of images that a number is about, if it is about one; numbers
about several trainings have the name of their recipe as `model` and `seeds_` before their metric."""

ALL = "*"
"""Stands in `corruption` for all of them together."""

CsvRow = tuple[str, str, str, str, str, float, float | None, float | None, int, str]


def to_csv(scores: Scores) -> str:
    """All numbers of all models; shares and ratios, not percent, with all their digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for model in scores.models:
        convention = _convention(scores, model.model)
        writer.writerows((spreadsheet_cell(row[0]), *row[1:], convention) for row in _rows(model))
    for seeds in scores.seeds:
        convention = _convention(scores, seeds.models[0])
        writer.writerows((spreadsheet_cell(row[0]), *row[1:], convention) for row in _seed_rows(seeds))
    return buffer.getvalue()


def _convention(scores: Scores, model: str) -> str:
    """What competes for a model's answers, by name."""
    space = scores.results.space(model)
    return "all" if space.identity else space.convention


def _rows(model: ModelScores) -> Iterator[CsvRow]:
    for name, estimate in model.metrics.items():
        yield _row(model.model, None, None, None, name, estimate)
    for metric, by_name in (
        ("error", model.corruptions),
        ("ce", model.ce),
        ("relative_ce", model.relative_ce),
    ):
        for name, estimate in by_name.items():
            yield _row(model.model, None, name, None, metric, estimate)
    for condition, estimate in model.conditions.items():
        yield _row(model.model, condition, condition.corruption, condition.severity, "accuracy", estimate)
        top5 = model.top5[condition]
        yield _row(model.model, condition, condition.corruption, condition.severity, "accuracy5", top5)
    for group, one in model.calibration.items():
        severity = int(group) if group.isdigit() else None
        clean = next((c for c in model.conditions if c.clean), None) if group == "clean" else None
        corruption = "" if group == "clean" else ALL
        for metric in ("ece", "confidence", "nll", "brier", "entropy"):
            if (estimate := getattr(one, metric)) is not None:
                yield _row(model.model, clean, corruption, severity, metric, estimate)
        for metric, value in (("raw_ece", one.raw_ece), ("ece_floor", one.floor)):
            bare = _row(model.model, clean, corruption, severity, metric, one.ece)
            yield (*bare[:5], value, None, None, one.ece.n, "")
    if model.groups is not None:
        for group, estimate in model.groups.accuracies.items():
            yield _row(model.model, None, ALL, None, "group_accuracy", estimate, group)
        worst = model.groups
        yield _row(model.model, None, ALL, None, "worst_group_accuracy", worst.worst, worst.worst_name)


def _seed_rows(seeds: Seeds) -> Iterator[CsvRow]:
    for name, one in seeds.metrics.items():
        row = _row(seeds.name, None, None, None, f"seeds_{name}", one.mean)
        yield row
        for about, value in (("sd", one.deviation), ("lowest", one.lowest), ("highest", one.highest)):
            yield (*row[:4], f"seeds_{name}_{about}", value, None, None, one.mean.n, "")


def _row(
    model: str,
    condition: Condition | None,
    corruption: str | None,
    severity: int | None,
    metric: str,
    estimate: Estimate,
    group: str = "",
) -> CsvRow:
    return (
        model,
        "" if condition is None else str(condition),
        corruption or "",
        "" if severity is None else str(severity),
        metric,
        estimate.value,
        estimate.low,
        estimate.high,
        estimate.n,
        group,
    )
