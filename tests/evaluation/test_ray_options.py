"""Valid and invalid options of a run on Ray, and the memory of a worker; no cluster is started."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from beaufort._core.errors import MissingExtraError, OptionError
from beaufort.cli._app import app
from beaufort.cli._evaluation import _at
from beaufort.evaluation import NodeSpeed, Progress, RayOptions, RunOptions, plan, ray_worker, tasks
from beaufort.evaluation.ray_worker import MESSAGES, Payload, Report, Started, Worker, WorkerSetup
from beaufort.evaluation.runner import TaskRunner
from beaufort.evaluation.task_queue import Assignment
from beaufort.evaluation.tasks import BatchDone, StoredPredictions, Task, TaskPart
from beaufort.models import Model, as_model
from beaufort.results import evaluate
from beaufort.store import FileStore
from tests.evaluation.test_evaluate import SUITE, dataset, rows, toy


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, r"workers .*positive integer.* 0"),
        ({"cpus": 0}, r"cpus .*number.* above 0.* 0"),
        ({"cpus": 1.5}, "cpus must be an integer or a fraction below 1, got 1.5"),
        ({"gpus": -1}, r"gpus .*number.* 0.* -1"),
        ({"gpus": float("nan")}, r"gpus .*number.* 0.* nan"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RayOptions(**given)


RUN = ["run", "--model", "demo:digits", "--data", "digits", "--suite", "mnist-c"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--engine", "slurm"], "unknown engine 'slurm'"),
        (["--engine", "local:workers=2"], "'workers=2'"),
        (["--engine", "ray:gpus=one"], "gpus of engine ray must be a number, got 'one'"),
        (["--engine", "ray:cpus=0"], "cpus must be a number above 0, got 0"),
        (["--config", "nothing=1"], "unknown option 'nothing' in --config"),
    ],
)
def test_options_of_the_command(given: list[str], message: str) -> None:
    result = CliRunner().invoke(app, [*RUN, *given])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reported before anything else is done."""
    known = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "ray":
            raise ImportError(name)
        return known(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"Ray.*'beaufort\[ray\]'"):
        evaluate([toy()], SUITE, dataset(), tmp_path / "kept", engine=RayOptions())
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("images", "models", "conditions"), [(1000, 1, 1), (16_000, 1, 2), (16_000, 3, 6), (50_000, 2, 8)]
)
def test_small_jobs_have_small_units(images: int, models: int, conditions: int) -> None:
    """No worker has hours of work left when the others are finished."""
    cells: Any = [(number, SimpleNamespace(source_index=0)) for number in range(8)] * models
    assert tasks._conditions_each(cells, 0, [images]) == conditions


def test_progress_names_the_fastest_nodes() -> None:
    nodes = {f"node{i}": NodeSpeed(100 * i, 2.0, 0.9) for i in range(1, 6)}
    at = Progress(1, 10, "toy", "toys/fog@1", 0.5, nodes)
    assert _at(at) == ("toy toys/fog@1 50.0%; node5 250/s; node4 200/s; node3 150/s; 2 more nodes 150/s")


CALLS = [0]


def counting() -> Model:
    model = toy()

    def predict(images: Any) -> Any:
        CALLS[0] += 1
        return model(images)

    return as_model(predict, name="toy", classes=7, version="1")


@pytest.fixture
def contents(tmp_path: Path) -> tuple[WorkerSetup, list[Assignment], dict[int, Any]]:
    """A job of several hundred batches, and its tickets."""
    store = FileStore(tmp_path / "kept")
    planned = plan(["python:tests.evaluation.test_ray_options:counting"], SUITE, dataset(40), store)
    model = planned.cells[0].model
    model.unload()
    spaces = ((planned.cells[0].space,),)
    job = TaskRunner(
        planned.sources, (model,), spaces, tuple(w.condition for w in planned.cells), 1, 1, False
    )
    made = [
        Assignment(start, 0, Task(span, tuple(TaskPart(w.condition, span, ((n, 0),)) for n, w in numbered)))
        for start in range(0, 40, 4)
        for span in [(start, start + 4)]
        for numbered in [list(enumerate(planned.cells))]
    ]
    cells = {number: work.cell for number, work in enumerate(planned.cells)}
    return WorkerSetup(job, store, {}), made, cells


def test_a_worker_waits_for_who_listens(
    contents: tuple[WorkerSetup, list[Assignment], dict[int, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The queue is bounded, and blocks until messages are taken."""
    monkeypatch.setattr(ray_worker, "_node_name", lambda: "here")
    monkeypatch.setattr(ray_worker, "MESSAGES", 16)
    packed, offered, cells = contents
    CALLS[0] = 0
    worker = Worker(Payload.of(packed), 0.0)
    for ticket in offered:
        worker.offer(ticket, cells)
    full = threading.Event()
    while not worker._messages.full():
        full.wait(0.01)
    batches = 40 * len(cells)
    assert CALLS[0] < batches / 2
    reports: Iterator[Report] = worker.reports()
    stored, begun, finished = 0, 0, 0
    while stored < len(offered) * len(cells):
        report = next(reports)
        assert len(report.messages) <= MESSAGES
        for message in report.messages:
            match message:
                case Exception():
                    raise message
                case Started():
                    begun += 1
                case BatchDone():
                    finished += message.images
                case StoredPredictions():
                    stored += 1
    assert (begun, finished) == (len(offered), batches)
    evaluate([toy()], SUITE, dataset(40), tmp_path / "local", options=RunOptions(batch_size=1))
    assert rows(packed.store) == rows(FileStore(tmp_path / "local"))  # type: ignore[arg-type]
