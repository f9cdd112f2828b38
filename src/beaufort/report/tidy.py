"""Every number as a row of one table, for whatever reads CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from beaufort.conditions import Condition
from beaufort.results import ModelScores, Scores
from beaufort.stats import Estimate

__all__ = ["COLUMNS", "to_csv"]

COLUMNS = (
    *("model", "condition", "corruption", "severity", "metric", "value", "low", "high", "n"),
    "convention",
)
"""`condition` and `severity` are empty for numbers over several; `low` and `high` where a number describes
the sample and not the truth behind it: the calibration error with its chance part, and what chance adds."""

ALL = "*"
"""Stands in `corruption` for all of them together."""

Row = tuple[str, str, str, str, str, float, float | None, float | None, int]


def to_csv(scores: Scores) -> str:
    """All numbers of all models; shares and ratios, not percent, with all their digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for model in scores.models:
        space = scores.results.space(model.model)
        convention = "all" if space.identity else space.convention
        writer.writerows((*row, convention) for row in _rows(model))
    return buffer.getvalue()


def _rows(model: ModelScores) -> Iterator[Row]:
    for name, estimate in model.metrics.items():
        yield _row(model, None, None, None, name, estimate)
    for metric, by_name in (
        ("error", model.corruptions),
        ("ce", model.ce),
        ("relative_ce", model.relative_ce),
    ):
        for name, estimate in by_name.items():
            yield _row(model, None, name, None, metric, estimate)
    for condition, estimate in model.conditions.items():
        yield _row(model, condition, condition.corruption, condition.severity, "accuracy", estimate)
        top5 = model.top5[condition]
        yield _row(model, condition, condition.corruption, condition.severity, "accuracy5", top5)
    for group, one in model.calibration.items():
        severity = int(group) if group.isdigit() else None
        clean = next((c for c in model.conditions if c.clean), None) if group == "clean" else None
        corruption = "" if group == "clean" else ALL
        for metric in ("ece", "confidence", "nll", "brier", "entropy"):
            if (estimate := getattr(one, metric)) is not None:
                yield _row(model, clean, corruption, severity, metric, estimate)
        for metric, value in (("raw_ece", one.raw_ece), ("ece_floor", one.floor)):
            bare = _row(model, clean, corruption, severity, metric, one.ece)
            yield (*bare[:5], value, None, None, one.ece.n)


def _row(
    model: ModelScores,
    condition: Condition | None,
    corruption: str | None,
    severity: int | None,
    metric: str,
    estimate: Estimate,
) -> Row:
    return (
        model.model,
        "" if condition is None else str(condition),
        corruption or "",
        "" if severity is None else str(severity),
        metric,
        estimate.value,
        estimate.low,
        estimate.high,
        estimate.n,
    )
