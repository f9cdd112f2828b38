"""Published pages follow from their committed predictions."""

from __future__ import annotations

import csv
import runpy
import shutil
import sys
from pathlib import Path

import pytest

from beaufort.results import open_results, verify_bundle

RESULTS = Path(__file__).resolve().parents[2] / "results"


def test_the_tables_of_adaptation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "adaptation"
    shutil.copytree(RESULTS / "adaptation", folder)
    for name in ("README.md", "scores.csv"):
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace("ResNet-20+tent", "").replace("| TENT |", "| ? |"))
    monkeypatch.setattr(sys, "argv", ["tables.py"])
    runpy.run_path(str(folder / "tables.py"), run_name="__main__")
    for name in ("README.md", "scores.csv"):
        assert (folder / name).read_bytes() == (RESULTS / "adaptation" / name).read_bytes()


@pytest.mark.slow
def test_the_tables_of_quantization() -> None:
    folder = RESULTS / "quantization"
    assert not verify_bundle(str(folder / "bundle")).problems
    script = runpy.run_path(str(folder / "tables.py"))
    results = open_results(str(folder / "bundle"))
    with (folder / "flips.csv").open(newline="", encoding="utf-8") as file:
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
    page = (folder / "README.md").read_text(encoding="utf-8")
    for what in ("flips", "gap"):
        assert script["markdown"](script["corruptions_table"](results, what)) in page
    assert script["markdown"](script["versions_table"](results, script["read_times"]())) in page
