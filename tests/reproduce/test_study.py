"""A rehearsal of the whole study, stopped and taken up, and what its files say."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort.errors import BeaufortError, OptionError, UnknownNameError
from beaufort.metrics import published_table
from beaufort.reproduce import reproduce
from beaufort.reproduce.answers import read_answers
from beaufort.reproduce.mnist_c.settings import MODELS, Settings
from beaufort.reproduce.mnist_c.work import plan


def sheet(path: Path) -> list[list[str]]:
    with path.open() as file:
        return list(csv.reader(file))


def test_everything_is_written(rehearsed: Path) -> None:
    names = {path.name for path in rehearsed.iterdir()}
    assert {"fig2.csv", "fig3.csv", "fig4.csv", "transfer.csv", "failures.csv", "selection.svg"} <= names
    assert {
        "README.md",
        "index.html",
        "pessimal_noise_matrix.npy",
        *(f"errors-{name}.png" for name in MODELS),
    } <= names
    page = (rehearsed / "index.html").read_text()
    assert "its numbers mean nothing" in page
    assert 'src="http' not in page
    assert np.load(rehearsed / "pessimal_noise_matrix.npy", allow_pickle=False).shape == (196, 196)


def test_tables_have_the_papers_columns_first(rehearsed: Path) -> None:
    for number, corner in (("2", "metric"), ("3", "corruption")):
        head = sheet(rehearsed / f"fig{number}.csv")[0]
        assert head[:7] == [corner, *published_table("mnist-c-figure3")]
        assert head[7:10] == ["Conv1 low", "Conv1 high", "Conv1 sd over seeds"]
    head, *rows = sheet(rehearsed / "fig4.csv")
    assert head[:5] == ["corruption", "clean", "all_but_one", "all", "single"]
    assert [row[0] for row in rows] == ["none", "stripe", "brightness", "translate", "mean_acc"]
    assert all(float(row[5]) <= float(row[1]) <= float(row[6]) for row in rows)


def test_tables_are_the_answers(rehearsed: Path) -> None:
    """A cell is the share of right answers, by counting."""
    both = [read_answers(rehearsed / "answers" / f"conv1-seed{seed}.npz") for seed in (0, 1)]
    share = np.mean([(one.predicted[one.conditions.index("stripe")] == one.labels).mean() for one in both])
    row = next(row for row in sheet(rehearsed / "fig3.csv") if row[0] == "stripe")
    assert float(row[1]) == pytest.approx(100 * share, abs=0.005)
    single = [read_answers(rehearsed / "tuned" / f"single-stripe-seed{seed}.npz") for seed in (0, 1)]
    share = np.mean([one.row("stripe").mean() for one in single])
    row = next(row for row in sheet(rehearsed / "fig4.csv") if row[0] == "stripe")
    assert float(row[4]) == pytest.approx(100 * share, abs=0.005)
    transfer = sheet(rehearsed / "transfer.csv")
    column = transfer[0].index("stripe")
    cell = next(row for row in transfer if row[0] == "stripe")[column]
    assert float(cell) == pytest.approx(100 * share, abs=0.005)


SUITE = """
name: few
version: 1
title: three of MNIST-C
dataset: mnist-test
scale: mnist
corruptions: [stripe, brightness, translate]
severities: published
clean: true
metrics: [mean_accuracy]
"""


def test_answers_are_those_of_an_evaluation(rehearsed: Path, digits: Path, tmp_path: Path) -> None:
    """The study shows a network the same pixels as `beaufort run` does."""
    from beaufort.evaluation import evaluate
    from beaufort.models import load_model

    model = load_model(f"trained:{rehearsed / 'models' / 'conv1-seed0'}", device="cpu")
    (tmp_path / "few.yaml").write_text(SUITE)
    suite, data = str(tmp_path / "few.yaml"), f"mnist:{digits}#test"
    found = evaluate([model], suite, data, tmp_path / "store", first=40)
    ours = read_answers(rehearsed / "answers" / "conv1-seed0.npz")
    theirs = {result.condition: result.accuracy for result in found.results}
    for name in ("stripe", "brightness", "translate"):
        (accuracy,) = (value for condition, value in theirs.items() if name in condition)
        assert accuracy == ours.row(name).mean()


def test_what_is_there_is_not_made_again(rehearsed: Path, digits: Path) -> None:
    told: list[str] = []
    again = reproduce(
        "mnist-c",
        rehearsed,
        data={"mnist": str(digits)},
        device="cpu",
        seeds=2,
        rehearse=True,
        tell=told.append,
    )
    assert (again.done, again.left) == (0, 0)
    assert not any("seed" in line for line in told)


def test_stopped_and_taken_up(digits: Path, tmp_path: Path) -> None:
    """However often it is stopped, the answers are those of one go."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    options: dict[str, Any] = {"data": {"mnist": str(digits)}, "device": "cpu", "seeds": 1, "rehearse": True}
    assert reproduce("mnist-c", whole, only=["pessimal"], **options).finished
    stopped = reproduce("mnist-c", parts, only=["pessimal"], stop_after_s=0, **options)
    assert not stopped.finished
    assert stopped.left == 2
    for _ in range(20):
        outcome = reproduce("mnist-c", parts, only=["pessimal"], stop_after_s=0.4, **options)
        if outcome.finished:
            break
    assert outcome.finished
    name = "answers/conv1-seed0.npz"
    one, other = read_answers(whole / name), read_answers(parts / name)
    np.testing.assert_array_equal(one.predicted, other.predicted)


