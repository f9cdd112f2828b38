"""Which numbers of the study each training is part of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from beaufort.studies.failed import TrainingsLooked, ending_facts, look_at_trainings
from beaufort.studies.mnist_c.settings import CLEAN, MODELS
from beaufort.studies.mnist_c.tables import StudyResults

_MEANS = "means of that column over rows that all have this seed"


def trainings_of(results: StudyResults) -> TrainingsLooked:
    """What the losses of all trainings say that are there."""
    return look_at_trainings([*_models(results), *_tunings(results)])


def _models(results: StudyResults) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for name, title in MODELS.items():
        for place, answers in enumerate(results.models.get(name, ())):
            inside = f"fig2 and fig3, {title}, and conclusions about it"
            if name == "conv1":
                inside += ", relative mCE of all models; fig4, clean, and tunings of this seed; failures.csv"
            yield title, inside + ("" if place else f"; errors-{name}.png"), ending_facts(answers)


def _tunings(results: StudyResults) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for label, some in results.tuned.items():
        kind, _, row = label.partition("-")
        where = {
            "all": f"fig4, all; all_but_one of {CLEAN}",
            "but": f"fig4, {row}, all_but_one; {_MEANS}",
            "single": f"fig4, {row}, single; {_MEANS}; transfer.csv, {row}; selection.svg",
        }[kind]
        for answers in some:
            yield f"Conv1 tuned on {label.replace('-', ' ')}", where, ending_facts(answers)
