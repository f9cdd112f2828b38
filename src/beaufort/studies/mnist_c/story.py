"""What the pages of the study tell, whatever their form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from beaufort.studies.claim import Claim
from beaufort.studies.failed import TrainingsLooked
from beaufort.studies.measured import Measured, ReproducedTable, cell_text

RULE = (
    "A number is marked if the paper's lies outside the 95 % intervals of all our trainings: it is then more "
    "than chance in the digits and, as far as our trainings show, in the training. The paper has one of each."
)
REHEARSAL = "A rehearsal with few digits and tiny trainings: its numbers mean nothing."


@dataclass(frozen=True)
class Story:
    """Numbers and texts."""

    tables: Sequence[ReproducedTable]
    claims: Sequence[Claim]
    facts: Mapping[str, str]
    """Hardware, seeds, time and the like."""
    words: Mapping[str, str]
    """Explanations by `table/row/column`."""
    noise: str
    """About the pessimal noise; empty without."""
    over_all: Mapping[str, Measured]
    """Means over all corruptions, by column of Figure 4."""
    corruptions: int
    trainings: TrainingsLooked
    rehearsal: bool

    @property
    def over_all_text(self) -> str:
        """The means over all corruptions as a sentence; empty without."""
        told = "; ".join(f"{column} {cell_text(entry)}" for column, entry in self.over_all.items())
        return f"Over all {self.corruptions} corruptions: {told}." if told else ""

    def why(self, table: ReproducedTable, row: str, column: str) -> str:
        """The explanation of a cell; empty if there is none."""
        place = f"{table.name}/{row}/{column}"
        return next((text for key, text in self.words.items() if fnmatchcase(place, key)), "")

    def differing(self) -> list[tuple[str, str, str]]:
        """The cells where the paper's number is outside our intervals: place, values, explanation."""
        return [
            (
                f"{table.name}, {row}, {column}",
                f"{100 * entry.value:.2f}, paper {100 * (entry.printed or 0):.2f}",
                self.why(table, row, column) or "not explained",
            )
            for table in self.tables
            for row, cells in table.rows.items()
            for column, entry in cells.items()
            if entry.differs
        ]
