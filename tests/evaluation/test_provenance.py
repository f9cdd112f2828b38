"""Provenance of results: no programs are run, and no secrets are stored."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from beaufort.data import from_arrays
from beaufort.evaluation.provenance import checked_out, provenance
from beaufort.models import as_model
from beaufort.results import evaluate
from beaufort.store import FileStore
from beaufort.suites import Suite

GIT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=GIT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a").write_text("a")
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "first")
    return folder


def test_the_commit_is_read(repository: Path, tmp_path: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")[:12]
    (repository / "sub").mkdir()
    assert checked_out(repository) == checked_out(repository / "sub") == commit
    git(repository, "worktree", "add", "-q", str(tmp_path / "second"), "-b", "other")
    assert checked_out(tmp_path / "second") == commit
    git(repository, "pack-refs", "--all")
    assert checked_out(repository) == checked_out(tmp_path / "second") == commit
    git(repository, "checkout", "-q", "--detach")
    assert checked_out(repository) == commit


def test_no_repository_and_odd_ones(tmp_path: Path) -> None:
    assert checked_out(tmp_path) is None
    (tmp_path / ".git").mkdir()
    for head in (
        b"",
        b"ref: ../../../etc/passwd",
        b"ref: refs/heads/../../../x",
        b"\xff\0",
        b"ref: refs/heads/none",
    ):
        (tmp_path / ".git" / "HEAD").write_bytes(head)
        assert checked_out(tmp_path) is None
    (tmp_path / ".git" / "HEAD").unlink()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert checked_out(tmp_path) is None


def test_programs_of_a_repository_are_not_run(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(trap))
    git(repository, "config", "filter.x.clean", str(trap))
    (repository / ".gitattributes").write_text("* filter=x\n")
    (repository / "a").write_text("changed")
    monkeypatch.chdir(repository)
    assert provenance()["git"]
    assert not (tmp_path / "sprung").exists()


def test_commands_keep_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "argv", ["beaufort", "run", "--model", "http://h/?key=SECRET", "--set", "token=NAME"]
    )
    assert provenance()["command"] == ["beaufort", "run", "--model", "http://h/", "--set", "token=…"]


def test_the_later_of_two_runs_is_the_last(tmp_path: Path) -> None:
    """This holds even if both started within one second: a report without a suite is about the last run."""
    images = np.zeros((3, 32, 32, 3), np.uint8)
    data = from_arrays("toys", images, [0, 1, 2])
    model = as_model(lambda images: np.ones((len(images), 3), np.float32), name="m", classes=3, version="1")
    names = [f"suite{i}" for i in range(6)]
    for name in names:
        suite = Suite(
            name=name, version=1, dataset="toys", corruptions=("fog",), severities=(1,), scale="cifar"
        )
        evaluate([model], suite, data, tmp_path)
    assert [run["suite"]["name"] for run in FileStore(tmp_path).runs()] == names
