"""Training runs of a study without sign of learning: logged when they end, and listed on every page.

Their predictions count like all others: which runs count must not depend on their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from beaufort.studies.predictions import StudyPredictions
from beaufort.training import Recipe, failure
from beaufort.training.ending import constant_loss, is_checked


class FailedRun(NamedTuple):
    """A training run, its seed, why it failed, and the numbers that contain its predictions."""

    name: str
    seed: int
    why: str
    inside: str


@dataclass(frozen=True)
class CheckedRuns:
    """What the losses of all training runs show."""

    failed: Sequence[FailedRun] = ()
    checked: int = 0
    unchecked: Sequence[str] = ()
    """Names of runs whose loss shows nothing."""

    @property
    def text(self) -> str:
        if not self.checked and not self.unchecked:
            return "no training runs yet"
        text = f"{len(self.failed)} of {self.checked} training runs"
        names = ", ".join(dict.fromkeys(self.unchecked))
        return f"{text}; not checked, because the loss does not show it: {names}" if names else text


def check_runs(runs: Iterable[tuple[str, str, Mapping[str, Any]]]) -> CheckedRuns:
    """Check training runs, given the name of each, the numbers that contain it, and its facts."""
    failed, unchecked, checked = [], [], 0
    for name, inside, facts in runs:
        if not is_checked(facts):
            unchecked.append(name)
            continue
        checked += 1
        if why := failure(facts):
            failed.append(FailedRun(name, int(facts.get("seed", 0)), why, inside))
    return CheckedRuns(failed, checked, unchecked)


def task_result(facts: Mapping[str, Any]) -> bool | str:
    """Return the result of a task whose training run is finished: True, or a warning."""
    why = failure(facts)
    return f"no sign that the network learned: {why}" if why else True


def ending_facts(predictions: StudyPredictions) -> Mapping[str, Any]:
    """Return the facts of the training run behind predictions.

    Older files lack the loss of a constant prediction; it is estimated from the test labels, whose class
    fractions are close to those of the training set.
    """
    facts = predictions.facts
    if "constant_loss" in facts or not facts.get("losses"):
        return facts
    counts = np.bincount(predictions.labels, minlength=len(facts.get("classes", ())) or 1).tolist()
    return {**facts, "constant_loss": constant_loss(Recipe.from_dict(facts["recipe"]), counts)}
