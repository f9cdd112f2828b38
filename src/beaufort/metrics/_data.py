"""The published figures that come with the package: CSV files whose first lines say where they are from."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import NamedTuple


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