def test_processes_make_the_same_answers(rehearsed: Path, digits: Path, tmp_path: Path) -> None:
    reproduce(
        "mnist-c",
        tmp_path,
        only=["pessimal"],
        data={"mnist": str(digits)},
        device="cpu",
        seeds=2,
        jobs=2,
        rehearse=True,
    )
    for seed in (0, 1):
        one = read_answers(rehearsed / "answers" / f"conv1-seed{seed}.npz")
        other = read_answers(tmp_path / "answers" / f"conv1-seed{seed}.npz")
        np.testing.assert_array_equal(one.predicted, other.predicted)


def test_the_real_thing_is_as_large_as_the_paper() -> None:
    first, second = plan(Settings(seeds=3))
    assert len(first) == 3
    tuned = [task for task in second if task.file.startswith("tuned/")]
    assert len(tuned) == 3 * (1 + 31 + 32)
    assert len([task for task in second if task.file.startswith("answers/")]) == 5 * 3
    assert len({task.file for task in (*first, *second)}) == len(first) + len(second)
    assert len(plan(Settings(seeds=1), ("fig4",))[1]) == 64


def test_what_cannot_be_is_said(rehearsed: Path, digits: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mnist-c'"):
        reproduce("mnistc", tmp_path)
    with pytest.raises(OptionError, match="only must name parts of mnist-c"):
        reproduce("mnist-c", tmp_path, only=["fig9"])
    with pytest.raises(OptionError, match="mnist=FOLDER, got 'cifar'"):
        reproduce("mnist-c", tmp_path, data={"cifar": "x"})
    with pytest.raises(OptionError, match="holds a rehearsal"):
        reproduce("mnist-c", rehearsed, data={"mnist": str(digits)}, only=["page"])
    with pytest.raises(BeaufortError, match="no answers of Conv1"):
        reproduce("mnist-c", tmp_path / "new", only=["page"], rehearse=True)


def test_differences_are_explained(rehearsed: Path, digits: Path) -> None:
    (rehearsed / "explanations.yaml").write_text("'fig3/*/Conv1': a rehearsal <b>\n")
    options: dict[str, Any] = {"data": {"mnist": str(digits)}, "device": "cpu", "rehearse": True}
    reproduce("mnist-c", rehearsed, only=["page"], **options)
    assert "a rehearsal &lt;b&gt;" in (rehearsed / "index.html").read_text()
    assert "| a rehearsal <b> |" in (rehearsed / "README.md").read_text()


LIGHT = """
import json, sys
absent = {"duckdb", "plotly", "pydantic", "ray", "rich", "typer"}
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from beaufort.reproduce import reproduce
data, output = {"mnist": sys.argv[1]}, sys.argv[2]
made = reproduce("mnist-c", output, only=["pessimal"], data=data, device="cpu", seeds=1, rehearse=True)
print(json.dumps(vars(made)))
"""


def test_it_needs_little(digits: Path, tmp_path: Path) -> None:
    """A machine with a GPU often has torch and not much else."""
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, str(digits), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"done": 2, "there": 0, "left": 0}
    assert (tmp_path / "fig3.csv").is_file()


def test_the_command(rehearsed: Path, digits: Path) -> None:
    from typer.testing import CliRunner

    from beaufort.cli import app

    command = [
        "reproduce",
        "mnist-c",
        "--rehearse",
        "--seeds",
        "2",
        "--device",
        "cpu",
        "--data",
        f"mnist={digits}",
    ]
    done = CliRunner().invoke(app, [*command, "--output", str(rehearsed), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["finished"]
    assert CliRunner().invoke(app, ["reproduce", "mnist-c", "--data", "nowhere"]).exit_code == 2
