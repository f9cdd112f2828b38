"""The evaluation loop stores every prediction once, skips stored ones, and survives interruptions."""

from __future__ import annotations

import errno
import json
import os
import random
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from beaufort._core.errors import BeaufortError, OptionError, UnknownNameError
from beaufort.data import Dataset, from_arrays, load_dataset
from beaufort.evaluation import Progress, RunOptions, plan
from beaufort.evaluation.planning import Plan
from beaufort.models import Model, as_model, with_filter
from beaufort.results import evaluate, plan_run
from beaufort.store import FileStore, StoreError
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition
from beaufort.testing._contracts import example_image

CLASSES = 7
WEIGHTS = np.random.default_rng(3).normal(0, 1, (CLASSES, 32 * 32 * 3)).astype(np.float32) / 3000


def dataset(count: int = 40) -> Dataset:
    images = np.stack([example_image(32, 32, variant=i) for i in range(count)])
    return from_arrays("toys", images, np.arange(count) % CLASSES)


def toy(name: str = "toy", version: str = "1", gain: float = 1.0, calls: list[int] | None = None) -> Model:
    def predict(images: np.ndarray) -> np.ndarray:
        if calls is not None:
            calls.append(len(images))
        return images.reshape(len(images), -1).astype(np.float32) @ (WEIGHTS * gain).T

    return as_model(predict, name=name, classes=CLASSES, version=version)


def first_toy() -> Model:
    return toy()


def other_toy() -> Model:
    return toy("other", "2", 0.5)


SUITE = Suite(
    name="small", version=1, dataset="toys", scale="cifar", corruptions=("fog", "contrast"), severities=(1, 4)
)


def rows(store: FileStore) -> dict[str, list[dict[str, object]]]:
    return {key: store.read(cell).to_pylist() for key, cell in sorted(store.cells().items())}


def test_an_unknown_baseline_is_rejected_before_the_run(tmp_path: Path) -> None:
    """The error is raised before the run, not at its end in place of results."""

    def suite(baseline: str, **more: object) -> Suite:
        values = {**SUITE.as_dict(), "baseline": baseline, "metrics": ["mce"], **more}
        return Suite.from_dict(values)

    calls: list[int] = []
    message = r"'alexnett' of small@1.* alexnet, alexnet-paper, conv1"
    for act in (evaluate, plan_run):
        with pytest.raises(UnknownNameError, match=message):
            act([toy(calls=calls)], suite("alexnett"), dataset(), tmp_path)
    with pytest.raises(BeaufortError, match="'alexnet'"):
        evaluate([toy()], suite("alexnet", corruptions=["stripe"], scale="relative"), dataset(), tmp_path)
    clips = {key: value for key, value in SUITE.as_dict().items() if key not in ("corruptions", "severities")}
    clips |= {"sequences": ["translate"], "metrics": ["mfr"], "baseline": "none.csv"}
    with pytest.raises(BeaufortError, match=r"none\.csv"):
        evaluate([toy()], Suite.from_dict(clips), dataset(), tmp_path)
    assert calls == []
    assert not any(tmp_path.iterdir())
    evaluate([toy()], suite("toy"), dataset(4), tmp_path)
    evaluate([other_toy()], suite("toy"), dataset(4), tmp_path)  # a model of the store


def test_predictions_are_those_of_the_model(tmp_path: Path) -> None:
    data = dataset()
    evaluation = evaluate([toy()], SUITE, data, tmp_path, options=RunOptions(batch_size=8, keep_logits=True))
    assert [result.condition for result in evaluation.results] == [
        "toys",
        "toys/fog@1",
        "toys/fog@4",
        "toys/contrast@1",
        "toys/contrast@4",
    ]
    store = FileStore(tmp_path)
    clean = np.stack([data[i].image for i in range(40)])
    for result, condition in zip(evaluation.results, SUITE.conditions("toys"), strict=True):
        shown = condition.apply(clean, ids=list(data.ids), scale="cifar")
        logits = toy()(shown)
        table = store.read(store.cells()[result.fingerprint])
        assert np.allclose(np.array(table["logits"].to_pylist()), logits, atol=1e-3, rtol=1e-3)
        assert table["id"].to_pylist() == list(data.ids)
        assert result.correct == (logits.argmax(axis=1) == data.labels).sum()
        assert result.images == 40


