"""Decoder processes return the same images as the process of the run."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import BeaufortError, ImageFileError
from beaufort.data import (
    Decoders,
    PreparedImages,
    Problem,
    Step,
    _decoder_processes,
    decoders,
    load_dataset,
    should_use_decoders,
    start_decoder_server,
)
from beaufort.evaluation import ImageSource, LazyModel, RunOptions, plan, runner
from beaufort.evaluation.backends import DeviceBackend
from beaufort.evaluation.batches import ImageBlock
from beaufort.models import as_model
from beaufort.results import evaluate
from beaufort.store import FileStore
from beaufort.suites.conditions import Condition
from beaufort.testing._contracts import example_image

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="processes and threads are looked for in /proc"
)


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageSource:
    monkeypatch.setattr(decoders, "_MIN_DECODE_S", 0.0)
    monkeypatch.setattr(decoders, "_MIN_IMAGES", 1)
    while _decoder_processes._server is not None and children(_decoder_processes._server.process.pid):
        time.sleep(0.02)  # until those of the test before have ended
    for i in range(30):
        file = tmp_path / "toys" / f"class{i % 3}" / f"{i:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(example_image(40, 50 + i % 2, variant=i)).save(file)
    broken = tmp_path / "toys" / "class1" / "04.png"
    broken.write_bytes(broken.read_bytes()[:200])
    data = load_dataset(str(tmp_path / "toys"))
    return ImageSource(data, len(data), (Step("resize", 36), Step("crop", 32)), "cifar", 0)


def ready(some: Decoders, count: int) -> None:
    until = time.monotonic() + 600
    while some._working < count:
        assert time.monotonic() < until
        time.sleep(0.02)


def check(setup: ImageSource, some: Decoders) -> None:
    with ThreadPoolExecutor(3) as pool:
        block = ImageBlock(setup, (0, 30), pool, some)
        (problem,) = block.problems()
        assert problem.id == "class1/04.png"
        for place in range(30):
            here = setup.images(place)
            if isinstance(here, Problem):
                assert place not in dict(block.shapes((0, 30)))
            else:
                assert np.array_equal(block.image(place), here)


def test_the_same_images(setup: ImageSource) -> None:
    with Decoders(setup.images, 2) as some:
        check(setup, some)  # while they start
        ready(some, 2)
        source = start_decoder_server(type(setup.images)).process.pid
        (leader,) = children(source)
        for forked in (source, leader):  # safely: they have no threads
            assert len(list(Path(f"/proc/{forked}/task").iterdir())) == 1
        assert some.decode(range(2)) is not None
        check(setup, some)
        os.killpg(leader, signal.SIGKILL)
        check(setup, some)
        assert some.decode(range(2)) is None
    assert_gone(leader)


def test_all_runs_share_one_fork_server(
    setup: ImageSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Decoders(setup.images, 1) as some:
        ready(some, 1)
        source = start_decoder_server(type(setup.images))
        (leader,) = children(source.process.pid)
    assert_gone(leader)
    monkeypatch.chdir(tmp_path)
    near = ImageSource(
        load_dataset("toys"), 30, setup.prepare, "cifar", 0
    )  # a path that begins elsewhere now
    with Decoders(near.images, 1) as some:
        ready(some, 1)
        assert start_decoder_server(type(near.images)) is source
        (found,) = some.decode(range(1)) or [None]
        here = setup.images(0)
        assert isinstance(found, np.ndarray)
        assert isinstance(here, np.ndarray)
        assert np.array_equal(found, here)
        source.process.kill()
        source.process.wait()
        assert some.decode(range(1)) is not None  # nobody needs it any more
    with Decoders(setup.images, 1) as some:
        ready(some, 1)
        assert start_decoder_server(type(setup.images)) is not source


def test_processes_that_start_soon_are_waited_for(
    setup: ImageSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoders, "_FORK_TIMEOUT_S", 600.0)
    with Decoders(setup.images, 1) as some:
        ready(some, 1)
    with Decoders(setup.images, 2) as some:
        assert some.decode(range(2)) is not None
    with Decoders(Elsewhere(), 2) as some:
        assert some.decode(range(2)) is None  # as soon as it is known that none will come


class Elsewhere:
    """Images that cannot be pickled."""

    def __call__(self, index: int) -> Problem:
        return Problem(str(index), "it is not here")

    def prepare(self, pixels: np.ndarray) -> np.ndarray:
        return pixels

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.exit, (1,)


def test_no_fork_server(setup: ImageSource, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(_decoder_processes._ForkServer, "fork", fail)
    with Decoders(setup.images, 2) as some:
        assert some._greeting is None
        check(setup, some)


def test_closing_while_processes_start(setup: ImageSource) -> None:
    start_decoder_server(type(setup.images)).end()
    with Decoders(setup.images, 2) as some:
        assert some._greeting is not None
    assert not some._greeting.is_alive()
    source = start_decoder_server(type(setup.images)).process.pid
    with Decoders(setup.images, 1) as some:
        ready(some, 1)  # its leader comes after the one that nobody waited for
        while len(children(source)) > 1:
            time.sleep(0.02)


def test_a_run_that_is_killed_leaves_no_process(setup: ImageSource) -> None:
    program = (
        "import pickle, sys, time; from beaufort.data import _decoder_processes, decoders; "
        "some = decoders.Decoders(pickle.load(sys.stdin.buffer), 2).__enter__()\n"
        "while some._working < 2: time.sleep(0.02)\n"
        "print(_decoder_processes._server.process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        pickle.dump(setup.images, run.stdin)
        run.stdin.close()
        source = int(run.stdout.readline())
        (leader,) = children(source)
        assert len(living(leader)) == 3
        run.kill()
    assert_gone(leader)
    assert_gone(source)


def assert_gone(group: int) -> None:
    """Wait until all processes of a group have ended."""
    until = time.monotonic() + 600
    while living(group):
        assert time.monotonic() < until
        time.sleep(0.02)


def living(group: int) -> list[int]:
    """The processes of a group that have not ended."""
    return [pid for pid, _, its_group in processes() if its_group == group]


def children(parent: int) -> list[int]:
    """The processes that one has forked and that have not ended."""
    return [pid for pid, its_parent, _ in processes() if its_parent == parent]


def processes() -> Iterator[tuple[int, int, int]]:
    """Every process with its parent and its group."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, group = file.read_text().rpartition(")")[2].split()[:3]
            if state != "Z":
                yield int(file.parent.name), int(parent), int(group)


