"""What errors are divided by: a published network's, or those of a model of the store."""

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
"""The name that stands for no baseline at all."""


@dataclass(frozen=True)
class ResultBaseline:
    """The baseline of a result."""

    name: str
    title: str
    source: str
    """Where its errors come from, for people."""
    clean: float | None = None
    """Its error on clean images; None if it is not known, or if it is a model of the store."""
    errors: Mapping[str, float] | None = None
    """Its error under each corruption, the mean over severities; None if it is a model of the store."""
    movement: Mapping[str, Mapping[str, float]] | None = None
    """Its flip probability and top-5 distance over each sequence, by kind; None unless they were given."""

    @property
    def stored(self) -> bool:
        """Whether it is a model of the store, whose errors have an uncertainty of their own."""
        return self.errors is None and self.movement is None

    @property
    def short_name(self) -> str:
        """What stands before the first comma or `on` of a published title; a stored model's name."""
        return self.name if self.stored else self.title.partition(",")[0].partition(" on ")[0]


def find_baseline(results: Results, name: str | None = None) -> tuple[ResultBaseline | None, tuple[str, ...]]:
    """The baseline of a name, or the suite's own, and what to say about it; None if there is to be none.

    A published baseline belongs to its classes, and a model has to be among the results, or in their store.
    What does not fit is refused if it was asked for by name; if it is only the suite's own, there is none,
    and a note says why.

    Args:
        results: what is to be divided.
        name: one of `BASELINE_NAMES`, a model of the store, or `none`; for a suite of sequences also a CSV
            file of a model's values. The suite's if None.
    """
    suite, models = results.suite, results.possible_baselines
    wanted = suite.baseline if name is None else name
    if wanted is None or wanted == NO_BASELINE:
        return None, ()
    published = () if suite.sequences or wanted in models else BASELINE_NAMES
    rows = {**results.cells, **results.others}
    namesakes = [known for known, row in rows.items() if next(iter(row.values())).model["name"] == wanted]
    if wanted not in (*models, *published) and namesakes:
        told = f"{wanted} may be {' or '.join(namesakes)}; name one with baseline (--baseline)"
        if name is not None:
            raise UnknownNameError(f"the baseline must be one model, and {told}")
        return None, (f"The suite's baseline is not used: {told}.",)
    if name is None and wanted not in (*models, *published) and not wanted.endswith(".csv"):
        return None, (f"The suite's baseline, {wanted}, is not used: its predictions are not among these.",)
    if wanted in published and (other := _other_classes(results, wanted)):
        if name is not None:
            raise ResultsError(
                f"baseline {name!r} cannot be used: {other}; use a model of the store, or {NO_BASELINE!r}"
            )
        return None, (f"The suite's baseline, {wanted}, is not used: {other}.",)
    return _named(suite, wanted, models), ()


def check_baseline(suite: Suite, models: Collection[str], way_out: str) -> None:
    """Refuse a suite whose own baseline is neither published for what it shows nor one of some models."""
    wanted = suite.baseline
    if wanted is None or wanted == NO_BASELINE:
        return
    if not suite.sequences and wanted not in (*BASELINE_NAMES, *models):
        raise UnknownNameError(
            f"the baseline of {suite} must be one of the models {listed(dict.fromkeys(models))}, or "
            f"published ({', '.join(BASELINE_NAMES)}), got {wanted!r}; {way_out}"
        )
    _named(suite, wanted, models)


def _named(suite: Suite, wanted: str, models: Collection[str]) -> ResultBaseline:
    """The baseline of a name, which means a model before a published one."""
    if wanted in models:
        return ResultBaseline(wanted, wanted, "a model of this store, on the same images")
    if suite.sequences:  # none are published with this package
        if not wanted.endswith(".csv"):
            raise ResultsError(
                f"the baseline of {suite} must be a model of the store or a CSV file with the columns "
                f"sequence, {' and '.join(MOVEMENTS)}, got {wanted!r}"
            )
        values = read_movement(wanted, suite.sequences)
        return ResultBaseline(wanted, Path(wanted).stem, f"as written in {wanted}", movement=values)
    if wanted not in BASELINE_NAMES:
        known = dict.fromkeys((*BASELINE_NAMES, *models, NO_BASELINE))
        raise UnknownNameError(unknown_message("baseline", wanted, known))
    return published_baseline(suite, wanted)


def _other_classes(results: Results, name: str) -> str:
    """Why a published baseline is not about the classes of some results; empty if it is."""
    baseline = get_baseline(name)
    if baseline.classes is None or results.class_count in (None, baseline.classes):
        return ""
    return (
        f"the published errors of {baseline.title} are for {baseline.classes:,} classes, and here models "
        f"choose from {results.class_count:,}"
    )


def published_baseline(suite: Suite, name: str) -> ResultBaseline:
    """A published network's errors on the corruptions and severities of a suite."""
    baseline = get_baseline(name)
    severities = None if suite.severities == "published" else suite.severities
    errors = baseline.select(suite.corruptions, severities)
    means = {name: float(np.mean(np.asarray(values, np.float64))) for name, values in errors.items()}
    return ResultBaseline(name, baseline.title, baseline.source, baseline.clean, means)
