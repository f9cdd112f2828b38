"""What the tables of a selection and of an evaluation have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from beaufort._core.files import write_output
from beaufort._core.text import csv_text
from beaufort.metrics.stats import Estimate

MARK = "surrogate"
"""What a model that chose the images is called beside its name."""


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a CSV file; numbers with six digits, nothing for None."""
    lines = [["" if x is None else f"{x:.6g}" if isinstance(x, float) else x for x in row] for row in rows]
    write_output(path, csv_text(header, lines).encode())


def estimate_columns(name: str, over: str = "images") -> list[str]:
    """The names of an estimate's columns, the last of which counts what the interval is over."""
    return [name, f"{name}_low", f"{name}_high", f"{name}_{over}"]


def estimate_values(one: Estimate | None) -> list[float | int | None]:
    """Value, interval and the number of images, or whatever it is over, for its columns."""
    return [None] * 4 if one is None else [one.value, one.low, one.high, one.n]


def role(model: str, surrogates: Sequence[str]) -> str:
    """What a model was, for a table."""
    return MARK if model in surrogates else "evaluated"


def marked_name(model: str, surrogates: Sequence[str]) -> str:
    """A model's name for the head of a column; surrogates are never listed without a mark."""
    return f"{model} ({MARK})" if model in surrogates else model
