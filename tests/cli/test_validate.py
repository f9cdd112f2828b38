"""The commands `beaufort validate` and `beaufort ls suites`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beaufort.cli import app
from beaufort.cli.ls import _suite_cells
from beaufort.suites import SHIFT_SUITE_NAMES, SUITE_NAMES, Suite, get_suite
from tests.commands import shows

RUNNER = CliRunner()
ANSI = re.compile(r"\x1b\[[0-9;]*m")

GOOD = """\
name: mine
version: 3
dataset: photos
scale: imagenet
corruptions: [fog, snow]
severities: [1, 5]
"""


def run(*arguments: object) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, ANSI.sub("", result.stdout), ANSI.sub("", result.stderr)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD.replace("snow", "sonw").replace("[1, 5]", "[1, 6]"))
    return path


def test_ok(good: Path) -> None:
    assert run("validate", good) == (0, "ok: mine 3, 5 conditions\n", "")


def test_one_condition(good: Path) -> None:
    good.write_text(GOOD.replace("fog, snow", "fog").replace("[1, 5]", "[1]") + "clean: false\n")
    assert run("validate", good) == (0, "ok: mine 3, 1 condition\n", "")


def test_mistakes(good: Path, bad: Path) -> None:
    code, out, errors = run("validate", bad, good)
    assert (code, errors) == (1, "")
    unknown, above, fine = out.splitlines()
    assert shows(unknown, f"{bad}:5: corruptions: ", "'sonw'", "'snow'")
    assert shows(above, f"{bad}:6: severities: ", "1 to 5", "6")
    assert fine == "ok: mine 3, 5 conditions"


def test_many_mistakes(bad: Path) -> None:
    bad.write_text(GOOD.replace("[1, 5]", f"[{', '.join(['9'] * 30)}]"))
    code, out, _ = run("validate", bad)
    assert (code, len(out.splitlines())) == (1, 21)
    assert shows(out.splitlines()[-1], "10 more", "--json")
    assert len(json.loads(run("validate", bad, "--json")[1])[0]["mistakes"]) == 30


def test_json(good: Path, bad: Path) -> None:
    code, out, _ = run("validate", good, bad, "--json")
    first, second = json.loads(out)
    assert code == 1
    assert first == {"file": str(good), "ok": True, "name": "mine", "version": 3, "conditions": 5}
    assert second["ok"] is False
    mistake = second["mistakes"][0]
    assert (mistake["line"], mistake["key"]) == (5, "corruptions")
    assert shows(mistake["message"], "'sonw'", "'snow'")


def test_no_such_file(good: Path, tmp_path: Path) -> None:
    code, out, errors = run("validate", good, tmp_path / "no.yaml")
    assert (code, out) == (2, "ok: mine 3, 5 conditions\n")
    assert str(tmp_path / "no.yaml") in errors
    assert run("validate")[0] == 2


def test_ls_suites() -> None:
    code, out, _ = run("ls", "suites")
    assert code == 0
    lines = [re.split(r"  +", line) for line in out.splitlines()]
    assert lines[0] == ["name", "version", "corruptions × severities", "scale", "baseline", "headline"]
    assert lines[1] == ["imagenet-c", "1", "15 × 5", "imagenet", "alexnet", "mce, relative_mce"]
    assert lines[1 + SUITE_NAMES.index("mnist-c")] == [
        "mnist-c",
        "1",
        "15 × published",
        "mnist",
        "conv1",
        "mean_accuracy, relative_mce",
    ]
    assert [line[0] for line in lines[1:]] == [*SUITE_NAMES, *SHIFT_SUITE_NAMES]


def test_ls_suites_lists_versions() -> None:
    suite = Suite(
        name="some",
        version=1,
        dataset="photos",
        scale="imagenet",
        corruptions=("fog",),
        severities=(1, 3),
        shifts=("fog@2+snow@3", "stylize@3", "pgd-linf@2/255", "foolbox@LinfPGD:4/255"),
    )
    assert _suite_cells(suite)[2] == "1 × 2 + 1 chain + 1 other shift + 2 attacks"


def test_ls_suites_json() -> None:
    found = json.loads(run("ls", "suites", "--json")[1])
    assert found == [get_suite(name).as_dict() for name in (*SUITE_NAMES, *SHIFT_SUITE_NAMES)]
