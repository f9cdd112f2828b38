"""Training runs of a study that show no sign of learning: reported when they end, and listed on every page.

They are part of the study's numbers like all others: which runs count is not decided by their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beaufort.studies.predictions import StudyPredictions
from beaufort.training import Recipe, failure
from beaufort.training.ending import ENDING_RULE, constant_loss, is_checked


@dataclass(frozen=True)
class FailedRun:
    """One training run, and the numbers that it is part of."""

    name: str
    seed: int
    why: str
    """Its last loss beside that of a constant prediction."""
    inside: str
    """The numbers that its predictions are part of."""


@dataclass(frozen=True)
class CheckedRuns:
    """What the losses of all training runs say."""

    failed: Sequence[FailedRun] = ()
    checked: int = 0
    unchecked: Sequence[str] = ()
    """Names of those whose loss does not tell."""

    @property
    def text(self) -> str:
        """A sentence for the facts of a page."""
        if not self.checked and not self.unchecked:
            return "no trainings yet"
        told = f"{len(self.failed)} of {self.checked} trainings"
        names = ", ".join(dict.fromkeys(self.unchecked))
        return f"{told}; the loss of others does not tell: {names}" if names else told


def check_runs(trained: Iterable[tuple[str, str, Mapping[str, Any]]]) -> CheckedRuns:
    """Check training runs, given the name of each, the numbers that it is part of, and its facts."""
    failed, unchecked, checked = [], [], 0
    for name, inside, facts in trained:
        if not is_checked(facts):
            unchecked.append(name)
            continue
        checked += 1
        if why := failure(facts):
            failed.append(FailedRun(name, int(facts.get("seed", 0)), why, inside))
    return CheckedRuns(failed, checked, unchecked)


def task_result(facts: Mapping[str, Any]) -> bool | str:
    """Return the result of a task that finished a training run: True, or a warning about it."""
    why = failure(facts)
    return f"no sign that the network learned: {why}" if why else True


def failed_markdown(runs: CheckedRuns) -> list[str]:
    """Return the lines of a section; none if all runs learned."""
    if not runs.failed:
        return []
    lines = ["", "## Trainings without a sign of learning", "", f"{ENDING_RULE} They were not left out.", ""]
    lines += ["| training | seed | | part of |", "|---|---|---|---|"]
    return [*lines, *(f"| {one.name} | {one.seed} | {one.why} | {one.inside} |" for one in runs.failed)]


def ending_facts(predictions: StudyPredictions) -> Mapping[str, Any]:
    """Return the facts of a training run with predictions.

    Files that are older than the check lack the loss of a constant prediction: it is made from the tested
    labels then, whose fractions are about those of the training set.
    """
    facts = predictions.facts
    if "constant_loss" in facts or not facts.get("losses"):
        return facts
    recipe = Recipe.from_dict(facts["recipe"])
    counts = np.bincount(predictions.labels, minlength=len(facts.get("classes", ())) or 1).tolist()
    return {**facts, "constant_loss": constant_loss(recipe, counts)}
