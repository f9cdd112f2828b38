"""Published figures that come with the package: CSV files whose first lines say where they are from."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from beaufort._core.errors import UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_choice

TABLE_NAMES = (
    "imagenet-c-table1",
    "imagenet-c-table2",
    "mnist-c-figure2",
    "mnist-c-figure3",
    "mnist-c-figure4",
)
"""The tables that are files of the package, `data/<name>.csv`."""


class Sheet(NamedTuple):
    """A file of figures."""

    facts: dict[str, str]
    """Its lines `# key: text`."""
    rows: list[dict[str, str]]


def read_sheet(name: str) -> Sheet:
    """The file `data/<name>.csv`."""
    text = (files("beaufort.metrics") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    lines = text.splitlines()
    comments = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    facts = {key: value for key, _, value in (line.partition(": ") for line in comments)}
    return Sheet(facts, list(csv.DictReader(line for line in lines if not line.startswith("#"))))


@dataclass(frozen=True, eq=False)
class PublishedTable(Mapping[str, Mapping[str, float]]):
    """A printed table: network → column → value.

    Values are shares and ratios, a hundredth of the printed percent. Columns are corruptions, and `clean` (an
    accuracy), `clean_error`, `mce`, `relative_mce` or `mean_accuracy`. A cell that could not be read is
    absent.
    """

    name: str
    title: str
    source: str
    note: str
    rows: Mapping[str, Mapping[str, float]]
    decimals: Mapping[str, int]
    """By column, with how many decimals the percents are printed."""
    damaged: frozenset[tuple[str, str]]
    """Network and column of the cells that could not be read."""

    def __getitem__(self, network: str) -> Mapping[str, float]:
        if network not in self.rows:
            raise UnknownNameError(unknown_message(f"row of {self.name}", network, self.rows))
        return self.rows[network]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def published_table(name: str) -> PublishedTable:
    """A table of a paper.

    >>> published_table("imagenet-c-table1")["ResNet-50"]["mce"]
    0.767
    >>> published_table("mnist-c-figure2")["ABS"]["relative_mce"]
    2.3393
    """
    return _read(validate_choice("published table", name, TABLE_NAMES))


@cache
def _read(name: str) -> PublishedTable:
    sheet = read_sheet(name)
    rows: dict[str, dict[str, float]] = {}
    decimals: dict[str, int] = {}
    damaged = set()
    for row in sheet.rows:
        network, column, text = row["network"], row["column"], row["percent"]
        values = rows.setdefault(network, {})
        if not text:
            damaged.add((network, column))
            continue
        values[column] = float(Decimal(text) / 100)
        decimals[column] = max(decimals.get(column, 0), len(text.partition(".")[2]))
    return PublishedTable(
        name=name,
        title=sheet.facts["title"],
        source=sheet.facts["source"],
        note=sheet.facts.get("note", ""),
        rows=rows,
        decimals=decimals,
        damaged=frozenset(damaged),
    )
