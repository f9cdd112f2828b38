"""The examples on the page about suites have the shown output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beaufort.cli import app
from beaufort.suites import SUITE_NAMES, get_suite

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/suites.md").read_text(encoding="utf-8")
METRICS = {"mce": "mCE", "relative_mce": "relative mCE", "mean_accuracy": "mean accuracy"}


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_output_of_validate_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for content, shown in zip(fenced("yaml"), fenced("console"), strict=True):
        command, _, output = shown.partition("\n")
        arguments = command.removeprefix("$ beaufort ").split()
        Path(arguments[-1]).write_text(content, encoding="utf-8")
        assert CliRunner().invoke(app, arguments).stdout == output


def test_table_of_suites() -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| (\d+) × (\w+) \| `(\w+)` \| `([\w-]+)` \| (.+?) \| (.+?) \|$", PAGE, re.M
    )
    assert [row[0] for row in rows] == [name for name in SUITE_NAMES if get_suite(name).corruptions]
    for name, corruptions, severities, scale, dataset, baseline, headline in rows:
        suite = get_suite(name)
        assert int(corruptions) == len(suite.corruptions)
        assert severities == (
            suite.severities if suite.severities == "published" else str(len(suite.severities))
        )
        assert (scale, dataset) == (suite.scale, suite.dataset)
        assert baseline == (f"`{suite.baseline}`" if suite.baseline else "none")
        assert headline == ", ".join(METRICS[metric] for metric in suite.metrics)
