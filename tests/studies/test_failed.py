"""Training runs without sign of learning are logged when they end, and listed on the pages of every study."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from beaufort.studies import StudyTask, run_tasks
from beaufort.studies.failed_runs import task_result
from beaufort.studies.predictions import read_predictions, write_predictions
from beaufort.training import failure
from tests.commands import shows
from tests.studies.rehearsal import Rehearsal
from tests.studies.test_studies import of_each, rehearsal

__all__ = ["rehearsal"]  # a fixture

STUCK = {"losses": [2.31, 2.3012], "constant_loss": 2.301}


def facts_of(rehearsal: Rehearsal) -> list[dict[str, Any]]:
    """Return the facts of all training runs, from their files."""
    if rehearsal.study == "mined-digits":
        return [json.loads(path.read_text()) for path in (rehearsal.folder / "models").glob("*.json")]
    folders = ("predictions", "tuned", "cifar")
    paths = [path for name in folders for path in (rehearsal.folder / name).glob("*.npz")]
    every = [(path, read_predictions(path).facts) for path in paths]
    if rehearsal.study == "imagenet-c-enhancements":  # some arms test what another one trained
        every = [one for one in every if one[0].name.startswith(f"{one[1]['recipe']['name']}-seed")]
    return [facts for _, facts in every]


@of_each()
def test_a_study_lists_them(rehearsal: Rehearsal) -> None:
    every = facts_of(rehearsal)
    assert len(every) > 5
    assert all(facts["losses"] for facts in every)
    failed = [output for facts in every if (output := failure(facts))]
    readme = (rehearsal.folder / "README.md").read_text()
    assert sorted(re.findall(r"\| (its last loss is [^|]+) \|", readme)) == sorted(failed)
    assert ("## Training runs without sign of learning" in readme) == bool(failed)
    if (rehearsal.folder / "index.html").is_file():
        checked = sum(facts["constant_loss"] is not None for facts in every)
        assert shows(readme, f"{len(failed)} of {checked}", "runs")
        page = (rehearsal.folder / "index.html").read_text()
        assert len(re.findall("its last loss is", page)) == len(failed)


@pytest.mark.xdist_group("mnist-c")
def test_older_predictions_are_checked(mnist_c: Rehearsal, tmp_path: Path) -> None:
    """A file from before the check has losses, but not the loss of a constant prediction."""
    shutil.copytree(mnist_c.folder / "predictions", tmp_path / "predictions")
    for seed, losses in ((0, STUCK["losses"]), (1, [2.3, 0.2])):
        path = tmp_path / "predictions" / f"conv3-pgd-seed{seed}.npz"
        stored = read_predictions(path)
        facts = {**stored.facts, "losses": losses}
        del facts["constant_loss"]
        write_predictions(path, replace(stored, facts=facts))
    mnist_c.again(tmp_path, only=["page"])
    readme = (tmp_path / "README.md").read_text()
    message = "its last loss is 2.3012; a constant prediction has 2.3026"
    inside = "fig2 and fig3, Conv3 (PGD), and conclusions about it; errors-conv3-pgd.png"
    assert f"| Conv3 (PGD) | 0 | {message} | {inside} |" in readme
    assert "| Conv3 (PGD) | 1 |" not in readme
    assert shows(readme, "does not show", "ABS")


def stuck(folder: Path, deadline: float | None) -> bool | str:
    (folder / "made").write_bytes(b"")
    return task_result(STUCK)


def test_command_reports_the_end_of_a_training_run(tmp_path: Path) -> None:
    messages: list[str] = []
    task = StudyTask("Conv3, seed 0", "made", "tests.studies.test_failed:stuck")
    assert run_tasks([[task]], tmp_path, log=messages.append).done == 1
    assert re.fullmatch(
        r"Conv3, seed 0: \d+\.\d s; no sign that the network learned: .*2\.3012.*2\.3010",
        messages[0],
    )
    assert task_result({"losses": [0.1], "constant_loss": 2.301}) is True
