"""Runs on a Ray cluster: the same store as that of a local run, whatever is killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import beaufort
from beaufort._core.errors import OptionError
from beaufort.cli._app import app
from beaufort.evaluation import RayOptions, RunOptions, ray_engine, task_queue, tasks
from beaufort.results import evaluate
from beaufort.store import FileStore, Kind
from tests.commands import shows
from tests.evaluation import cluster_models
from tests.evaluation.test_evaluate import SUITE, rows

# One cluster for all tests, not one in each process.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed; the extra dev has it"),
]

ROOT = Path(__file__).parents[2]
MODELS = [
    "python:tests.evaluation.test_evaluate:first_toy",
    "python:tests.evaluation.test_evaluate:other_toy",
]
BLOCK = 16
"""Images, so that there are several blocks; processes learn it by `--import small_blocks`."""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    np.save(folder / "weights.npy", np.eye(cluster_models.CLASSES))
    return folder


@pytest.fixture(scope="module")
def cluster(weights: Path) -> Iterator[Any]:
    """Two nodes on this machine."""
    import ray
    from ray import cluster_utils

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
        patch.setenv("TOY_WEIGHTS", str(weights))
        patch.setenv("RAY_prestart_worker_first_driver", "0")  # processes that nobody may ever use
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")  # which ends workers if others fill the memory
        kinds: Any = cluster_utils  # not typed
        made = kinds.Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        made.add_node(num_cpus=2)
        ray.init(address=made.address, log_to_driver=False, logging_level="error")
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with data, a suite, and what makes blocks small."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toys").mkdir()
    np.save(tmp_path / "toys" / "images.npy", cluster_models.make_images())
    np.save(tmp_path / "toys" / "labels.npy", cluster_models.dataset().labels)
    (tmp_path / "small.yaml").write_text(
        "{name: small, version: 1, dataset: toys, scale: cifar, corruptions: [fog, contrast], "
        "severities: [1, 4]}"
    )
    (tmp_path / "small_blocks.py").write_text(
        f"from beaufort.evaluation import tasks\ntasks.BLOCK = {BLOCK}\n"
    )
    return tmp_path


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "BLOCK", BLOCK)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The rows of a local run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    evaluate(MODELS, SUITE, cluster_models.dataset(), folder, options=RunOptions(batch_size=8))
    return rows(FileStore(folder))


def options(workers: int | None = 2) -> RayOptions:
    return RayOptions(address="auto", workers=workers)


@pytest.mark.parametrize("workers", [1, pytest.param(None, marks=pytest.mark.nightly)])
def test_the_store_is_that_of_a_local_run(
    cluster: Any, undisturbed: Any, tmp_path: Path, workers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one worker, or as many as leave one of the four processors free; two are killed below."""
    hired = []
    hire = ray_engine.RayEngine._hire

    def counted(engine: ray_engine.RayEngine) -> None:
        hired.append(engine)
        hire(engine)

    monkeypatch.setattr(ray_engine.RayEngine, "_hire", counted)
    data = cluster_models.dataset()
    models = MODELS if workers == 1 else MODELS[::-1]
    found = evaluate(models, SUITE, data, tmp_path, engine=options(workers), options=RunOptions(batch_size=8))
    assert len(hired) == (workers or 3)
    assert not found.failures
    assert sum(speed.predictions for speed in found.nodes.values()) == len(found.results) * len(data)
    assert all(0 < speed.busy <= 1 and speed.rate > 0 for speed in found.nodes.values() if speed.predictions)
    store = FileStore(tmp_path)
    assert rows(store) == undisturbed
    assert not store.verify()
    assert len(store.pieces()) == len(found.results), "the pieces of each cell are put together"
    again = evaluate(models, SUITE, data, tmp_path, engine=options(workers), options=RunOptions(batch_size=8))
    assert all(result.reused for result in again.results)
    assert [(r.model, r.condition, r.correct) for r in again.results] == [
        (r.model, r.condition, r.correct) for r in found.results
    ]


