"""Workflows, the gate action, the container file, the lock file and the metadata of the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import beaufort
from beaufort._core.errors import AssetError
from beaufort.data import load_dataset
from benchmarks.__main__ import NAMES
from benchmarks.recording import compare

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DIGITS = ROOT / "src" / "beaufort" / "models" / "data" / "digits.onnx"


def call(*command: str | Path) -> str:
    if not (BIN / command[0]).exists():
        pytest.skip(f"{command[0]} has no package for this platform")
    done = subprocess.run(
        [str(BIN / command[0]), *map(str, command[1:])], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_workflows_follow_their_schema() -> None:
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert {path.stem for path in workflows} == {"ci", "docs", "nightly", "release"}
    call("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    call("check-jsonschema", "--builtin-schema", "vendor.github-actions", ROOT / "gate" / "action.yml")


def test_workflows_are_secure() -> None:
    call("zizmor", "--offline", "--no-progress", ".github", "gate")


def test_container_file_has_no_lint() -> None:
    call("hadolint", "Containerfile")


def test_workflows_run_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"run: make (\S+)", path.read_text(encoding="utf-8"))
        assert used
        assert targets.issuperset(used), path


def test_lock_file_covers_every_requirement() -> None:
    lines = (ROOT / "constraints-dev.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    extras = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *(one for group in extras.values() for one in group)]:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate():
            version = versions[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), text
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, version = line.split("==")
        assert versions[canonicalize_name(name)] == version


def test_extras_for_development_cover_all_others() -> None:
    extras = PROJECT["optional-dependencies"]
    every = {Requirement(one).name for name, group in extras.items() if name != "dev" for one in group}
    assert every <= {Requirement(one).name for one in extras["dev"]}


def test_ci_tests_every_declared_python() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    matrix = re.search(r"python: \[(.*)\]", text)
    assert matrix is not None
    tested = re.findall(r'"([\d.]+)"', matrix[1])
    declared = [one.rpartition(":: ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert tested == declared
    assert PROJECT["requires-python"] == f">={tested[0]}"


def test_every_benchmark_has_a_name() -> None:
    modules = {
        path.stem for path in (ROOT / "benchmarks").glob("*.py") if "def main() ->" in path.read_text()
    }
    assert {name.replace("-", "_") for name in NAMES} == modules - {"__main__"}


@pytest.mark.slow
def test_measurements_of_two_runs_are_compared(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "intervals",
        "speed",
        "--images",
        "500",
        "--resamples",
        "20",
    ]
    paths = tmp_path / "before.json", tmp_path / "after.json"
    subprocess.run([*command, "--json", paths[0]], cwd=ROOT, check=True, capture_output=True)
    shutil.copy(*paths)
    before = json.loads(paths[0].read_text(encoding="utf-8"))
    assert before["benchmark"] == "intervals"
    assert before["machine"]["cores"] == os.cpu_count()
    assert [one["name"] for one in before["measurements"]] == ["interval", "p-value", "resamples"]
    table = compare(*paths)
    assert "| resamples | " in table
    assert "Different" not in table
    after = json.loads(paths[1].read_text(encoding="utf-8"))
    after["machine"]["processor"], after["arguments"] = "another", ["speed"]
    paths[1].write_text(json.dumps(after), encoding="utf-8")
    table = compare(*paths)
    assert f"processor: {before['machine']['processor']} → another" in table
    assert "--images 500 --resamples 20 → intervals speed" in table


def test_the_citation_is_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == beaufort.__version__
    assert cited["license"] == PROJECT["license"]
    assert f"## {beaufort.__version__} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def gate(folder: Path, *, undecided: str = "fail") -> tuple[int, str]:
    """Run the script of the action; return its exit code and the outcome that it reports."""
    output = folder / "output.txt"
    output.write_text("")
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "GATE_MODEL": "model.onnx",
        "GATE_SUITE": "mnist-c",
        "GATE_DATA": "mnist-test",
        "GATE_LIMIT": "120",
        "GATE_MAX_DROP": "4",
        "GATE_UNDECIDED": undecided,
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    done = subprocess.run(
        ["bash", ROOT / "gate" / "gate.sh"], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert done.returncode in (0, 1, 3), done.stderr.decode()
    return done.returncode, output.read_text().strip().removeprefix("outcome=")


@pytest.mark.slow
def test_gate_action(tmp_path: Path) -> None:
    try:
        load_dataset("mnist-test")
    except AssetError as error:
        pytest.skip(str(error))
    shutil.copy(DIGITS, tmp_path / "model.onnx")
    assert gate(tmp_path) == (0, "no-reference")
    assert (tmp_path / "robustness.html").is_file()
    shutil.move(tmp_path / "robustness", tmp_path / "robustness-reference")
    assert gate(tmp_path) == (0, "passed")
    shutil.rmtree(tmp_path / "robustness")
    network = onnx.load(DIGITS)
    last = [one for one in network.graph.initializer if len(one.dims) == 2][-1]
    values = onnx.numpy_helper.to_array(last)
    noise = np.random.default_rng(0).normal(0, 2 * values.std(), values.shape).astype(np.float32)
    last.CopyFrom(onnx.numpy_helper.from_array(values + noise, last.name))
    onnx.save(network, tmp_path / "model.onnx")
    assert gate(tmp_path) == (1, "failed")
    assert "<failure" in (tmp_path / "robustness.xml").read_text(encoding="utf-8")
    assert (tmp_path / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_wheel_is_small_and_complete(tmp_path: Path) -> None:
    """Build it without a network; `make package` also installs it and tries it out."""
    call("python", "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, "-q")
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size <= 5_000_000
    shutil.unpack_archive(wheel, tmp_path / "unpacked", "zip")
    built = {
        path.relative_to(tmp_path / "unpacked").as_posix()
        for path in (tmp_path / "unpacked" / "beaufort").rglob("*")
        if path.is_file()
    }
    tracked = subprocess.run(
        ["git", "ls-files", "beaufort"], cwd=ROOT / "src", capture_output=True, text=True, check=True
    )
    assert built == set(tracked.stdout.split())
