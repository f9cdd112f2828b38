"""The published page about quantized classifiers follows from its committed predictions."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import pytest

from beaufort.results import open_results, verify_bundle

FOLDER = Path(__file__).resolve().parents[2] / "results" / "quantization"


@pytest.mark.slow
def test_tables_follow_from_the_bundle() -> None:
    assert not verify_bundle(str(FOLDER / "bundle")).problems
    script = runpy.run_path(str(FOLDER / "tables.py"))
    results = open_results(str(FOLDER / "bundle"))
    with (FOLDER / "flips.csv").open(newline="", encoding="utf-8") as file:
        rows = {(row["network"], row["version"], row["condition"]): row for row in csv.DictReader(file)}
    count = 0
    for network, version, found in script["comparisons"](results):
        for one in found.conditions:
            row = rows[network, version, one.condition.done or "clean"]
            for name in script["NUMBERS"]:
                value = getattr(one, name)
                numbers = [float(row[f"{name}{end}"]) for end in ("", "_low", "_high")]
                assert numbers == pytest.approx([value.value, value.low, value.high], abs=6e-5)
            count += 1
    assert count == len(rows)
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for what in ("flips", "gap"):
        assert script["markdown"](script["corruptions_table"](results, what)) in page
    assert script["markdown"](script["versions_table"](results, script["read_times"]())) in page
