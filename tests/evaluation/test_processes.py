"""Worker processes: same rows and errors as in one process, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import active_children, parent_process
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import ImageFileError, OptionError, UnknownNameError
from beaufort.data import Dataset, from_arrays, load_dataset
from beaufort.evaluation import LazyModel, ProcessOptions, Progress, RunOptions, WorkerError, plan, tasks
from beaufort.evaluation.engines import ProcessEngine
from beaufort.evaluation.runner import TaskRunner
from beaufort.models import Model, ModelError, as_model
from beaufort.results import evaluate
from beaufort.store import FileStore
from beaufort.suites import Suite
from beaufort.testing._contracts import example_image

CLASSES = 5
SUITE = Suite(
    name="small", version=1, dataset="toys", scale="cifar", corruptions=("fog", "contrast"), severities=(1, 4)
)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the models of this file."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(tasks, "BLOCK", 16)


def dataset(count: int = 40) -> Dataset:
    images = np.stack([example_image(32, 32, variant=i) for i in range(count)])
    return from_arrays("toys", images, np.arange(count) % CLASSES)


def brightness(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1)[:, :CLASSES].astype(np.float32)


def model() -> Model:
    return as_model(brightness, name="bright", classes=CLASSES, version="1")


def broken() -> Model:
    return as_model(lambda images: images, name="broken", classes=CLASSES, version="1")


def suicidal() -> Model:
    def predict(images: np.ndarray) -> np.ndarray:
        if parent_process() is not None:  # in a worker, not in the check before the run
            os.kill(os.getpid(), signal.SIGKILL)
        return brightness(images)

    return as_model(predict, name="suicidal", classes=CLASSES, version="1")


def held() -> Model:
    """Predicts eight batches in each process, then waits until the file named by `HELD` is deleted."""
    batches = 0

    def predict(images: np.ndarray) -> np.ndarray:
        nonlocal batches
        batches += 1
        while batches > 8 and Path(os.environ["HELD"]).exists():
            time.sleep(0.01)
        return brightness(images)

    return as_model(predict, name="held", classes=CLASSES, version="1")


@pytest.fixture
def hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that makes the model wait after two processes have predicted 16 of the 25 batches."""
    monkeypatch.setenv("HELD", str(tmp_path / "hold"))
    (tmp_path / "hold").touch()
    return tmp_path / "hold"


def rows(store: FileStore) -> dict[str, list[dict[str, object]]]:
    return {key: store.read(cell).to_pylist() for key, cell in sorted(store.cells().items())}


@pytest.mark.slow
def test_the_rows_of_one_process(tmp_path: Path) -> None:
    seen: list[Progress] = []
    models = ["python:test_processes:model", "demo:digits"]
    one = evaluate(models, SUITE, dataset(), tmp_path / "one", options=RunOptions(batch_size=8))
    two = evaluate(
        models,
        SUITE,
        dataset(),
        tmp_path / "two",
        engine="processes:2",
        options=RunOptions(batch_size=8),
        progress=seen.append,
    )
    assert one.results == two.results
    assert rows(FileStore(tmp_path / "one")) == rows(FileStore(tmp_path / "two"))
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert seen[-1].done == seen[-1].total == 2 * 5 * 40
    again = evaluate(models, SUITE, dataset(), tmp_path / "two", engine="processes:2")
    assert all(result.reused for result in again.results)
    assert not active_children()


def test_a_model_object_that_can_be_pickled(tmp_path: Path) -> None:
    before = threading.active_count()
    found = evaluate([model()], SUITE, dataset(), "memory://processes", engine="processes:1")
    assert all(result.images == 40 for result in found.results)
    assert threading.active_count() <= before


def test_a_model_object_that_cannot_be_pickled(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"model held"):
        evaluate([held()], SUITE, dataset(), tmp_path, engine="processes:2")
    for wrong in (0, 1.5, True):  # invalid counts raise the same error for every option
        with pytest.raises(OptionError, match=rf"processes.*{wrong}"):
            evaluate([model()], SUITE, dataset(), tmp_path, engine=ProcessOptions(wrong))  # type: ignore[arg-type]


@pytest.mark.slow
def test_an_error_is_that_of_one_process(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="broken must return logits"):
        evaluate(["python:test_processes:broken"], SUITE, dataset(), tmp_path, engine="processes:1")
    for i in range(20):
        file = tmp_path / "data" / f"class{i % 5}" / f"{i:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(example_image(32, 32, variant=i)).save(file)
    bad = tmp_path / "data" / "class1" / "06.png"
    bad.write_bytes(bad.read_bytes()[:100])
    models = ["python:test_processes:model"]
    with pytest.raises(ImageFileError):
        evaluate(
            models,
            SUITE,
            load_dataset(str(tmp_path / "data"), strict=True),
            tmp_path / "a",
            engine="processes:1",
        )
    found = evaluate(models, SUITE, str(tmp_path / "data"), tmp_path / "b", engine="processes:2")
    assert [problem.id for problem in found.problems] == ["class1/06.png"]
    assert all((result.images, result.unread) == (19, 1) for result in found.results)
    assert not active_children()


