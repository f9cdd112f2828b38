"""Pictures that other processes decode are those that are decoded here."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort.conditions import Condition
from beaufort.datasets import Problem, decoders, open_dataset
from beaufort.datasets.decoders import Decoders
from beaufort.errors import ImageFileError
from beaufort.evaluation import Setup, evaluate, work
from beaufort.evaluation.backends import Device
from beaufort.evaluation.blocks import Block
from beaufort.models import as_model
from beaufort.store import FileStore
from beaufort.suites import Step
from beaufort.testing._contracts import picture

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="processes and threads are looked for in /proc"
)


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setattr(decoders, "_WORTH_S", 0.0)
    monkeypatch.setattr(decoders, "_WORTH_IMAGES", 1)
    for i in range(30):
        file = tmp_path / "toys" / f"class{i % 3}" / f"{i:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(40, 50 + i % 2, variant=i)).save(file)
    broken = tmp_path / "toys" / "class1" / "04.png"
    broken.write_bytes(broken.read_bytes()[:200])
    data = open_dataset(str(tmp_path / "toys"))
    return Setup(data, len(data), (Step("resize", 36), Step("crop", 32)), "cifar", 0)


def ready(some: Decoders, count: int) -> None:
    until = time.monotonic() + 600
    while some._working < count:
        assert time.monotonic() < until
        time.sleep(0.02)


def check(setup: Setup, some: Decoders) -> None:
    with ThreadPoolExecutor(3) as pool:
        block = Block(setup, (0, 30), pool, some)
        (problem,) = block.problems()
        assert problem.id == "class1/04.png"
        for place in range(30):
            here = setup.pictures(place)
            if isinstance(here, Problem):
                assert place not in dict(block.shapes((0, 30)))
            else:
                assert np.array_equal(block.image(place), here)


def test_the_same_pictures(setup: Setup) -> None:
    with Decoders(setup.pictures, 30, 2) as some:
        check(setup, some)  # while they start
        ready(some, 2)
        assert some._first is not None
        assert len(list(Path(f"/proc/{some._first.pid}/task").iterdir())) == 1  # safe to be forked
        assert some.decode(range(2)) is not None
        check(setup, some)
        os.killpg(some._first.pid, signal.SIGKILL)
        check(setup, some)
        assert some.decode(range(2)) is None
    assert_gone(some._first.pid)


def test_a_run_that_is_killed_leaves_no_process(setup: Setup) -> None:
    program = (
        "import pickle, sys, time; from beaufort.datasets import decoders; "
        "decoders._WORTH_S, decoders._WORTH_IMAGES = 0.0, 1; "
        "some = decoders.Decoders(pickle.load(sys.stdin.buffer), 30, 2).__enter__()\n"
        "while some._working < 2: time.sleep(0.02)\n"
        "print(some._first.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        pickle.dump(setup.pictures, run.stdin)
        run.stdin.close()
        group = int(run.stdout.readline())
        assert len(living(group)) == 3
        run.kill()
    assert_gone(group)


def assert_gone(group: int) -> None:
    """Every process of a group ends, soon."""
    until = time.monotonic() + 600
    while living(group):
        assert time.monotonic() < until
        time.sleep(0.02)


def living(group: int) -> list[str]:
    """The processes of a group that have not ended."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = file.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(file.parent.name)
    return found


def test_an_error_is_met_where_the_run_is(setup: Setup, tmp_path: Path) -> None:
    strict = Setup(open_dataset(str(tmp_path / "toys"), strict=True), 30, setup.prepare, "cifar", 0)
    with Decoders(strict.pictures, 30, 1) as some, ThreadPoolExecutor(1) as pool:
        ready(some, 1)
        block = Block(strict, (8, 16), pool, some)
        place = list(strict.dataset.ids).index("class1/04.png")
        assert 8 <= place < 16
        with pytest.raises(ImageFileError):
            list(block.shapes((8, 16)))


def test_quick_pictures_need_no_process(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "_WORTH_S", 60.0)
    with Decoders(setup.pictures, 30, 2) as some:
        assert some.decode(range(2)) is None
    assert some._first is None


def test_a_run_on_a_device_gets_its_pictures_from_them(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    conditions = [Condition.parse(text) for text in ("toys", "toys/contrast@2")]
    model = as_model(corner, classes=3, version="1")
    threads = evaluate([model], conditions, setup.dataset, tmp_path / "threads", batch_size=4)
    enter, decode, answered = Decoders.__enter__, Decoders.decode, list[bool]()

    def enter_and_wait(some: Decoders) -> Decoders:
        enter(some)
        assert some._greeting is not None
        some._greeting.join()
        return some

    def counted(some: Decoders, places: range) -> Any:
        found = decode(some, places)
        answered.append(found is not None)
        return found

    monkeypatch.setattr(Decoders, "__enter__", enter_and_wait)
    monkeypatch.setattr(Decoders, "decode", counted)
    monkeypatch.setattr(work, "choose_backend", lambda _models, setup, _jobs: Device(setup, "cpu"))
    device = evaluate([model], conditions, setup.dataset, tmp_path / "device", batch_size=4)
    assert answered
    assert all(answered)
    assert [problem.id for problem in device.problems] == ["class1/04.png"]
    assert device.problems == threads.problems
    assert device.results == threads.results
    stores = [FileStore(tmp_path / name) for name in ("threads", "device")]
    for cell in stores[0].cells().values():
        one, other = (store.read(cell) for store in stores)
        assert one.equals(other)


def corner(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1)[:, :3].astype(np.float32)
