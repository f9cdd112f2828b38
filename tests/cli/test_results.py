"""`beaufort results publish` and `verify`, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_run import RUN, folder  # noqa: F401  a fixture
from tests.commands import invoke, shows

pytestmark = pytest.mark.usefixtures("folder")


def test_publish_verify_and_repeat() -> None:
    invoke(*RUN)
    told = invoke("results", "publish", "kept", "-o", "bundle")
    assert "bundle: 100 predictions of 1 model" in told
    digest = told.rpartition("digest: ")[2].strip()
    told = invoke("results", "verify", "bundle")
    assert "0 problems" in told
    assert digest in told
    again = ["--model", "python:toymodule:toy", "--data", "toys"]
    told = invoke("results", "verify", "bundle", "--rerun", "60", "--seed", "3", *again)
    assert shows(told, "60 of 100", "seed 3", "0 wrong")
    found = json.loads(invoke("results", "verify", "bundle", "--rerun", "100", *again, "--json"))
    assert found["problems"] == []
    assert (found["rerun"]["sample"], found["rerun"]["at_most"]) == (100, 0.0)
    assert "toy" in invoke("report", "bundle", "--format", "md")
    path = Path("bundle/scores.csv")
    path.write_text(path.read_text().replace("0.", "0.0", 1))
    assert "scores.csv was changed" in invoke("results", "verify", "bundle", code=1)
    found = json.loads(invoke("results", "verify", "bundle", "--rerun", "9", *again, "--json", code=1))
    assert found["rerun"] is None


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["publish", "kept", "-o", "toys"], "new or empty"),
        (["publish", "kept", "-o", "new", "--only", "pixels"], "--only must be classes"),
        (["publish", "kpet", "-o", "new"], "kpet is not a store"),
        (["verify", "kept", "--rerun", "5"], "--rerun requires a bundle"),
        (["verify", "made", "--rerun", "5"], "--rerun requires --model and --data"),
        (["verify", "made", "--repair"], "--repair"),
        (["verify", "made", "--seed", "5"], "require --rerun"),
    ],
)
def test_what_cannot_be_done(words: list[str], fact: str) -> None:
    invoke(*RUN)
    if "made" in words:
        invoke("results", "publish", "kept", "-o", "made")
    assert fact in invoke("results", *words, code=2)