def test_errors_recur_in_the_process_of_the_run(setup: ImageSource, tmp_path: Path) -> None:
    strict = ImageSource(load_dataset(str(tmp_path / "toys"), strict=True), 30, setup.prepare, "cifar", 0)
    with Decoders(strict.images, 1) as some, ThreadPoolExecutor(1) as pool:
        ready(some, 1)
        block = ImageBlock(strict, (8, 16), pool, some)
        place = list(strict.dataset.ids).index("class1/04.png")
        assert 8 <= place < 16
        with pytest.raises(ImageFileError):
            list(block.shapes((8, 16)))


def test_quick_images_need_no_process(setup: ImageSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "_MIN_DECODE_S", 60.0)
    assert not setup.should_use_decoders
    monkeypatch.setattr(decoders, "_MIN_DECODE_S", 0.0)
    assert not setup.should_use_decoders  # they are tried once
    assert should_use_decoders(setup.images, 30)
    monkeypatch.setattr(decoders, "_MIN_IMAGES", 31)
    assert not should_use_decoders(setup.images, 30)


def test_a_run_on_a_device_uses_decoders(
    setup: ImageSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    conditions = [Condition.parse(text) for text in ("toys", "toys/contrast@2")]
    model = as_model(corner, classes=3, version="1")
    threads = evaluate(
        [model], conditions, setup.dataset, tmp_path / "threads", options=RunOptions(batch_size=4)
    )
    enter, decode, used = Decoders.__enter__, Decoders.decode, list[bool]()

    def enter_and_wait(some: Decoders) -> Decoders:
        enter(some)
        assert some._greeting is not None
        some._greeting.join()
        return some

    def counted(some: Decoders, places: range) -> Any:
        found = decode(some, places)
        used.append(found is not None)
        return found

    monkeypatch.setattr(Decoders, "__enter__", enter_and_wait)
    monkeypatch.setattr(Decoders, "decode", counted)
    monkeypatch.setattr(runner, "choose_backend", lambda _models, setup, _jobs: DeviceBackend(setup, "cpu"))
    device = evaluate(
        [model], conditions, setup.dataset, tmp_path / "device", options=RunOptions(batch_size=4)
    )
    assert used
    assert all(used)
    assert [problem.id for problem in device.problems] == ["class1/04.png"]
    assert device.problems == threads.problems
    assert device.results == threads.results
    stores = [FileStore(tmp_path / name) for name in ("threads", "device")]
    for cell in stores[0].cells().values():
        one, other = (store.read(cell) for store in stores)
        assert one.equals(other)


@pytest.mark.parametrize(("device", "started"), [("cuda:99", True), ("nowhere", False)])
def test_decoders_start_while_models_are_loaded(
    device: str, started: bool, setup: ImageSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[type] = []
    monkeypatch.setattr("beaufort.evaluation.planning.start_decoder_server", calls.append)
    model = LazyModel("demo:digits", {"device": device})
    with pytest.raises(BeaufortError):  # no such option, or no such device
        evaluate([model], [Condition.parse("toys")], setup.dataset, tmp_path / "store")
    assert calls == ([PreparedImages] if started else [])
    calls.clear()
    with pytest.raises(BeaufortError):
        plan([model], [Condition.parse("toys")], setup.dataset, tmp_path / "store")
    assert not calls  # nothing is run


def corner(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1)[:, :3].astype(np.float32)
