"""Tables 1 and 2 of the ImageNet-C paper: CE and relative CE of its seven networks, from the testbed.

The testbed has their accuracies on all 50,000 × 75 published images. CEs divide by the errors of its own
AlexNet, whose weights are not those of the paper.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beaufort._core.text import csv_text
from beaufort._core.validation import validate_file
from beaufort.corruptions import get_corruption_names
from beaufort.metrics import published_table
from beaufort.testbed.grid import Grid
from beaufort.testbed.load import load_grid

NETWORKS: Mapping[str, str] = {
    "AlexNet": "alexnet",
    "SqueezeNet": "squeezenet1_1",
    "VGG-11": "vgg11",
    "VGG-19": "vgg19",
    "VGG-19+BN": "vgg19_bn",
    "ResNet-18": "resnet18",
    "ResNet-50": "resnet50",
}
"""Names in the paper, and in the testbed."""

_TABLES = {
    "mce": ("imagenet-c-table1", "Table 1: clean error, mCE and CE"),
    "relative_mce": ("imagenet-c-table2", "Table 2: clean error, relative mCE and relative CE"),
}
_OF = {"mce": "ce", "relative_mce": "relative_ce"}
"""Metric of one corruption in a table of scores."""


@dataclass(frozen=True)
class TableCell:
    """A number in percent, beside the paper's."""

    table: str
    """Its headline metric: `mce` or `relative_mce`."""
    network: str
    column: str
    """`clean_error`, the headline metric, or a corruption."""
    value: float
    printed: float | None
    """The paper's; None where it has none."""
    low: float | None = None
    high: float | None = None
    """95 % interval over images; None for the testbed."""


def imagenet_c_tables(grid: Grid | None = None) -> list[TableCell]:
    """Return all cells of both tables for the paper's networks."""
    grid = load_grid("paper") if grid is None else grid
    names = get_corruption_names("common")
    members = {name: grid.setting(f"imagenet-c.{name}_on-disk").members for name in names}
    errors = {
        network: {
            name: 100 - np.array([grid.column(one)[grid.row_of[row]] for one in members[name]])
            for name in names
        }
        for network, row in NETWORKS.items()
    }
    clean = {network: 100 - float(grid.column("val")[grid.row_of[row]]) for network, row in NETWORKS.items()}
    cells = []
    for table, (published, _) in _TABLES.items():
        paper = published_table(published)
        for network in NETWORKS:
            less, base = (clean[network], clean["AlexNet"]) if table == "relative_mce" else (0.0, 0.0)
            ces = {
                name: 100
                * float((errors[network][name] - less).sum() / (errors["AlexNet"][name] - base).sum())
                for name in names
            }
            row = {"clean_error": clean[network], table: float(np.mean(list(ces.values()))), **ces}
            for column, value in row.items():
                printed = paper[network].get(column)
                cells.append(
                    TableCell(table, network, column, value, None if printed is None else 100 * printed)
                )
    return cells


def cells_of_scores(text: str) -> list[TableCell]:
    """Return the cells of other networks from a CSV table of scores, as `beaufort report` writes it."""
    cells = []
    for row in csv.DictReader(io.StringIO(text)):
        ends = [100 * float(row[end]) if row[end] else None for end in ("value", "low", "high")]
        metric, whole = row["metric"], not row["severity"]
        for table, each in _OF.items():
            if metric == "accuracy" and row["condition"] and not row["corruption"]:
                clean = [None if one is None else 100 - one for one in ends]
                column, ends_of = "clean_error", [clean[0], clean[2], clean[1]]
            elif metric in (table, each) and whole:
                column, ends_of = row["corruption"] or table, ends
            else:
                continue
            assert ends_of[0] is not None
            cells.append(TableCell(table, row["model"], column, ends_of[0], None, ends_of[1], ends_of[2]))
    return cells


def tables_csv(cells: list[TableCell]) -> str:
    """Return a row for each cell, in percent."""
    head = ("table", "network", "column", "value", "low", "high", "paper")
    return csv_text(
        head,
        ((c.table, c.network, c.column, *map(_cell, (c.value, c.low, c.high, c.printed))) for c in cells),
    )


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def tables_page(cells: list[TableCell], own: list[TableCell]) -> str:
    """Return a Markdown page: each number beside the paper's, and those of other networks below."""
    lines = [
        "# Tables 1 and 2 of the ImageNet-C paper",
        "",
        "The paper's networks, from the testbed's accuracies on 50,000 × 75 published images: ours · the "
        "paper's, in percent. CEs divide by the errors of the testbed's AlexNet.",
    ]
    if own:
        lines[-1] += (
            " Those without a number of the paper were evaluated on photos that Beaufort corrupted, and "
            "divided by the paper's AlexNet."
        )
    for table, (_, title) in _TABLES.items():
        columns = list(dict.fromkeys(one.column for one in cells if one.table == table))
        head = [one.replace("_", " ").replace("mce", "mCE") for one in columns]
        lines += [
            "",
            f"## {title}",
            "",
            f"| network | {' | '.join(head)} |",
            "|---" * (len(columns) + 1) + "|",
        ]
        for some in (cells, own):
            lines += _rows([one for one in some if one.table == table], columns)
    return "\n".join(lines) + "\n"


def _rows(cells: list[TableCell], columns: list[str]) -> Iterator[str]:
    for network in dict.fromkeys(one.network for one in cells):
        row = {one.column: one for one in cells if one.network == network}
        texts = []
        for column in columns:
            one, digits = row[column], 1 if column in ("clean_error", "mce", "relative_mce") else 0
            text = f"{one.value:.{digits}f}"
            texts.append(text if one.printed is None else f"{text} · {one.printed:.{digits}f}")
        yield f"| {network} | {' | '.join(texts)} |"


def tables_of_imagenet_c(scores: Path | None = None) -> Iterator[tuple[str, str]]:
    """Yield the name and content of a page and a CSV file, with the networks of a table of scores below."""
    cells = imagenet_c_tables()
    own = (
        [] if scores is None else cells_of_scores(validate_file("scores", scores).read_text(encoding="utf-8"))
    )
    yield "imagenet-c-tables.md", tables_page(cells, own)
    yield "imagenet-c-tables.csv", tables_csv([*cells, *own])
