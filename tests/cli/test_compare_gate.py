"""`beaufort compare` and `gate` as a person types them, and the workflow that the documentation shows."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from beaufort.store import FileStore
from tests.commands import invoke, shows

ROOT = Path(__file__).resolve().parents[2]
Fill = Callable[..., FileStore]


def test_compare(fill: Fill) -> None:
    store = fill("s", {"good": 0.9, "bad": 0.6, "twin": 0.6}).location
    text = invoke("compare", "good", "bad", "twin", "--store", store)
    lines = text.splitlines()
    assert shows(lines[0], "mnist-c@1", "digits", "300 images", "Conv1")
    assert re.search(r"^1 +good .* a$", text, re.M)
    assert re.search(r"^2–3 +(bad|twin) .* b$", text, re.M)
    assert re.search(r"^good has \d+\.\d\d points higher mean accuracy than bad \[", text, re.M)
    assert "not significant" in text
    assert shows(text, "significantly", "16 of 16 conditions")
    every = invoke("compare", "bad", "twin", "--store", store, "--all")
    assert "digits/canny_edges" in every
    facts = json.loads(invoke("compare", "good", f"{store}::bad", "--store", store, "--json"))
    assert [place["name"] for place in facts["ranking"]] == ["good", "bad"]
    assert len(facts["conditions"][0]["tests"]) == 16


def test_compare_takes_stores(fill: Fill) -> None:
    new, old = fill("new", {"net": 0.9}).location, fill("old", {"net": 0.7}).location
    text = invoke("compare", new, old)
    assert "net (new)" in text
    assert shows(invoke("compare", new, code=2), "two", "net")


def test_a_model_of_the_store_is_the_baseline_of_every_command(fill: Fill) -> None:
    """`compare` and `gate` knew the models alone that they compare, and `--baseline` of no other."""
    store = fill("s", {"good": 0.9, "bad": 0.6, "old": 0.5}).location
    both = ["--store", store, "--baseline", "old"]
    compared = json.loads(invoke("compare", "good", "bad", *both, "--json"))
    assert compared["baseline"] == "old"
    assert [place["name"] for place in compared["ranking"]] == ["good", "bad"]
    gated = json.loads(invoke("gate", "good", "--reference", "bad", *both, "--metric", "mce", "--json"))
    models = json.loads(invoke("report", store, "--baseline", "old", "--format", "json"))["models"]
    reported = {one["config"]["model"]: one["results"]["mnist-c"]["mce,none"] for one in models}
    assert gated["model"]["value"] == pytest.approx(reported["good"], abs=1e-12)
    found = {name: values["mce"]["value"] for name, values in compared["metrics"].items()}
    assert found == pytest.approx({name: reported[name] for name in ("good", "bad")}, abs=1e-12)


@pytest.mark.usefixtures("_digits")
def test_the_workflow_of_the_documentation_works(tmp_path: Path) -> None:
    """Its shell steps, in order: a push to main, then a pull request that breaks the model.

    The report is there whatever the gate says.
    """
    text = (ROOT / "docs" / "how-to" / "gate.md").read_text(encoding="utf-8")
    shown = re.search(r"```yaml\n(.*?)```", text, re.S)
    assert shown is not None
    workflow = yaml.safe_load(shown[1])
    steps = [step for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    model = ROOT / "src" / "beaufort" / "models" / "data" / "digits.onnx"
    shutil.copy(model, tmp_path / "model.onnx")
    assert _run(steps, "push", tmp_path) == {"Evaluate": 0, "Report": 0, "Keep as the reference": 0}
    assert (tmp_path / "report.html").stat().st_size > 10_000
    shutil.rmtree(tmp_path / "new")
    assert _run(steps, "pull_request", tmp_path) == {"Evaluate": 0, "Gate": 0, "Report": 0}
    shutil.rmtree(tmp_path / "new")
    (tmp_path / "report.html").unlink()
    (tmp_path / "model.onnx").write_bytes(_worse(model.read_bytes()))
    assert _run(steps, "pull_request", tmp_path) == {"Evaluate": 0, "Gate": 1, "Report": 0}
    assert (tmp_path / "report.html").is_file()
    assert "<failure" in (tmp_path / "gate.xml").read_text(encoding="utf-8")
    assert "Robustness gate: failed" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def _run(steps: list[dict[str, str]], event: str, folder: Path) -> dict[str, int]:
    """Exit codes of the steps that GitHub would run; the dataset is reduced to save time."""
    codes: dict[str, int] = {}
    for step in steps:
        when = step.get("if", f"github.event_name == '{event}'")
        wanted = re.fullmatch(r"github\.event_name == '(\w+)'", when)
        assert wanted or when == "always()"
        runs = when == "always()" or (wanted is not None and wanted[1] == event and not any(codes.values()))
        if step["name"] == "Install" or not runs:
            continue
        command = step["run"].replace("--limit 2000", "--limit 200")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")},
            check=False,
            timeout=900,
        )
        codes[step["name"]] = done.returncode
    return codes


def _worse(content: bytes) -> bytes:
    """The same network with the weights of its last layer blurred by noise."""
    import numpy as np
    import onnx

    network = onnx.load_from_string(content)
    last = [one for one in network.graph.initializer if len(one.dims) == 2][-1]
    values = onnx.numpy_helper.to_array(last)
    noise = np.random.default_rng(0).normal(0, 2 * values.std(), values.shape).astype(np.float32)
    last.CopyFrom(onnx.numpy_helper.from_array(values + noise, last.name))
    return bytes(network.SerializeToString())


@pytest.fixture
def _digits() -> None:
    from beaufort._core.errors import AssetError
    from beaufort.data import load_dataset

    try:
        load_dataset("mnist-test")
    except AssetError as error:
        pytest.skip(str(error))
