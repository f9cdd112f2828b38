"""`beaufort demo` as a new user runs it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beaufort._core.catalog import fetch
from beaufort._core.errors import AssetError, UnknownNameError
from beaufort.cli._app import app
from beaufort.data import load_dataset
from beaufort.metrics import published_table
from beaufort.results import evaluate
from beaufort.studies import demo
from beaufort.studies.demo import DEMOS, run_demo


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def need(data: str) -> None:
    try:
        load_dataset(data)
        for i, kind in enumerate(["png", "png", "png", "jpg", "jpg"], start=1):
            fetch(f"frost/frost{i}.{kind}")
    except AssetError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("images", [1000, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_digits(images: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("mnist-test")
    if images < 10_000:
        monkeypatch.setattr(demo, "evaluate", partial(evaluate, limit=images))
    folder = tmp_path / "demo"
    facts = json.loads(invoke("demo", "--output", str(folder), "--json"))
    rows = {row["name"]: row for row in facts["rows"]}
    assert len(rows) == 17
    assert rows["clean"]["value"] >= 0.99
    conv1 = published_table("mnist-c-figure3")["Conv1"]
    assert {name: rows[name]["printed"] for name in conv1} == dict(conv1)
    assert all(row["low"] < row["value"] < row["high"] for row in rows.values())
    assert rows["mean"]["printed"] == pytest.approx(0.9121, abs=5e-5)  # as the paper prints it
    assert facts["images"] == images
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Conv1" in page
    again = invoke("demo", "--output", str(folder))  # reuses the predictions and prints the table
    assert "canny_edges" in again
    assert "95 % interval" in again
    assert str(folder / "report.html") in again


def test_photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two photos, under every condition."""
    need(DEMOS["imagenet"].data)
    monkeypatch.setattr(demo, "evaluate", partial(evaluate, limit=2))
    text = invoke("demo", "imagenet", "--output", str(tmp_path / "demo"))
    assert "20 photos: a smoke test" in text
    assert "AlexNet" in text
    assert (tmp_path / "demo" / "report.html").is_file()


def test_an_unknown_demo_is_rejected() -> None:
    with pytest.raises(UnknownNameError, match="'cifar'"):
        run_demo("cifar")
