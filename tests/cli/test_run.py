"""`beaufort run`, `query` and `store`, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from beaufort.store import FileStore
from beaufort.testing._contracts import example_image
from tests.commands import invoke, shows

SUITE = """
name: mine
version: 1
dataset: toys
scale: cifar
corruptions: [fog, contrast]
severities: [2, 5]
"""

MODEL = """
import numpy as np
from beaufort.models import as_model

def toy():
    weights = np.random.default_rng(3).normal(0, 1, (5, 32 * 32 * 3)).astype(np.float32)
    return as_model(
        lambda images: images.reshape(len(images), -1).astype(np.float32) @ weights.T / 3000,
        name="toy", classes=5, version="1",
    )
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    images = np.stack([example_image(32, 32, variant=i) for i in range(20)])
    (tmp_path / "toys").mkdir()
    np.save(tmp_path / "toys" / "images.npy", images)
    np.save(tmp_path / "toys" / "labels.npy", np.arange(20) % 5)
    (tmp_path / "mine.yaml").write_text(SUITE)
    (tmp_path / "toymodule.py").write_text(MODEL)
    return tmp_path


RUN = ["run", "--model", "python:toymodule:toy", "--suite", "mine.yaml", "--data", "toys", "--store", "kept"]


@pytest.mark.usefixtures("folder")
def test_the_whole_way() -> None:
    output = invoke(*RUN, "--dry-run")
    assert shows(
        output, "1 model", "5 conditions", "20 images", "5 cells", "0 of them stored", "100 predictions"
    )
    assert shows(invoke(*RUN, "--config", "first=10"), "mine@1", "toys", "10 images", "5 conditions")
    found = json.loads(invoke(*RUN, "--json"))
    assert [result["images"] for result in found["results"]] == [20] * 5
    assert shows(invoke(*RUN), "20 images", "5 conditions", "5 of them stored")
    listed = json.loads(invoke("results", "query", "--store", "kept", "--json"))
    assert [row["condition"] for row in listed] == [
        "toys",
        "toys/contrast@2",
        "toys/contrast@5",
        "toys/fog@2",
        "toys/fog@5",
    ]
    reply = json.loads(
        invoke("results", "query", "select count(*) as n from predictions", "--store", "kept", "--json")
    )
    assert reply == [{"n": 100}]
    assert "0 problems" in invoke("results", "verify", "kept")
    invoke("results", "query", "--store", "kept", "--output", "cells.csv")
    assert len(Path("cells.csv").read_text().splitlines()) == 6
    sql = "select id, top from predictions where condition = 'toys'"
    invoke("results", "query", sql, "--store", "kept", "--output", "rows.json")
    assert len(json.loads(Path("rows.json").read_text())) == 20


def test_damage(folder: Path) -> None:
    invoke(*RUN)
    path = folder / "kept" / FileStore("kept").pieces()[2].path
    path.write_bytes(path.read_bytes()[:-20])
    assert "is damaged" in invoke("results", "verify", "kept", code=1)
    found = json.loads(invoke(*RUN, "--json"))
    assert [result["reused"] for result in found["results"]].count(False) == 1
    assert "0 problems" in invoke("results", "verify", "kept")


@pytest.mark.usefixtures("folder")
def test_merge_and_repair() -> None:
    invoke(*RUN, "--config", "first=10")
    invoke(*[*RUN[:-1], "other"])
    assert "5 files copied" in invoke("results", "merge", "kept", "other")
    assert "5 files, 0 problems" in invoke("results", "verify", "kept")  # put together already
    found = FileStore("kept")
    for cell in found.cells().values():
        found.write(cell, 0, found.read(cell).drop_columns(["place"]).slice(0, 10))
    assert "10 files, 5 problems" in invoke("results", "verify", "kept", code=1)
    assert "5 files moved to quarantine" in invoke("results", "verify", "kept", "--repair")
    assert "0 files moved to quarantine" in invoke("results", "verify", "kept", "--repair")
    assert len(list(Path("kept/quarantine").rglob("*.parquet"))) == 5
    assert "quarantine emptied" in invoke("results", "verify", "kept", "--delete")
    assert not list(Path("kept/quarantine").rglob("*.parquet"))
    assert [row["images"] for row in json.loads(invoke("results", "query", "--store", "kept", "--json"))] == [
        20
    ] * 5


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([*RUN[:3], "--suite", "imagnet-c", "--data", "toys"], "imagenet-c"),
        ([*RUN, "--config", "batch_size=many"], "batch_size must be a positive integer"),
        ([*RUN, "--config", "batch_size=0", "--dry-run"], "batch_size must be a positive integer"),
        (["run", "--model", "nosuch.onnx", "--suite", "mine.yaml", "--data", "toys"], "nosuch.onnx"),
        (["results", "query", "select 1", "--store", "kpet"], "kpet is not a store"),
        (["results", "query", "--store", "kpet"], "kpet is not a store"),
        (["results", "verify", "kpet"], "kpet is not a store"),
        (["results", "verify", "kpet", "--repair"], "kpet is not a store"),
        (["results", "merge", "kept", "kpet"], "kpet is not a store"),
        (["results", "merge", "toys", "kpet"], "kpet is not a store"),
        (["results", "query", "--store", "kpet", "--output", "cells.csv"], "kpet is not a store"),
        (["results", "query", "--store", "kept", "--output", "cells.xlsx"], ".parquet"),
    ],
)
def test_mistakes(arguments: list[str], says: str) -> None:
    assert says in invoke(*arguments, code=2)