def test_a_dead_worker_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="SIGKILL"):
        evaluate(["python:test_processes:suicidal"], SUITE, dataset(), tmp_path, engine="processes:1")
    assert not active_children()


@pytest.mark.slow
def test_a_worker_that_is_killed(tmp_path: Path, hold: Path) -> None:
    """Stored predictions are kept, and the rest is computed later."""
    batches = 0

    def kill(progress: Progress) -> None:
        nonlocal batches
        batches += 1
        if batches == 12:
            active_children()[0].kill()

    models = ["python:test_processes:held"]
    with pytest.raises(WorkerError, match="SIGKILL"):
        evaluate(
            models,
            SUITE,
            dataset(),
            tmp_path / "a",
            engine="processes:2",
            options=RunOptions(batch_size=8),
            progress=kill,
        )
    assert not active_children()
    store = FileStore(tmp_path / "a")
    assert store.pieces()
    assert not store.verify()
    hold.unlink()
    evaluate(models, SUITE, dataset(), tmp_path / "a", engine="processes:2", options=RunOptions(batch_size=8))
    evaluate(models, SUITE, dataset(), tmp_path / "b", options=RunOptions(batch_size=8))
    assert rows(store) == rows(FileStore(tmp_path / "b"))


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[1])
from beaufort.evaluation import RunOptions, tasks
from beaufort.results import evaluate
tasks.BLOCK = 16
import test_processes as t
def seen(progress):
    print("ready", flush=True)
models = ["python:test_processes:held"]
options = RunOptions(batch_size=8)
evaluate(models, t.SUITE, t.dataset(), sys.argv[2], engine="processes:2", options=options, progress=seen)
"""


@pytest.mark.slow
def test_ctrl_c_is_clean(tmp_path: Path, hold: Path) -> None:
    """One KeyboardInterrupt, in the main process; no worker and no partial file is left."""
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parent), str(tmp_path / "store")]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  a background job ignores it
    )
    assert child.stdout
    for _ in range(10):
        assert child.stdout.readline() == "ready\n"
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all of them
    _, errors = child.communicate(timeout=600)
    assert child.returncode != 0
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    until = time.monotonic() + 600
    while _lives(child.pid):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert not FileStore(tmp_path / "store").verify()


def test_an_interrupt_never_reaches_a_worker() -> None:
    """Workers ignore interrupts even while they start, so there is only one traceback."""
    plan_of_nothing = TaskRunner((), (), (), (), 1, None, keep_logits=False)
    with ProcessEngine(plan_of_nothing, 2):
        for worker in active_children():
            status = dict(
                line.split(":\t", 1) for line in Path(f"/proc/{worker.pid}/status").read_text().splitlines()
            )
            held_back = int(status["SigBlk"], 16) | int(status["SigIgn"], 16)
            assert held_back & 1 << signal.SIGINT - 1
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_libraries_use_one_thread_in_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")  # which is one in all tests
    before = os.environ.get("NUMBA_NUM_THREADS")
    found = evaluate(
        [LazyModel("python:test_processes:threads")], SUITE, dataset(), tmp_path, engine="processes:1"
    )
    assert len(found.results) == 5
    assert os.environ.get("NUMBA_NUM_THREADS") == before


def threads() -> Model:
    def predict(images: np.ndarray) -> np.ndarray:
        import cv2

        assert cv2.getNumThreads() == 1
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
            assert os.environ[name] == "1"
        return brightness(images)

    return as_model(predict, name="threads", classes=CLASSES, version="1")


def test_models_are_loaded_when_they_are_needed(tmp_path: Path) -> None:
    lazy = LazyModel("python:test_processes:never")
    with pytest.raises(OptionError, match=r"limit.*0"):
        plan([lazy], SUITE, dataset(), tmp_path, limit=0)
    with pytest.raises(UnknownNameError, match="nosuch"):
        plan([lazy], "nosuch", dataset(), tmp_path)
    with pytest.raises(AssertionError, match="nobody needs it"):
        plan([lazy], SUITE, dataset(), tmp_path)
    one = LazyModel("demo:digits", {"name": "one"}).for_one_thread()
    assert one.options == {"name": "one", "threads": 1}
    assert LazyModel("https://host/classify").for_one_thread().options == {}


def never() -> Model:
    raise AssertionError("nobody needs it")
