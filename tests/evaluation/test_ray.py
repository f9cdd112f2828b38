"""Runs on a Ray cluster: the same store as that of a local run, whatever is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort.errors import OptionError
from beaufort.evaluation import RayOptions, evaluate, schedule
from beaufort.models import Model, as_model
from beaufort.store import FileStore
from tests.evaluation.test_evaluate import SUITE, dataset, rows

ray = pytest.importorskip("ray", reason="Ray is not installed")

MODELS = [
    "python:tests.evaluation.test_evaluate:first_toy",
    "python:tests.evaluation.test_evaluate:other_toy",
]
IMAGES = 96
"""In blocks of 16."""
WORKERS = RayOptions(address="auto", workers=2, cpus=1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two nodes on this machine."""
    from ray.cluster_utils import Cluster

    root = Path(__file__).parents[2]
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), before]))
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    made.add_node(num_cpus=2)
    ray.init(address=made.address, log_to_driver=False, logging_level="error")
    yield made
    ray.shutdown()
    made.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "BLOCK", 16)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    evaluate(MODELS, SUITE, dataset(IMAGES), folder, batch_size=8)
    return folder


def test_the_store_is_that_of_a_local_run(cluster: Any, undisturbed: Path, tmp_path: Path) -> None:
    found = evaluate(MODELS, SUITE, dataset(IMAGES), tmp_path, batch_size=8, ray=WORKERS)
    local = evaluate(MODELS, SUITE, dataset(IMAGES), undisturbed, batch_size=8)
    assert not found.failures
    assert [(r.model, r.condition, r.correct) for r in found.results] == [
        (r.model, r.condition, r.correct) for r in local.results
    ]
    store = FileStore(tmp_path)
    assert rows(store) == rows(FileStore(undisturbed))
    assert not store.verify()
    assert len(store.pieces()) == len(found.results)
    again = evaluate(MODELS, SUITE, dataset(IMAGES), tmp_path, batch_size=8, ray=WORKERS)
    assert all(result.reused for result in again.results)


def test_a_worker_is_killed(cluster: Any, undisturbed: Path, tmp_path: Path) -> None:
    """All workers are killed when the first answers come in; others do what they had."""
    killed: list[int] = []

    def kill(progress: object) -> None:
        if not killed:
            killed.extend(_actors(cluster))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    evaluate(MODELS, SUITE, dataset(IMAGES), tmp_path, batch_size=8, ray=WORKERS, progress=kill)
    assert killed
    assert rows(FileStore(tmp_path)) == rows(FileStore(undisturbed))


def test_a_node_is_killed(cluster: Any, undisturbed: Path, tmp_path: Path) -> None:
    extra = cluster.add_node(num_cpus=2)
    gone: list[bool] = []

    def kill(progress: object) -> None:
        if not gone:
            gone.append(True)
            cluster.remove_node(extra, allow_graceful=False)

    options = RayOptions(address="auto", workers=5, cpus=1)
    evaluate(MODELS, SUITE, dataset(IMAGES), tmp_path, batch_size=8, ray=options, progress=kill)
    assert gone
    assert rows(FileStore(tmp_path)) == rows(FileStore(undisturbed))


DRIVER = """
import sys
from beaufort.evaluation import RayOptions, evaluate, schedule
schedule.BLOCK = 16
from tests.evaluation import test_ray as t
def told(progress):
    print(progress.done, flush=True)
evaluate(t.MODELS, t.SUITE, t.dataset(t.IMAGES), sys.argv[1], batch_size=8, progress=told,
         ray=RayOptions(address=sys.argv[2], workers=2))
"""


def test_the_driver_is_killed(cluster: Any, undisturbed: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRIVER, str(tmp_path / "store"), cluster.address]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert driver.stdout is not None
    assert driver.stdout.readline()
    driver.kill()
    driver.wait()
    driver.stdout.close()
    found = evaluate(MODELS, SUITE, dataset(IMAGES), tmp_path / "store", batch_size=8, ray=WORKERS)
    assert not found.failures
    assert rows(FileStore(tmp_path / "store")) == rows(FileStore(undisturbed))


def deadly() -> Model:
    """Ends its process when it sees one picture of the data set."""
    end = dataset(IMAGES)[20].image.tobytes()

    def answer(images: np.ndarray) -> np.ndarray:
        if any(image.tobytes() == end for image in images):
            os.kill(os.getpid(), signal.SIGKILL)
        return np.tile(np.arange(7.0), (len(images), 1))

    return as_model(answer, name="deadly", classes=7, version="1")


def test_a_model_that_ends_its_process(cluster: Any, tmp_path: Path) -> None:
    """The block that does it is retried and told, the rest is done."""
    models = [*MODELS[:1], "python:tests.evaluation.test_ray:deadly"]
    found = evaluate(models, SUITE, dataset(IMAGES), tmp_path, batch_size=8, ray=WORKERS)
    (failure,) = found.failures
    assert failure.startswith("deadly under toys, images 16 to 31: every worker that tried ended")
    names = [result.model for result in found.results]
    assert names.count("toy") == len(SUITE.conditions("toys"))
    assert names.count("deadly") == len(SUITE.conditions("toys")) - 1


def test_what_nodes_lack_is_told_before_anything_starts(cluster: Any, tmp_path: Path) -> None:
    data, store = dataset(IMAGES), tmp_path / "store"
    with pytest.raises(OptionError, match=r"a worker needs 1 CPUs and 4 GPUs, and no node of the cluster"):
        evaluate(MODELS, SUITE, data, store, ray=RayOptions(address="auto", gpus=4))
    with pytest.raises(OptionError, match="workers must be"):
        RayOptions(workers=0)
    with pytest.raises(OptionError, match="only one of processes and ray"):
        evaluate(MODELS, SUITE, data, store, processes=2, ray=WORKERS)


def _actors(cluster: Any) -> list[int]:
    """The processes of workers, which are children of the nodes' raylets."""
    raylets = {info.process.pid for node in cluster.list_all_nodes() for info in node.all_processes["raylet"]}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in raylets and b"_Worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found
