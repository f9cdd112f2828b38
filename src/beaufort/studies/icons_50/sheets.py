"""The study's numbers as CSV texts, in percent."""

from __future__ import annotations

from collections.abc import Sequence

from beaufort._core.text import csv_text
from beaufort.studies.icons_50.effects import Effect
from beaufort.studies.icons_50.settings import SPLITS, VARIANTS
from beaufort.studies.icons_50.story import GroupTable
from beaufort.studies.icons_50.tables import Confusion
from beaufort.studies.measured import ReproducedTable, percent_text


def cells_csv(table: ReproducedTable, across: str) -> str:
    """A row for each cell: value, interval over icons, spread over trainings, the paper's value.

    Args:
        table: with any rows and columns.
        across: what its columns are; `table.corner` says what its rows are.
    """
    rows = [
        [row, column, *map(percent_text, (one.value, one.low, one.high, one.spread, one.printed))]
        for row, cells in table.rows.items()
        for column, one in cells.items()
    ]
    return csv_text([table.corner, across, "accuracy", "low", "high", "sd over seeds", "paper"], rows)


def effects_csv(effects: Sequence[Effect]) -> str:
    """A row for each comparison, in points."""
    rows = [
        [one.name, one.split, one.first, one.second, *map(percent_text, (one.value, one.low, one.high))]
        + [str(count) for count in one.trainings]
        for one in effects
    ]
    head = ["comparison", "held out", "first", "second", "difference", "low", "high"]
    return csv_text([*head, "trainings of first", "trainings of second"], rows)


def groups_csv(table: GroupTable) -> str:
    """A row for each class, subtype or style."""
    rows = [
        [name, f"{icons:.0f}", *map(percent_text, shares)] for name, (icons, *shares) in table.rows.items()
    ]
    return csv_text([table.corner, "icons", *table.columns], rows)


def confusions_csv(confusions: Sequence[Confusion]) -> str:
    """A row for each confusion."""
    rows = [
        (VARIANTS[network].title, SPLITS[split], of, answered, f"{icons:.2f}", percent_text(share))
        for network, split, of, answered, icons, share in confusions
    ]
    return csv_text(["network", "held out", "class", "answer", "icons", "percent of the class"], rows)
