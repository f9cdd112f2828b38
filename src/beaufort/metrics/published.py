"""Published results in CSV files, whose first lines name the source."""

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
"""Names of the tables in `data/<name>.csv`."""


class Sheet(NamedTuple):
    """A file of published values."""

    facts: dict[str, str]
    """Lines `# key: text`."""
    rows: list[dict[str, str]]


def read_sheet(name: str) -> Sheet:
    """Return the file `data/<name>.csv`."""
    text = (files("beaufort.metrics") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    lines = text.splitlines()
    comments = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    facts = {key: value for key, _, value in (line.partition(": ") for line in comments)}
    return Sheet(facts, list(csv.DictReader(line for line in lines if not line.startswith("#"))))


@dataclass(frozen=True, eq=False)
class PublishedTable(Mapping[str, Mapping[str, float]]):
    """A published table: network → column → value.

    Values are fractions and ratios, not percent. Columns are corruptions, and `clean` (an accuracy),
    `clean_error`, `mce`, `relative_mce` or `mean_accuracy`. Illegible cells are missing.
    """

    name: str
    title: str
    source: str
    note: str
    rows: Mapping[str, Mapping[str, float]]
    decimals: Mapping[str, int]
    """Number of printed decimals by column, in percent."""
    damaged: frozenset[tuple[str, str]]
    """Network and column of illegible cells."""

    def __getitem__(self, network: str) -> Mapping[str, float]:
        if network not in self.rows:
            raise UnknownNameError(unknown_message(f"row of {self.name}", network, self.rows))
        return self.rows[network]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def published_table(name: str) -> PublishedTable:
    """Return a table of a paper.

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
