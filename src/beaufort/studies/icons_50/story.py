"""What the pages of the study tell, whatever their form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from beaufort.studies.claim import Claim
from beaufort.studies.failed import TrainingsLooked
from beaufort.studies.icons_50.effects import Effect
from beaufort.studies.icons_50.examples import ExampleSheet
from beaufort.studies.icons_50.tables import Confusion
from beaufort.studies.measured import ReproducedTable

RULE = (
    "The paper's number, which is of one training, has a star if it lies outside the 95 % intervals of all "
    "our trainings. As far as can be told, it was measured under the rules of the released program, so it "
    "stands beside these. For subtypes that program holds out an icon if a name is anywhere in the path, so "
    "two classes vanish from training, and no network can get their icons right. A statement is decided by "
    "two trainings or more of each side: with one, how far another would come out is not known."
)
FEW = (
    "The hardest first, by the mean over networks. Where icons are few, a percentage says little: 5 right of "
    "10 could be anything from 19 to 81 %."
)
CONFUSIONS = (
    "The most frequent wrong answers of each network, among icons whose class is in training; a percentage "
    "is of the held-out icons of the class."
)
REHEARSAL = "A rehearsal with few icons and tiny trainings: its numbers mean nothing."


@dataclass(frozen=True)
class GroupTable:
    """Accuracy by class, subtype or style."""

    name: str
    title: str
    corner: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[float]]
    """The number of icons first, then shares; the hardest group first."""


@dataclass(frozen=True)
class IconStory:
    """Numbers and texts."""

    tables: Sequence[ReproducedTable]
    claims: Sequence[Claim]
    effects: Sequence[Effect]
    groups: Sequence[GroupTable]
    confusions: Sequence[Confusion]
    trainings: TrainingsLooked
    facts: Mapping[str, str]
    """Hardware, seeds, time and the like."""
    examples: ExampleSheet | None
    """Icons that may be shown."""
    rehearsal: bool

    def answer(self) -> str:
        """What the arms say about Shake-Shake, in a sentence; empty without them."""
        wanted = {
            "Shake-Shake's network not shaken, 50 epochs",
            "shaking, 50 epochs",
            "shaking, 200 epochs",
            "200 epochs for 50, not shaken",
        }
        words = {True: "it helps", False: "it hurts", None: "undecided"}
        told = [
            f"{one.name}, on {one.split}: {100 * one.value:+.1f} points [{100 * one.low:+.1f}, "
            f"{100 * one.high:+.1f}], {words[one.decided]}"
            for one in self.effects
            if one.name in wanted
        ]
        return "; ".join(told) + "." if told else ""