@pytest.mark.usefixtures("no_model_checks")
def test_nothing_is_run_twice(tmp_path: Path) -> None:
    calls: list[int] = []
    first = evaluate([toy(calls=calls)], SUITE, dataset(), tmp_path, options=RunOptions(first=25))
    assert sum(calls) == 5 * 25
    again = evaluate([toy(calls=calls)], SUITE, dataset(), tmp_path, options=RunOptions(first=25))
    assert sum(calls) == 5 * 25
    assert all(result.reused for result in again.results)
    assert [r.correct for r in again.results] == [r.correct for r in first.results]
    evaluate([toy(calls=calls), toy("other", "2", calls=calls)], SUITE, dataset(), tmp_path)
    assert sum(calls) == 5 * 40 + 5 * 40
    evaluate([toy("renamed", calls=calls)], SUITE, dataset(), tmp_path)
    assert sum(calls) == 5 * 40 + 5 * 40  # a new name changes no prediction


def test_two_functions_that_claim_to_be_one_model(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="toy and other"):
        evaluate([toy(), toy("other", gain=2)], SUITE, dataset(), tmp_path)


@pytest.mark.usefixtures("no_model_checks")
def test_a_finished_run_reads_only_the_folders_of_its_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate([toy()], SUITE, dataset(), tmp_path)
    evaluate([toy("other", "2")], SUITE, dataset(), tmp_path)

    def listing(_: FileStore) -> None:
        raise AssertionError("the whole store was listed")

    monkeypatch.setattr(FileStore, "listing", listing)
    again = evaluate([toy()], SUITE, dataset(), tmp_path)
    assert all(result.reused for result in again.results)
    assert [result.accuracy for result in again.results] == [result.accuracy for result in first.results]


