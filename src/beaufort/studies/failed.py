"""Trainings of a study that show no sign of learning: told when they end, and listed on every page.

They are part of the study's numbers like all others: which trainings count is not decided by their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beaufort.studies.answers import StudyAnswers
from beaufort.training import Recipe
from beaufort.training.ending import ENDING_RULE, constant_loss, failure, is_checked


@dataclass(frozen=True)
class FailedTraining:
    """One training, and where its answers went."""

    name: str
    seed: int
    why: str
    """Its last loss beside that of a constant answer."""
    inside: str
    """The numbers that its answers are part of."""


@dataclass(frozen=True)
class TrainingsLooked:
    """What the losses of all trainings say."""

    failed: Sequence[FailedTraining] = ()
    checked: int = 0
    unchecked: Sequence[str] = ()
    """Names of those whose loss does not tell."""

    @property
    def text(self) -> str:
        """In a sentence, for the facts of a page."""
        if not self.checked and not self.unchecked:
            return "no trainings yet"
        told = f"{len(self.failed)} of {self.checked} trainings"
        names = ", ".join(dict.fromkeys(self.unchecked))
        return f"{told}; the loss of others does not tell: {names}" if names else told


def look_at_trainings(trained: Iterable[tuple[str, str, Mapping[str, Any]]]) -> TrainingsLooked:
    """Go through trainings: the name of each, the numbers that it is part of, and its facts."""
    failed, unchecked, checked = [], [], 0
    for name, inside, facts in trained:
        if not is_checked(facts):
            unchecked.append(name)
            continue
        checked += 1
        if why := failure(facts):
            failed.append(FailedTraining(name, int(facts.get("seed", 0)), why, inside))
    return TrainingsLooked(failed, checked, unchecked)


def task_result(facts: Mapping[str, Any]) -> bool | str:
    """What a task gives that is done with a training: what is to be told about it, if something is."""
    why = failure(facts)
    return f"no sign that the network learned: {why}" if why else True


def failed_markdown(trainings: TrainingsLooked) -> list[str]:
    """The lines of a section; none if all trainings learned."""
    if not trainings.failed:
        return []
    lines = ["", "## Trainings without a sign of learning", "", f"{ENDING_RULE} They were not left out.", ""]
    lines += ["| training | seed | | part of |", "|---|---|---|---|"]
    return [*lines, *(f"| {one.name} | {one.seed} | {one.why} | {one.inside} |" for one in trainings.failed)]


def ending_facts(answers: StudyAnswers) -> Mapping[str, Any]:
    """The facts of a training with answers.

    Files that are older than the check lack the loss of a constant answer: it is made from the tested labels
    then, whose shares are about those of the training's.
    """
    facts = answers.facts
    if "constant_loss" in facts or not facts.get("losses"):
        return facts
    recipe = Recipe.from_dict(facts["recipe"])
    counts = np.bincount(answers.labels, minlength=len(facts.get("classes", ())) or 1).tolist()
    return {**facts, "constant_loss": constant_loss(recipe, counts)}
