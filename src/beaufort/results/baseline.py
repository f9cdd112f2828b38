"""Baselines of mCE: published networks, or models of the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beaufort._core.errors import UnknownNameError
from beaufort._core.registry import listed, unknown_message
from beaufort.metrics import BASELINE_NAMES, get_baseline
from beaufort.results._match import ResultsError
from beaufort.results.csv_columns import MOVEMENTS, read_movement
from beaufort.results.results import Results
from beaufort.suites import Suite

NO_BASELINE = "none"
"""Name for no baseline."""


@dataclass(frozen=True)
class ResultBaseline:
    """The baseline of a result."""

    name: str
    title: str
    source: str
    """Origin of its errors."""
    clean: float | None = None
    """Its error on clean images; None if unknown, or if it is a model of the store."""
    errors: Mapping[str, float] | None = None
    """Its error under each corruption, the mean over severities; None if it is a model of the store."""
    movement: Mapping[str, Mapping[str, float]] | None = None
    """Its flip probability and top-5 distance over each sequence, by kind; None if unknown."""

    @property
    def stored(self) -> bool:
        """Whether it is a model of the store, whose errors are uncertain as well."""
        return self.errors is None and self.movement is None

    @property
    def short_name(self) -> str:
        """Published title up to the first comma or `on`; name of a stored model."""
        return self.name if self.stored else self.title.partition(",")[0].partition(" on ")[0]


def find_baseline(results: Results, name: str | None = None) -> tuple[ResultBaseline | None, tuple[str, ...]]:
    """Return the baseline of a name, or the suite's own, with notes; None for no baseline.

    A published baseline requires its classes, and a model must be among the results or in their store. An
    unsuitable baseline is an error if it was named; if it is only the suite's own, a note says why it is not
    used.

    Args:
        results: results to divide.
        name: one of `BASELINE_NAMES`, a model of the store, or `none`; for a suite of sequences also a CSV
            file of a model's values. The suite's if None.
    """
    suite, models = results.suite, results.baseline_cells
    wanted = suite.baseline if name is None else name
    if wanted is None or wanted == NO_BASELINE:
        return None, ()
    published = () if suite.sequences or wanted in models else BASELINE_NAMES
    unknown = wanted not in models and wanted not in published
    if unknown and (namesakes := _namesakes(results, wanted)):
        ambiguous = f"{wanted} is ambiguous: {' or '.join(namesakes)}; pass one as baseline (--baseline)"
        if name is not None:
            raise UnknownNameError(f"baseline {ambiguous}")
        return None, (f"The suite's baseline is not used: {ambiguous}.",)
    if name is None and unknown and not wanted.endswith(".csv"):
        return None, (f"The suite's baseline, {wanted}, is not used: the store has no predictions of it.",)
    if wanted in published and (other := _other_classes(results, wanted)):
        if name is not None:
            raise ResultsError(
                f"baseline {name!r} cannot be used: {other}; pass a model of the store, or {NO_BASELINE!r}"
            )
        return None, (f"The suite's baseline, {wanted}, is not used: {other}.",)
    return _named(suite, wanted, models), ()


def _namesakes(results: Results, wanted: str) -> list[str]:
    """Return the distinct names of the models that share a name."""
    rows = results.baseline_cells.items()
    return [known for known, row in rows if next(iter(row.values())).model["name"] == wanted]


def check_baseline(suite: Suite, models: Collection[str], way_out: str) -> None:
    """Raise an error unless the suite's baseline is published for its conditions, or one of some models."""
    wanted = suite.baseline
    if wanted is None or wanted == NO_BASELINE:
        return
    if not suite.sequences and wanted not in BASELINE_NAMES and wanted not in models:
        raise UnknownNameError(
            f"unknown baseline {wanted!r} of {suite}; available: {listed(dict.fromkeys(models))}, "
            f"{', '.join(BASELINE_NAMES)}; {way_out}"
        )
    _named(suite, wanted, models)


def _named(suite: Suite, wanted: str, models: Collection[str]) -> ResultBaseline:
    """Return the baseline of a name; models take precedence over published ones."""
    if wanted in models:
        return ResultBaseline(wanted, wanted, "a model of this store, on the same images")
    if suite.sequences:  # none are published with this package
        if not wanted.endswith(".csv"):
            raise ResultsError(
                f"the baseline of {suite} must be a model of the store or a CSV file with the columns "
                f"sequence, {' and '.join(MOVEMENTS)}, got {wanted!r}"
            )
        values = read_movement(wanted, suite.sequences)
        return ResultBaseline(wanted, Path(wanted).stem, f"values of {wanted}", movement=values)
    if wanted not in BASELINE_NAMES:
        known = dict.fromkeys((*BASELINE_NAMES, *models, NO_BASELINE))
        raise UnknownNameError(unknown_message("baseline", wanted, known))
    return published_baseline(suite, wanted)


def _other_classes(results: Results, name: str) -> str:
    """Return why a published baseline is not comparable with some results; empty if it is."""
    baseline = get_baseline(name)
    if baseline.classes is None or results.class_count in (None, baseline.classes):
        return ""
    return (
        f"the published errors of {baseline.title} are for {baseline.classes:,} classes, but these results "
        f"have {results.class_count:,}"
    )


def published_baseline(suite: Suite, name: str) -> ResultBaseline:
    """Return a published network's errors on the corruptions and severities of a suite."""
    baseline = get_baseline(name)
    severities = None if suite.severities == "published" else suite.severities
    errors = baseline.select(suite.corruptions, severities)
    means = {name: float(np.mean(np.asarray(values, np.float64))) for name, values in errors.items()}
    return ResultBaseline(name, baseline.title, baseline.source, baseline.clean, means)
