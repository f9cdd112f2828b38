"""Every number as a row of one table, for whatever reads tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from beaufort._core.errors import MissingExtraError
from beaufort.corruptions import Severity, parse_severity
from beaufort.metrics.stats import Estimate
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import kind_of_frames

if TYPE_CHECKING:
    import pandas as pd

    from beaufort.results.scores import ModelScores, Scores
    from beaufort.results.seeds import Seeds

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
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("data frames need pandas: pip install 'beaufort[pandas]'") from error
    kinds = {name: "Float64" if any(map(_fraction, columns[name])) else "Int64" for name in integers}
    return pd.DataFrame(dict(columns)).astype(kinds)


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
