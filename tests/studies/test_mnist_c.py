"""The files of the study of MNIST-C."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from beaufort.evaluation import RunOptions
from beaufort.metrics import published_table
from beaufort.studies import StudySettings
from beaufort.studies.mnist_c import MODELS, plan, ratios_section
from beaufort.studies.paper_tables import Measured, ReproducedTable
from beaufort.studies.predictions import read_predictions
from tests.studies.rehearsal import Rehearsal

pytestmark = pytest.mark.xdist_group("mnist-c")


def sheet(path: Path) -> list[list[str]]:
    with path.open() as file:
        return list(csv.reader(file))


def test_everything_is_written(mnist_c: Rehearsal) -> None:
    names = {path.name for path in mnist_c.folder.iterdir()}
    assert {"fig2.csv", "fig3.csv", "fig4.csv", "transfer.csv", "failures.csv", "selection.svg"} <= names
    assert {
        "README.md",
        "index.html",
        "pessimal_noise_matrix.npy",
        *(f"errors-{name}.png" for name in MODELS),
    } <= names
    assert np.load(mnist_c.folder / "pessimal_noise_matrix.npy", allow_pickle=False).shape == (196, 196)


def test_tables_have_the_papers_columns_first(mnist_c: Rehearsal) -> None:
    for number, corner in (("2", "metric"), ("3", "corruption")):
        head = sheet(mnist_c.folder / f"fig{number}.csv")[0]
        assert head[:7] == [corner, *published_table("mnist-c-figure3")]
        assert head[7:10] == ["Conv1 low", "Conv1 high", "Conv1 sd over seeds"]
    head, *rows = sheet(mnist_c.folder / "fig4.csv")
    assert head[:5] == ["corruption", "clean", "all_but_one", "all", "single"]
    assert [row[0] for row in rows] == ["none", "stripe", "brightness", "translate", "mean_acc"]
    assert all(float(row[5]) <= float(row[1]) <= float(row[6]) for row in rows)


def test_tables_count_the_predictions(mnist_c: Rehearsal) -> None:
    """A cell is the fraction of correct predictions."""
    both = [read_predictions(mnist_c.folder / "predictions" / f"conv1-seed{seed}.npz") for seed in (0, 1)]
    fraction = np.mean([(one.predicted[one.conditions.index("stripe")] == one.labels).mean() for one in both])
    row = next(row for row in sheet(mnist_c.folder / "fig3.csv") if row[0] == "stripe")
    assert float(row[1]) == pytest.approx(100 * fraction, abs=0.005)
    single = [read_predictions(mnist_c.folder / "tuned" / f"single-stripe-seed{seed}.npz") for seed in (0, 1)]
    fraction = np.mean([one.row("stripe").mean() for one in single])
    row = next(row for row in sheet(mnist_c.folder / "fig4.csv") if row[0] == "stripe")
    assert float(row[4]) == pytest.approx(100 * fraction, abs=0.005)
    transfer = sheet(mnist_c.folder / "transfer.csv")
    column = transfer[0].index("stripe")
    cell = next(row for row in transfer if row[0] == "stripe")[column]
    assert float(cell) == pytest.approx(100 * fraction, abs=0.005)


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


def test_predictions_are_those_of_an_evaluation(mnist_c: Rehearsal, tmp_path: Path) -> None:
    """The study evaluates a network on the same pixels as `beaufort run`."""
    from beaufort.models import load_model
    from beaufort.results import evaluate

    model = load_model(f"trained:{mnist_c.folder / 'models' / 'conv1-seed0'}", device="cpu")
    (tmp_path / "few.yaml").write_text(SUITE)
    suite, data = str(tmp_path / "few.yaml"), f"mnist:{mnist_c.data['mnist']}#test"
    found = evaluate([model], suite, data, tmp_path / "store", options=RunOptions(first=40))
    ours = read_predictions(mnist_c.folder / "predictions" / "conv1-seed0.npz")
    theirs = {result.condition: result.accuracy for result in found.results}
    for name in ("stripe", "brightness", "translate"):
        (accuracy,) = (value for condition, value in theirs.items() if name in condition)
        assert accuracy == ours.row(name).mean()


def test_the_real_thing_is_as_large_as_the_paper() -> None:
    def tasks(seeds: int, *only: str) -> list[str]:
        settings = StudySettings(study="mnist-c", seeds=seeds)
        return [task.file for phase in plan(settings, only, print) for task in phase]

    files = tasks(3)
    assert len(set(files)) == len(files)
    assert sum(file.startswith("tuned/") for file in files) == 3 * (1 + 31 + 32)
    assert sum(file.startswith("predictions/") for file in files) == 6 * 3
    assert files[-1] == "pessimal/seed0.npz"
    assert len(tasks(1, "fig4")) == 64 + 2  # Conv1 is trained before it is evaluated and tuned


def test_differences_are_explained(mnist_c: Rehearsal) -> None:
    (mnist_c.folder / "explanations.yaml").write_text("'fig3/*/Conv1': a rehearsal <b>\n")
    mnist_c.again(only=["page"])
    assert "a rehearsal &lt;b&gt;" in (mnist_c.folder / "index.html").read_text()
    assert "| a rehearsal <b> |" in (mnist_c.folder / "README.md").read_text()


def test_the_published_ratios_follow_from_the_published_table() -> None:
    results = Path(__file__).parents[2] / "results" / "mnist-c"
    paper = published_table("mnist-c-figure3")
    rows = {
        row["corruption"]: {
            name: Measured(
                float(row[name]) / 100,
                0,
                0,
                None,
                0,
                0,
                paper[name][row["corruption"].replace("none", "clean")],
            )
            for name in paper
        }
        for row in csv.DictReader((results / "fig3.csv").read_text().splitlines())
    }
    section = ratios_section(ReproducedTable("fig3", "", "corruption", tuple(paper), rows))
    page = (results / "README.md").read_text(encoding="utf-8")
    assert section.text in page
    assert all(f"| {' | '.join(map(str, row))} |" in page for row in section.rows)
