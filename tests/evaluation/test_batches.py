"""Blocks hold a stated number of bytes, and batches are the same whatever they hold."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from threading import RLock

import numpy as np
import pytest

from beaufort._core.arrays import Bytes
from beaufort.data import Content, Dataset
from beaufort.evaluation import ImageSource, RunOptions, backends, batches, runner, tasks
from beaufort.evaluation.backends import CpuBackend, DeviceBackend
from beaufort.evaluation.batches import HELD, divisor_of_block
from beaufort.evaluation.tasks import BLOCK
from beaufort.models import Model, as_model
from beaufort.results import evaluate
from beaufort.store import FileStore
from beaufort.suites.conditions import Condition
from beaufort.testing._contracts import example_image

pytestmark = pytest.mark.usefixtures("no_model_checks")
SIDE = 64
IMAGE = SIDE * SIDE * 3
CLASSES = 3


class Counting:
    """Images that count how many of their bytes are in memory."""

    def __init__(self) -> None:
        self.alive = self.most = self.reads = 0
        self._lock = RLock()  # an image may be freed while another one is counted

    def read(self, index: int) -> Bytes:
        image = example_image(SIDE, SIDE, variant=index).copy()
        with self._lock:
            self.reads += 1
            self.alive += image.nbytes
            self.most = max(self.most, self.alive)
        weakref.finalize(image, self._gone, image.nbytes)
        return image

    def _gone(self, size: int) -> None:
        with self._lock:
            self.alive -= size

    def contents(self, count: int) -> Iterator[Content]:
        return iter(())


def dataset(pixels: Counting, count: int = 120) -> Dataset:
    return Dataset(
        "toys", tuple("abc"), [f"toys/{i}" for i in range(count)], np.arange(count) % CLASSES, pixels
    )


def model(calls: list[int]) -> Model:
    def predict(images: np.ndarray) -> np.ndarray:
        calls.append(len(images))
        return images.reshape(len(images), -1)[:, :CLASSES].astype(np.float32)

    return as_model(predict, name="toy", classes=CLASSES, version="1")


CONDITIONS = [Condition.parse(text) for text in ("toys", "toys/contrast@2", "toys/fog@3")]


@pytest.mark.parametrize("device", [None, "cpu"])
def test_bytes_bound_a_block_and_change_nothing(
    device: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device is not None:
        pytest.importorskip("torch", reason="torch is not installed")
        monkeypatch.setattr(
            runner, "choose_backend", lambda _models, source, _jobs: DeviceBackend(source, device)
        )
    monkeypatch.setattr(tasks, "BLOCK", 60)
    found = {}
    for held in (HELD, 10 * IMAGE, 0):
        monkeypatch.setattr(batches, "HELD", held)
        monkeypatch.setattr(backends, "HELD", held)
        pixels, calls = Counting(), list[int]()
        store = FileStore(tmp_path / str(held))
        evaluate(
            [model(calls)],
            CONDITIONS,
            dataset(pixels),
            store,
            engine="local:2",
            options=RunOptions(batch_size=4),
        )
        rows = {key: store.read(cell).to_pylist() for key, cell in sorted(store.cells().items())}
        found[held] = calls, rows
        # What a block holds (two of them beside a device), what threads decode, and batches under way.
        in_flight = (2 + 4 * 4) * IMAGE
        assert pixels.most <= 2 * held + in_flight
        again = held < 60 * IMAGE
        assert (pixels.reads > 2 * 120) == again
    assert found[HELD] == found[10 * IMAGE] == found[0]


def test_batches_under_way_are_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "HELD", 0)
    monkeypatch.setattr(backends, "_IN_FLIGHT", 10 * IMAGE)
    pixels = Counting()
    evaluate(
        [model([])],
        CONDITIONS,
        dataset(pixels),
        tmp_path,
        engine="local:12",
        options=RunOptions(batch_size=5),
    )
    assert pixels.most <= (10 + 5 + 5 + 12) * IMAGE


def test_a_device_does_not_wait_for_images_it_does_not_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch is evaluated under all conditions while the second one is decoded."""
    pytest.importorskip("torch", reason="torch is not installed")
    calls: list[int] = []
    waited: list[bool] = []

    class Late(Counting):
        def read(self, index: int) -> Bytes:
            until = time.monotonic() + 300
            while index >= 8 and len(calls) < len(CONDITIONS) - 1 and time.monotonic() < until:
                time.sleep(0.01)
            waited.append(time.monotonic() >= until)
            return super().read(index)

    monkeypatch.setattr(runner, "choose_backend", lambda _models, source, _jobs: DeviceBackend(source, "cpu"))
    store, other = FileStore(tmp_path / "late"), FileStore(tmp_path / "plain")
    monkeypatch.setattr(DeviceBackend, "lag", 0)
    evaluate(
        [model(calls)],
        CONDITIONS,
        dataset(Late(), 20),
        store,
        engine="local:2",
        options=RunOptions(batch_size=8),
    )
    assert not any(waited)
    assert sorted(calls) == sorted(3 * [8, 8, 4])
    evaluate([model([])], CONDITIONS, dataset(Counting(), 20), other, options=RunOptions(batch_size=8))
    for cell in other.cells().values():
        assert store.read(cell).equals(other.read(cell))


def test_the_stated_bound() -> None:
    """1,000 photos of 12 megapixels would be 36 GB."""
    assert HELD == 2**30
    assert BLOCK == 1000


def test_automatic_batches_of_a_device_leave_no_smaller_one() -> None:
    for most in range(1, 1200):
        size = divisor_of_block(most)
        assert BLOCK % size == 0
        assert size <= max(1, most)
    assert DeviceBackend.batch_size(224 * 224 * 3) == 250
    assert DeviceBackend.batch_size(28 * 28) == 500
    assert CpuBackend.batch_size(224 * 224 * 3) == 16
    assert CpuBackend.batch_size(4000 * 3000 * 3) == DeviceBackend.batch_size(12000 * 9000 * 3) == 1


def test_where_blocks_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At multiples of a block, also after a run with another limit."""
    monkeypatch.setattr(tasks, "BLOCK", 50)
    calls: list[int] = []
    evaluate(
        [model(calls)],
        CONDITIONS[:1],
        dataset(Counting()),
        tmp_path,
        options=RunOptions(first=60, batch_size=16),
    )
    evaluate([model(calls)], CONDITIONS[:1], dataset(Counting()), tmp_path, options=RunOptions(batch_size=16))
    assert calls == [16, 16, 16, 2, 10, 16, 16, 8, 16, 4]


def test_blocks_are_freed_when_they_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and not when a search for cycles comes by: the images of a block may be a gigabyte."""
    monkeypatch.setattr(tasks, "BLOCK", 10)
    pixels = Counting()
    gc.collect()
    gc.disable()
    try:
        evaluate([model([])], CONDITIONS[:2], dataset(pixels), tmp_path, options=RunOptions(batch_size=5))
    finally:
        gc.enable()
    assert pixels.reads >= 120
    assert pixels.most <= 4 * 10 * IMAGE  # twelve blocks


def test_setup_prepares_images() -> None:
    source = ImageSource(dataset(Counting()), 3, (), "cifar", 0)
    assert np.array_equal(source.images(1), example_image(SIDE, SIDE, variant=1))