@pytest.mark.usefixtures("no_model_checks")
def test_cells_that_may_change_are_recomputed(tmp_path: Path) -> None:
    calls: list[int] = []
    evaluate([toy(calls=calls)], SUITE, dataset(), tmp_path)
    done = len(calls)
    evaluate([toy(calls=calls)], SUITE, dataset(), tmp_path, seed=1)
    assert len(calls) - done == 2 * (done // 5)  # fog is random; contrast and clean images are not
    done = len(calls)
    evaluate([toy(version="2", calls=calls)], SUITE, dataset(), tmp_path)
    assert len(calls) > done
    done = len(calls)
    changed = np.stack([dataset()[i].image for i in range(40)])
    changed[7, 0, 0, 0] ^= 1
    evaluate([toy(calls=calls)], SUITE, from_arrays("toys", changed, dataset().labels), tmp_path)
    assert len(calls) > done


@pytest.mark.usefixtures("no_model_checks")
def test_an_unversioned_model_is_never_reused(tmp_path: Path) -> None:
    calls: list[int] = []

    def predict(images: np.ndarray) -> np.ndarray:
        calls.append(len(images))
        return np.zeros((len(images), CLASSES), np.float32)

    for _ in range(2):
        evaluate([as_model(predict, classes=CLASSES)], SUITE, dataset(), tmp_path)
    assert sum(calls) == 2 * 5 * 40


def test_images_that_cannot_be_read_are_counted_and_named(tmp_path: Path) -> None:
    from PIL import Image

    for i in range(12):
        folder = tmp_path / "data" / f"class{i % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(example_image(32, 32, variant=i)).save(folder / f"{i:02}.png")
    broken = tmp_path / "data" / "class1" / "04.png"
    broken.write_bytes(broken.read_bytes()[:200])
    data = load_dataset(str(tmp_path / "data"))
    evaluation = evaluate([toy()], SUITE, data, tmp_path / "store", labels="identity")
    assert [problem.id for problem in evaluation.problems] == ["class1/04.png"]
    assert all((result.images, result.unread) == (11, 1) for result in evaluation.results)
    store = FileStore(tmp_path / "store")
    table = store.read(next(iter(store.cells().values())))
    assert table["id"].to_pylist() == list(data.ids)
    assert not store.verify()
    strict = load_dataset(str(tmp_path / "data"), strict=True)
    with pytest.raises(Exception, match=r"04\.png"):
        evaluate([toy()], SUITE, strict, tmp_path / "other", labels="identity")


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="different names"):
        evaluate([toy(), toy()], SUITE, dataset(), tmp_path)
    few = as_model(lambda images: np.zeros((len(images), 3)), name="few", classes=3, version="1")
    with pytest.raises(OptionError, match="must be below 3"):
        evaluate([few], SUITE, dataset(), tmp_path)
    with pytest.raises(OptionError, match="empty"):
        evaluate([], SUITE, dataset(), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        evaluate([toy()], SUITE, dataset(), tmp_path / "file")


def test_plan_and_cost(tmp_path: Path) -> None:
    planned = plan([toy()], SUITE, dataset(), tmp_path)
    assert (len(planned.cells), planned.images, planned.reused) == (5, 200, 0)
    assert planned.estimate_seconds() > 0
    evaluate([toy()], SUITE, dataset(), tmp_path)
    planned = plan([toy()], SUITE, dataset(), tmp_path)
    assert (planned.images, planned.reused, planned.estimate_seconds()) == (0, 5, 0)


def test_a_list_of_conditions(tmp_path: Path) -> None:
    conditions = [Condition.parse("toys"), Condition.parse("toys/snow@2")]
    evaluation = evaluate([toy()], conditions, dataset(), tmp_path)
    assert [result.condition for result in evaluation.results] == ["toys", "toys/snow@2"]


KILLS = int(os.environ.get("BEAUFORT_KILLS", "12"))
"""`make test-all` sets a larger number."""


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends with an error; complete files stay, partial ones do not, and the rest is done later."""
    written = 0
    fsync = os.fsync
    one_at_a_time = threading.Lock()  # cells are written by several threads

    def full(descriptor: int) -> None:
        nonlocal written
        with one_at_a_time:
            written += stat.S_ISREG(os.fstat(descriptor).st_mode)  # folders are synced too
            room = written <= 3  # the record of the run and two cells
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        evaluate([toy()], SUITE, dataset(), tmp_path)
    monkeypatch.undo()
    store = FileStore(tmp_path)
    assert len(store.pieces()) == 2
    assert not store.verify()
    evaluation = evaluate([toy()], SUITE, dataset(), tmp_path)
    assert [result.reused for result in evaluation.results].count(True) == 2


@pytest.mark.usefixtures("no_model_checks")
def test_a_truncated_file_is_done_again(tmp_path: Path) -> None:
    evaluate([toy()], SUITE, dataset(), tmp_path)
    store = FileStore(tmp_path)
    before = rows(store)
    path = tmp_path / store.pieces()[1].path
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert [finding.path for finding in store.verify()] == [store.pieces()[1].path]
    calls: list[int] = []
    evaluate([toy(calls=calls)], SUITE, dataset(), tmp_path)
    assert sum(calls) == 40
    assert rows(store) == before


def linear_onnx(path: Path, weights: np.ndarray) -> None:
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    shape = ["n", 3, 32, 32]
    graph = make.make_graph(
        [make.make_node("Flatten", ["image"], ["flat"]), make.make_node("Gemm", ["flat", "w"], ["logits"])],
        "linear",
        [make.make_tensor_value_info("image", onnx.TensorProto.FLOAT, shape)],
        [make.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["n", CLASSES])],
        [onnx.numpy_helper.from_array(weights.T.copy(), "w")],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())


def test_a_changed_model_file_under_the_same_name_is_another_model(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    linear_onnx(path, WEIGHTS)
    first = evaluate([str(path)], SUITE, dataset(), tmp_path / "store")
    assert all(
        result.reused for result in evaluate([str(path)], SUITE, dataset(), tmp_path / "store").results
    )
    linear_onnx(path, WEIGHTS[::-1].copy())
    second = evaluate([str(path)], SUITE, dataset(), tmp_path / "store")
    assert not any(result.reused for result in second.results)
    assert {r.fingerprint for r in first.results}.isdisjoint({r.fingerprint for r in second.results})
    linear_onnx(path, WEIGHTS)  # and back again: nothing was lost
    third = evaluate([str(path)], SUITE, dataset(), tmp_path / "store")
    assert [(r.reused, r.correct) for r in third.results] == [(True, r.correct) for r in first.results]


def test_progress_adds_up_the_plan_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not after every batch: a plan may have forty thousand works."""
    sums: list[int] = []
    messages: list[Progress] = []

    def images(planned: Plan) -> int:
        sums.append(sum(work.images for work in planned.cells))
        return sums[-1]

    monkeypatch.setattr(Plan, "images", property(images))
    evaluate([toy()], SUITE, dataset(), tmp_path, options=RunOptions(batch_size=2), progress=messages.append)
    assert {progress.total for progress in messages} == set(sums)
    assert len(sums) < 10 < len(messages)


def test_ctrl_c(tmp_path: Path) -> None:
    """Complete files stay, and partial files are removed."""
    seen = 0

    def stop(progress: Progress) -> None:
        nonlocal seen
        seen += 1
        if seen == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate([toy()], SUITE, dataset(), tmp_path, options=RunOptions(batch_size=16), progress=stop)
    store = FileStore(tmp_path)
    assert len(store.pieces()) == 2
    assert not store.verify()


CHILD = """
import sys
sys.path.insert(0, sys.argv[2])
from beaufort.evaluation import RunOptions, tasks
from beaufort.results import evaluate
tasks.BLOCK = 16
import test_evaluate as t
models = ["python:test_evaluate:first_toy", "python:test_evaluate:other_toy"]
evaluate(models, t.SUITE, t.dataset(160), sys.argv[1], options=RunOptions(batch_size=8))
"""


@pytest.mark.slow
def test_two_processes_fill_one_store(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path / "both"), str(Path(__file__).parent)]
    children = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)
    ]
    for child in children:
        _, error = child.communicate()
        assert child.returncode == 0, error.decode()
    store = FileStore(tmp_path / "both")
    assert not store.verify()
    evaluate(
        [toy(), toy("other", "2", 0.5)],
        SUITE,
        dataset(160),
        tmp_path / "one",
        options=RunOptions(batch_size=8),
    )
    assert rows(store) == rows(FileStore(tmp_path / "one"))


