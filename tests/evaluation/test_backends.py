"""Corrupting on the models' device: the same answers as on threads, and what a device cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort.corruptions import corruptions
from beaufort.datasets import Dataset, open_dataset
from beaufort.evaluation import Evaluation, evaluate
from beaufort.evaluation import schedule, work
from beaufort.evaluation.backends import Device, Threads, choose_backend
from beaufort.evaluation.plan import Setup
from beaufort.models import Model, as_model
from beaufort.store import FileStore
from beaufort.suites import Suite
from beaufort.testing._contracts import picture

torch = pytest.importorskip("torch", reason="torch is not installed")

CUDA = pytest.param(
    "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")]
)
SUITE = Suite(
    name="small", version=1, dataset="toys", scale="cifar", corruptions=("fog", "contrast"), severities=(1, 4)
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Thirty pictures, most of them of one size."""
    folder = tmp_path_factory.mktemp("toys")
    for i in range(30):
        file = folder / f"class{i % 5}" / f"{i:02d}.png"
        file.parent.mkdir(exist_ok=True)
        Image.fromarray(picture(32, 40 if i % 7 == 3 else 32, variant=i)).save(file)
    return open_dataset(f"folder:{folder}")


def network(device: str) -> Model:
    torch.manual_seed(0)
    layers = [torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 5)]
    options: dict[str, Any] = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.25), "max_batch": 7}
    return as_model(torch.nn.Sequential(*layers), name="toy", device=device, **options)


def brightness(images: np.ndarray) -> np.ndarray:
    """A model that takes arrays only."""
    assert isinstance(images, np.ndarray)
    return images.reshape(len(images), -1)[:, :5].astype(np.float32)


def on(
    device: str, data: Dataset, folder: Path, monkeypatch: pytest.MonkeyPatch, suite: Suite = SUITE
) -> Evaluation:
    def choose(_models: object, setup: Setup, _jobs: int) -> Device:
        return Device(setup, device)

    models = [network(device), as_model(brightness, classes=5, version="1")]
    with monkeypatch.context() as patch:
        patch.setattr(work, "choose_backend", choose)
        patch.setattr(schedule, "BLOCK", 8)
        return evaluate(models, suite, data, folder, keep_logits=True, batch_size=4)


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_answers_are_those_of_threads(
    device: str, data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [network("cpu"), as_model(brightness, classes=5, version="1")]
    evaluate(models, SUITE, data, tmp_path / "threads", keep_logits=True, batch_size=4)
    found = on(device, data, tmp_path / "device", monkeypatch)
    assert not found.notes
    stores = FileStore(tmp_path / "threads"), FileStore(tmp_path / "device")
    assert stores[0].cells().keys() == stores[1].cells().keys()  # the engine is no part of the question
    for cell in stores[0].cells().values():
        one, other = (store.read(cell) for store in stores)
        assert one["id"].to_pylist() == other["id"].to_pylist()
        for ours, theirs in zip(one["logits"].to_pylist(), other["logits"].to_pylist(), strict=True):
            assert np.allclose(ours, theirs, atol=1e-3)


def test_what_the_device_cannot_do_is_done_by_the_cpu_engine_and_told(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fog = type(corruptions["fog"])
    plain = fog.__call__

    def arrays_only(self: Any, images: Any, *args: Any, **options: Any) -> Any:
        if self.name == "fog" and not isinstance(images, np.ndarray):
            raise TypeError("fog is for arrays")
        return plain(self, images, *args, **options)

    monkeypatch.setattr(fog, "__call__", arrays_only)
    found = on("cpu", data, tmp_path, monkeypatch)
    (note,) = found.notes
    assert "fog is made by the CPU engine" in note
    assert "fog is for arrays" in note
    assert all(result.images == 30 for result in found.results)


def test_the_device_of_a_model_is_taken_if_it_is_a_gpu(data: Dataset) -> None:
    setup = Setup(data, 3, (), "cifar", 0)
    assert isinstance(choose_backend([network("cpu")], setup, 2), Threads)
    assert Threads(setup, 2).used(SUITE.conditions("toys")[1]) == "cpu"
    if torch.cuda.is_available():
        engine = choose_backend([network("cuda")], setup, 2)
        assert engine.used(SUITE.conditions("toys")[1]).startswith("cuda: NVIDIA")