def test_workers_are_killed(cluster: Any, undisturbed: Any, tmp_path: Path) -> None:
    """Kill all workers at the first predictions; others repeat their tasks, and no progress is lost."""
    killed: list[int] = []
    messages: list[int] = []

    def kill(progress: Any) -> None:
        messages.append(progress.done)
        if not killed:
            killed.extend(_actors(cluster))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    data = cluster_models.dataset()
    evaluate(MODELS, SUITE, data, tmp_path, engine=options(), options=RunOptions(batch_size=8), progress=kill)
    assert killed
    assert rows(FileStore(tmp_path)) == undisturbed
    assert max(messages) == messages[-1] == sum(len(cell) for cell in undisturbed.values())


@pytest.mark.nightly
def test_a_node_is_killed(cluster: Any, undisturbed: Any, tmp_path: Path) -> None:
    """The one that has all workers, raylet and all; then another one comes."""
    nodes = [cluster.add_node(num_cpus=2, num_gpus=2)]

    def kill(progress: object) -> None:
        if len(nodes) == 1:
            cluster.remove_node(nodes[0], allow_graceful=False)
            nodes.append(cluster.add_node(num_cpus=2, num_gpus=1))

    data = cluster_models.dataset()
    there = RayOptions(address="auto", workers=2, gpus=0.5)
    found = evaluate(
        MODELS, SUITE, data, tmp_path, engine=there, options=RunOptions(batch_size=8), progress=kill
    )
    cluster.remove_node(nodes[1])
    assert len(found.nodes) == 2
    assert rows(FileStore(tmp_path)) == undisturbed