def names(folder: Path) -> set[str]:
    """Return the finished prediction files of a store."""
    return {path.name for path in folder.rglob("*.parquet")}


PARENT = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from beaufort.evaluation import RunOptions, tasks
from beaufort.results import evaluate
import pyarrow.parquet
import test_evaluate as t
tasks.BLOCK = 16
models = ["python:test_evaluate:first_toy", "python:test_evaluate:other_toy"]
for line in sys.stdin:
    store, processes = json.loads(line)
    if not (child := os.fork()):
        evaluate(models, t.SUITE, t.dataset(160), store, options=RunOptions(batch_size=8),
            engine=f"processes:{processes}" if processes else "local")
        os._exit(0)
    print(child, flush=True)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    print("ended", flush=True)
    sys.stdin.readline()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Program that starts each run in a fork of itself, so that imports happen once."""


class Runs:
    """Processes that each run an evaluation, one after the other."""

    def __init__(self, parent: subprocess.Popen[str], folder: Path) -> None:
        assert parent.stdin
        assert parent.stdout
        self._input, self._output, self._folder = parent.stdin, parent.stdout, folder

    def start(self, store: str, processes: int) -> int:
        """The number of the process."""
        print(json.dumps([str(self._folder / store), processes]), file=self._input, flush=True)
        return int(self._output.readline())

    def ended(self) -> bool:
        """Whether it has."""
        return bool(select.select([self._output], [], [], 0)[0])

    def wait(self) -> int:
        """The exit code."""
        assert self._output.readline() == "ended\n"
        print(file=self._input, flush=True)
        return int(self._output.readline())


@pytest.mark.slow
@pytest.mark.parametrize("processes", [0, pytest.param(2, marks=pytest.mark.nightly)])
def test_kill_it_at_any_moment(tmp_path: Path, processes: int) -> None:
    """Many kills at random times; then the store equals that of an undisturbed run, row for row."""
    kills = KILLS if processes == 0 else max(4, KILLS // 5)  # workers take seconds to start
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PARENT, str(Path(__file__).parent)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as parent:
        kill_and_compare(tmp_path, Runs(parent, tmp_path), processes, kills)


def kill_and_compare(tmp_path: Path, runs: Runs, processes: int, kills: int) -> None:
    runs.start("undisturbed", 0)
    assert runs.wait() == 0
    runs.start("timed", processes)
    begin = time.perf_counter()
    assert runs.wait() == 0
    whole_run = time.perf_counter() - begin
    undisturbed = FileStore(tmp_path / "undisturbed")
    assert rows(FileStore(tmp_path / "timed")) == rows(undisturbed)
    store = FileStore(tmp_path / "killed")
    rng = random.Random(1)
    partial = 0
    for kill in range(kills):
        before = names(tmp_path / "killed")
        child = runs.start("killed", processes)
        if kill % 2:  # at a random time, which may be before the first file or after the last
            time.sleep(rng.uniform(0, 0.6 * whole_run))
        else:  # while files are being written, however slow the machine is
            while not runs.ended() and names(tmp_path / "killed") == before:
                time.sleep(0.002)
        os.kill(child, signal.SIGKILL)  # its number stays taken until it is waited for
        runs.wait()
        pieces = store.pieces()
        whole = [piece for piece in pieces if (piece.start, piece.stop) == (0, 160)]
        partial += len(pieces) > 0 and len(whole) < 10
        for piece in rng.sample(whole, len(whole) // 2):  # so that there is something to do again
            (tmp_path / "killed" / piece.path).unlink()
    assert partial >= kills // 6
    runs.start("killed", processes)
    assert runs.wait() == 0
    assert rows(store) == rows(undisturbed)
    store.collect()
    assert not store.verify()
    assert len(store.pieces()) == 10


def test_masked_classes_and_probabilities(tmp_path: Path) -> None:
    """Logits of -inf are valid; probabilities are accepted with one warning."""

    def masked(images: np.ndarray) -> np.ndarray:
        logits = toy()(images)
        logits[:, 3:] = -np.inf
        return logits

    def softmax(images: np.ndarray) -> np.ndarray:
        e = np.exp(toy()(images))
        return np.asarray(e / e.sum(axis=1, keepdims=True))

    models = [
        as_model(masked, classes=CLASSES, version="m"),
        as_model(softmax, classes=CLASSES, version="s"),
        toy(),
    ]
    found = evaluate(models, SUITE, dataset(), tmp_path)
    (note,) = (note for note in found.notes if "probabilities" in note)
    assert note.startswith("the outputs of softmax look like probabilities")
    assert "not change accuracies" in note
    by_name = {(result.model, result.condition): result.correct for result in found.results}
    assert by_name["softmax", "toys"] == by_name["toy", "toys"]
    assert {top for row in store_rows(tmp_path, "masked") for top in row["top"][:3]} <= {0, 1, 2}


def test_probabilities_of_views_are_reported(tmp_path: Path) -> None:
    def softmax(images: np.ndarray) -> np.ndarray:
        e = np.exp(toy()(images))
        return np.asarray(e / e.sum(axis=1, keepdims=True))

    fractions = as_model(softmax, classes=CLASSES, version="s", input_size=32)
    logits = as_model(
        lambda shown: 2 * toy()(shown), name="logits", classes=CLASSES, version="l", input_size=32
    )
    for image_filter in ("ten-crop:side=36", "stretch"):
        found = evaluate(
            [with_filter(fractions, image_filter), with_filter(logits, image_filter)],
            SUITE,
            dataset(),
            tmp_path,
        )
        (note,) = (note for note in found.notes if "probabilities" in note)
        assert note.startswith("the outputs of softmax+")
        assert ("not change accuracies" in note) == (image_filter == "stretch")


def store_rows(folder: Path, name: str) -> list[dict[str, list[int]]]:
    store = FileStore(folder)
    cells = [cell for cell in store.cells().values() if cell.model["name"] == name]
    return [row for cell in cells for row in store.read(cell).to_pylist()]


def test_a_store_that_disappears_is_reported(tmp_path: Path) -> None:
    def vanish(progress: Progress) -> None:
        if progress.done < progress.total:
            return
        while not (paths := list((tmp_path / "store" / "predictions").rglob("*.parquet"))):
            time.sleep(0.01)  # they are written behind the run
        for path in paths:
            path.unlink()

    with pytest.raises(StoreError):
        evaluate([toy()], SUITE, dataset(), tmp_path / "store", progress=vanish)
