"""The command `beaufort data`."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beaufort._core.catalog import Asset, Entry, Progress, assets, entries
from beaufort.cli import app
from tests.commands import shows

RUNNER = CliRunner()
ANSI = re.compile(r"\x1b\[[0-9;]*m")
CONTENT = b"a few digits"


class Given:
    place = "a source"

    def save(self, path: Path, progress: Progress) -> None:
        path.write_bytes(CONTENT)
        progress(len(CONTENT), len(CONTENT))


def run(*arguments: str) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, arguments)
    return result.exit_code, ANSI.sub("", result.stdout), ANSI.sub("", result.stderr)


@pytest.fixture(autouse=True)
def _catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path))
    monkeypatch.delenv("BEAUFORT_MIRROR", raising=False)
    monkeypatch.delenv("BEAUFORT_OFFLINE", raising=False)
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    for name in ("one", "two"):
        file = f"digits/{name}"
        asset = Asset(file, sha256, "CC0-1.0", "these tests", [Given()], size=len(CONTENT))
        monkeypatch.setitem(assets._things, file, asset)
    files = ("digits/one", "digits/two")
    entry = Entry("digits", "some digits", "CC0-1.0", "these tests", "https://example.org", files)
    monkeypatch.setitem(entries._things, "digits", entry)


def row(name: str) -> str:
    return next(line for line in run("ls", "files")[1].splitlines() if line.startswith(name))


def test_pull_list_and_verify(tmp_path: Path) -> None:
    assert "  no  " in row("digits")
    assert "CC BY-SA 3.0" in row("mnist-test")
    code, out, errors = run("data", "pull", "digits")
    assert (code, errors) == (0, "")
    assert shows(out, "digits", "2 files", "24 bytes", "CC0-1.0", str(tmp_path / "digits"))
    assert "  yes  " in row("digits")
    assert run("data", "verify") == (0, "digits: ok\n", "")
    (tmp_path / "digits" / "two").unlink()
    assert "  partly  " in row("digits")
    assert run("data", "verify", "digits", "mnist-test")[:2] == (
        0,
        "digits: incomplete\nmnist-test: not in the cache\n",
    )


def test_tampered_files_are_reported_and_removed(tmp_path: Path) -> None:
    run("data", "pull", "digits")
    (tmp_path / "digits" / "two").write_bytes(b"tampered")
    code, out, errors = run("data", "verify")
    assert (code, out) == (1, "digits: damaged\n")
    assert f"damaged: {tmp_path / 'digits' / 'two'}" in errors
    code, out, _ = run("data", "verify", "digits", "--delete", "--json")
    assert code == 1
    assert json.loads(out)["files"] == {"digits/one": "complete", "digits/two": "damaged"}
    assert not (tmp_path / "digits" / "two").exists()
    assert run("data", "pull", "digits")[0] == run("data", "verify")[0] == 0


def test_offline_mode_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    code, out, errors = run("data", "pull", "digits")
    assert (code, out) == (1, "")
    assert "BEAUFORT_OFFLINE is set" in errors
    assert "BEAUFORT_OFFLINE is set" in run("ls", "files")[2]


def test_unknown_names_fetch_nothing(tmp_path: Path) -> None:
    code, _, errors = run("data", "pull", "digits", "digitz")
    assert code == 2
    assert "did you mean 'digits'" in errors
    assert not (tmp_path / "digits").exists()


def test_json() -> None:
    found = {entry["name"]: entry for entry in json.loads(run("ls", "files", "--json")[1])}
    assert found["mnist-test"]["size"] == 7_850_024
    assert found["digits"]["files"].keys() == {"digits/one", "digits/two"}


def test_the_catalog_is_whole_whatever_was_imported() -> None:
    command = [sys.executable, "-m", "beaufort", "ls", "files", "--json"]
    listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert {"frost", "mnist-test", "efficientnet-lite0"} <= {entry["name"] for entry in json.loads(listed)}


def test_ls_datasets() -> None:
    code, out, _ = run("ls", "datasets")
    assert code == 0
    assert "mnist-test " in out
    assert "imagenet-c:PATH " in out
    assert "frost" not in out.replace("fog", "")
    assert json.loads(run("ls", "datasets", "--json")[1])["kinds"]["folder"]