def test_a_model_that_ends_its_process(cluster: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block that does it is retried and told, the rest is done."""
    monkeypatch.setattr(task_queue, "TRIES", 1)  # each takes a new process
    deadly = "python:tests.evaluation.cluster_models:deadly"
    command = [
        *("run", "--engine", "ray:workers=2", "--config", "batch_size=8", "--suite", "small.yaml"),
        *("--data", "toys", "--store", "kept", "--model", MODELS[0], "--model", deadly),
    ]
    result = CliRunner().invoke(app, command)  # on the cluster that this process is connected to
    assert result.exit_code == 1, result.output
    assert shows(result.output, "failed", "deadly", "toys", "images 16 to 31")
    assert "1 part failed" in result.output
    assert shows(result.output, "small@1", "96 images", "5 conditions"), "the numbers of the other model"
    store = FileStore(folder / "kept")
    predicted = {str(cell.model["name"]): 0 for cell in store.cells().values()}
    for cell in store.cells().values():
        predicted[str(cell.model["name"])] += len(store.read(cell))
    assert predicted == {"toy": 5 * 96, "deadly": 5 * 96 - BLOCK}


@pytest.mark.nightly
def test_the_command_is_interrupted_killed_and_given_again(cluster: Any, weights: Path, folder: Path) -> None:
    """Each time workers end, what is stored stays, and the same command does the rest.

    The model is held back, twice, with no condition complete: its pieces would be put together then.
    """
    model = "python:tests.evaluation.cluster_models:patient"
    command = [
        *(sys.executable, "-m", "beaufort", "--import", "small_blocks", "run"),
        *(
            "--engine",
            f"ray:address={cluster.address},workers=1",
            "--config",
            "batch_size=4",
            "--suite",
            "small.yaml",
        ),
        *("--data", "toys", "--store", "kept", "--model", model),
    ]
    pieces: set[Path] = set()
    (weights / "hold").touch()
    for sent, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as driver:
            while driver.poll() is None and pieces.issuperset((folder / "kept").rglob("*.parquet")):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    driver.wait(0.05)
            driver.send_signal(sent)
            assert driver.stderr is not None
            output = driver.stderr.read()
        assert driver.returncode == code, output
        assert "Traceback" not in output
        if sent == signal.SIGINT:
            assert output.endswith("finished work is kept, run the same command to continue\n")
        before, pieces = pieces, set((folder / "kept").rglob("*.parquet"))
        assert before < pieces
    (weights / "hold").unlink()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "workers busy" in ended.stdout
    evaluate([model], SUITE, "toys", "local", options=RunOptions(batch_size=4))
    store = FileStore("kept")
    assert rows(store) == rows(FileStore("local"))
    assert {finding.kind for finding in store.collect()} <= {Kind.draft}  # of workers that ended in a write
    assert not store.verify()


@pytest.mark.nightly
def test_missing_packages_on_nodes_are_reported_at_the_start(
    cluster: Any, weights: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model and data that only some machines have, another version of Beaufort, a GPU that is not there."""
    monkeypatch.setenv("TOY_WEIGHTS", str(weights))
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    node = cluster.add_node(num_cpus=1, env_vars={"TOY_WEIGHTS": str(elsewhere)})
    filed = "python:tests.evaluation.cluster_models:of_a_file"
    try:
        with pytest.raises(OptionError, match="nodes of the cluster") as error:
            evaluate([filed], SUITE, "toys", "kept", engine=options())
        (line,) = str(error.value).splitlines()[1:]
        assert f"({node.node_id[:8]}): cannot load the model {filed!r}: " in line
        assert "weights.npy" in line
        np.save(elsewhere / "weights.npy", 2 * np.eye(cluster_models.CLASSES))
        with pytest.raises(OptionError, match=r"different weights \(digest "):
            evaluate([filed], SUITE, "toys", "kept", engine=options())
    finally:
        cluster.remove_node(node)
    assert not list((folder / "kept").rglob("*.parquet"))


def test_data_and_a_store_that_only_this_process_reaches(cluster: Any, folder: Path) -> None:
    """Through an open folder, which has a number in this process and another or none elsewhere."""
    here = os.open(folder, os.O_RDONLY)
    try:
        with pytest.raises(OptionError, match="nodes of the cluster") as error:
            evaluate(
                MODELS[:1],
                SUITE,
                f"/proc/self/fd/{here}/toys",
                f"/proc/self/fd/{here}/kept",
                engine=options(),
            )
    finally:
        os.close(here)
    lines = str(error.value).splitlines()[1:]
    assert len(lines) == 4, "the data and the store, on two nodes"
    data, store = lines[:2]
    assert re.match(r"node .* \(.{8}\): cannot read the image test/0 of toys: .*toys", data)
    assert re.search(
        r": the store /proc/self/fd/.*/kept is a different one|cannot read the store .*kept", store
    )


def test_another_version(cluster: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = beaufort.__version__
    monkeypatch.setattr(beaufort, "__version__", "99")
    text = rf"node .* \(.*\): has Beaufort {there}, but the run is started with 99"
    with pytest.raises(OptionError, match=text):
        evaluate(MODELS[:1], SUITE, "toys", "kept", engine=options())


def test_closed_port_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself takes a quarter of an hour to give up."""
    monkeypatch.setattr("ray.init", lambda **_: pytest.fail("Ray was asked"))
    with pytest.raises(OptionError, match=r"'127\.0\.0\.1:1': .*refused"):
        ray_engine._start(RayOptions(address="127.0.0.1:1"))
    with pytest.raises(OptionError, match="'localhost:65536'"):
        ray_engine._start(RayOptions(address="localhost:65536"))


def test_unavailable_resources_of_a_cluster(cluster: Any, folder: Path) -> None:
    with pytest.raises(OptionError, match=r"1 CPUs.*4 GPUs"):
        evaluate(MODELS, SUITE, "toys", "kept", engine=RayOptions(address="auto", gpus=4))
    with pytest.raises(OptionError, match="store"):
        evaluate(MODELS, SUITE, "toys", engine=options())


def _actors(cluster: Any) -> list[int]:
    """The processes of workers, which are children of the nodes' raylets."""
    raylets = {info.process.pid for node in cluster.list_all_nodes() for info in node.all_processes["raylet"]}
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in raylets and b"ray::Worker" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found
