"""The complete loop by its commands, with tiny models: plan, generate, select, review, export, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from beaufort.cli import app
from beaufort.data import load_dataset
from beaufort.mining.review import open_review
from beaufort.mining.review.server import only_server
from tests.commands import shows
from tests.mining.world import CATEGORIES, judge, make_cutouts

WORLD = "python:tests.mining.world"


def run(*words: Any) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def failing(*words: Any) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


def test_the_whole_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("categories.txt").write_text("\n".join(CATEGORIES) + "\n")
    make_cutouts(tmp_path / "cutouts")
    assert "60 images planned" in run("mine", "plan", "categories.txt", "plan.csv", "--each", "2")
    make = ("mine", "generate", "plan.csv", "images", "--generator", "composite:cutouts", "--set", "size=32")
    assert "60 images written" in run(*make)

    choose = ("mine", "select", "images", "--surrogates", f"{WORLD}:bold,{WORLD}:middle", "--others")
    chosen = run(*choose, f"{WORLD}:faint,{WORLD}:close", "--output", "selection", "--controls", "4")
    assert "images kept" in chosen

    run("review", "create", "world.review", "images/kept.csv", "--set", "votes=2")
    export = ("mine", "export", "images", "selection/selection.csv", "set")
    assert "open or tied" in failing(*export, "--review", "world.review")
    review = open_review(tmp_path / "world.review")
    judge(review, ("ann", "bob"), "leaf")
    review.close()
    assert "rejected" in run("review", "status", "world.review")
    assert "images written to set" in run(*export, "--review", "world.review")

    evaluated = run(
        *("mine", "evaluate", "set", "--model", f"{WORLD}:bold", "--model", f"{WORLD}:faint"),
        *("--output", "evaluation"),
    )
    assert "low by construction" in evaluated
    data = load_dataset("set")
    assert data.classes == CATEGORIES
    assert {data.classes[label] for label in data.labels} == {"kite"}  # people said no to every leaf
    for page in ("selection/index.html", "evaluation/index.html", "set/DATASHEET.md"):
        assert Path(page).stat().st_size > 1000


def test_invalid_steps_are_reported_and_lose_nothing(images: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in images.rglob("*") if path.is_file()}
    plan = images / "plan.csv"
    edited = tmp_path / "edited.csv"
    edited.write_text(plan.read_text().replace("A photo of a cup, sky", "A drawing of a cup, sky"))
    cutouts = images.parent.parent
    make_cutouts(tmp_path / "cutouts")
    generator = ("--generator", f"composite:{tmp_path / 'cutouts'}", "--set", "size=32")
    output = failing("mine", "generate", edited, images, *generator)
    assert "not in the plan" in output
    assert "restore the row" in output
    (tmp_path / "cutouts" / "cup" / "1.png").unlink()
    assert shows(failing("mine", "generate", plan, images, *generator), "no images", "category")
    select = ("mine", "select", images, "--surrogates", f"{WORLD}:bold", "--store", tmp_path / "store")
    labels = tmp_path / "labels.json"
    labels.write_text('{"cup": [0], "kite": [1]}')
    output = failing(*select, "--labels", labels, "--output", tmp_path / "out")
    assert shows(output, "1 class", "'leaf'")
    after = {path: path.read_bytes() for path in images.rglob("*") if path.is_file()}
    assert after == before
    assert cutouts.is_dir()


def test_two_servers_on_one_review(images: Path, tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="FastAPI is not installed; the extra review has it")
    (images / "list.csv").write_text(
        "file,category\n" + f"{next(images.rglob('*.png')).relative_to(images)},cup\n"
    )
    run("review", "create", tmp_path / "one.review", images / "list.csv")
    with only_server(tmp_path / "one.review"):
        assert "already being served" in failing("review", "serve", tmp_path / "one.review")
