"""Every number as a row of one table, for whatever reads CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from beaufort.conditions import Condition
from beaufort.results import ModelScores, Scores
from beaufort.sanitize import spreadsheet_cell
from beaufort.stats import Estimate, clopper_pearson

__all__ = ["COLUMNS", "to_csv"]

COLUMNS = ("model", "condition", "corruption", "severity", "metric", "value", "low", "high", "n")
"""`condition` and `severity` are empty for numbers over several, `low` and `high` where none is known."""

ALL = "*"
"""Stands in `corruption` for all of them together."""

Row = tuple[str, str, str, str, str, float, float | None, float | None, int]


def to_csv(scores: Scores) -> str:
    """All numbers of all models; shares and ratios, not percent, with all their digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for model in scores.models:
        writer.writerows((spreadsheet_cell(row[0]), *row[1:]) for row in _rows(model))
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
        n = estimate.n
        top5 = clopper_pearson(round(model.top5[condition] * n), n, estimate.level)
        yield _row(model, condition, condition.corruption, condition.severity, "accuracy5", top5)
    for group, one in model.calibration.items():
        severity = int(group) if group.isdigit() else None
        clean = next((c for c in model.conditions if c.clean), None) if group == "clean" else None
        corruption = "" if group == "clean" else ALL
        head = model.model, str(clean or ""), corruption, "" if severity is None else str(severity)
        yield _row(model, clean, corruption, severity, "ece", one.ece)
        for metric in ("confidence", "nll", "brier", "entropy"):
            yield (*head, metric, float(getattr(one, metric)), None, None, one.ece.n)


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
