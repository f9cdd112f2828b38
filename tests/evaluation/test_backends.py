"""Corrupting on the device of the models: the same predictions as with threads, and limits of a device."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import OptionError
from beaufort.corruptions import corruptions
from beaufort.data import Dataset, load_dataset
from beaufort.evaluation import DeviceError, RunOptions, runner, tasks
from beaufort.evaluation.backends import BatchGroup, CpuBackend, DeviceBackend, choose_backend
from beaufort.evaluation.batches import Batch, ImageBlock
from beaufort.evaluation.sources import ImageSource
from beaufort.evaluation.tasks import TaskPart
from beaufort.models import Model, Network, as_model
from beaufort.results import Run, evaluate
from beaufort.store import FileStore
from beaufort.suites import Suite
from beaufort.testing._contracts import example_image
from tests.commands import shows

torch = pytest.importorskip("torch", reason="torch is not installed")

CUDA = pytest.param(
    "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")]
)
SUITE = Suite(
    name="small", version=1, dataset="toys", scale="cifar", corruptions=("fog", "contrast"), severities=(1, 4)
)


SEQUENCES = Suite(
    name="films",
    version=1,
    dataset="toys",
    scale="cifar",
    sequences=("gaussian_noise", "tilt"),
    metrics=("flip_probability",),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Thirty images, most of them of one size."""
    folder = tmp_path_factory.mktemp("toys")
    for i in range(30):
        file = folder / f"class{i % 5}" / f"{i:02d}.png"
        file.parent.mkdir(exist_ok=True)
        Image.fromarray(example_image(32, 40 if i % 7 == 3 else 32, variant=i)).save(file)
    return load_dataset(f"folder:{folder}")


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
) -> Run:
    def choose(_models: object, source: ImageSource, _jobs: int) -> DeviceBackend:
        return DeviceBackend(source, device)

    models = [network(device), as_model(brightness, classes=5, version="1")]
    with monkeypatch.context() as patch:
        patch.setattr(runner, "choose_backend", choose)
        patch.setattr(tasks, "BLOCK", 8)
        return evaluate(models, suite, data, folder, options=RunOptions(keep_logits=True, batch_size=4))


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("suite", [SUITE, SEQUENCES], ids=str)
def test_predictions_equal_those_of_threads(
    device: str, suite: Suite, data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = data.first(12) if suite is SEQUENCES else data
    models = [network("cpu"), as_model(brightness, classes=5, version="1")]
    evaluate(models, suite, data, tmp_path / "threads", options=RunOptions(keep_logits=True, batch_size=4))
    found = on(device, data, tmp_path / "device", monkeypatch, suite)
    assert not found.notes
    stores = FileStore(tmp_path / "threads"), FileStore(tmp_path / "device")
    assert stores[0].cells().keys() == stores[1].cells().keys()  # the backend is no part of the question
    for cell in stores[0].cells().values():
        one, other = (store.read(cell) for store in stores)
        assert one["id"].to_pylist() == other["id"].to_pylist()
        ours, theirs = (np.array(table["logits"].to_pylist(), np.float32) for table in (one, other))
        raw = cell.model["name"] == "brightness"  # its logits are values of pixels, which may be a level off
        assert np.allclose(ours, theirs, atol=1 if raw and suite is SEQUENCES else 1e-3)


def test_a_corruption_for_arrays_only_runs_on_the_cpu_with_a_note(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fog = corruptions["fog"]
    recipes = {scale: replace(recipe, tensors=False) for scale, recipe in fog.recipes.items()}
    on("cpu", data, tmp_path / "tensors", monkeypatch)
    monkeypatch.setattr(fog, "recipes", recipes)
    found = on("cpu", data, tmp_path / "arrays", monkeypatch)
    (note,) = found.notes
    assert shows(note, "fog", "CPU")
    assert all(result.images == 30 for result in found.results)
    stores = FileStore(tmp_path / "tensors"), FileStore(tmp_path / "arrays")
    for cell in stores[0].cells().values():
        assert stores[0].read(cell)["top"].to_pylist() == stores[1].read(cell)["top"].to_pylist()
    backends = {
        cell.condition["corruption"]: origin["backend"]
        for _, cell, _, gathered in stores[1].summaries()
        for origin in gathered["of"]
    }
    assert (backends["fog"], backends["contrast"]) == ("cpu", "cpu")  # the device is the processor here
    with pytest.raises(OptionError, match="tensors=False"):
        fog(np.zeros((32, 32, 3), np.uint8), 1, backend="torch")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            RuntimeError("a kernel's bug"),
            r"toys\d*/fog@1 on \d+ images\): RuntimeError: a kernel",
        ),
        (torch.OutOfMemoryError("no more"), "ran out of memory .*batch_size"),
    ],
)
def test_a_failure_of_the_device_is_an_error(
    error: Exception, says: str, data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(corruptions["fog"])
    plain = kind.__call__

    def failing(self: Any, images: Any, *args: Any, **options: Any) -> Any:
        if self.name == "fog" and not isinstance(images, np.ndarray):
            raise error
        return plain(self, images, *args, **options)

    monkeypatch.setattr(kind, "__call__", failing)
    with pytest.raises(DeviceError, match=says):
        on("cpu", data, tmp_path, monkeypatch)


def test_a_model_that_takes_too_much_memory_is_an_error(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any) -> Any:
        raise torch.OutOfMemoryError("no more")

    plain = network("cpu")
    assert isinstance(plain, Network)
    model = replace(plain, on_device=full)
    monkeypatch.setattr(runner, "choose_backend", lambda _models, source, _jobs: DeviceBackend(source, "cpu"))
    with pytest.raises(DeviceError, match=r"\d+ images\).*batch_size"):
        evaluate([model], SUITE, data, tmp_path)


def test_the_device_of_a_model_is_taken_if_it_is_a_gpu(data: Dataset) -> None:
    source = ImageSource(data, 3, (), "cifar", 0)
    assert isinstance(choose_backend([network("cpu")], source, 2), CpuBackend)
    assert CpuBackend(source, 2).used(SUITE.conditions("toys")[1]) == "cpu"
    if torch.cuda.is_available():
        backend = choose_backend([network("cuda")], source, 2)
        assert backend.used(SUITE.conditions("toys")[1]).startswith("cuda: NVIDIA")
        assert (
            DeviceBackend(source, "cuda")._stream is DeviceBackend(source, "cuda")._stream
        )  # with the memory it has


def test_the_model_begins_with_the_first_batch(data: Dataset) -> None:
    source = ImageSource(data, 1, (), "cifar", 0)
    parts = [TaskPart(condition, (0, 1), ((0, 0),)) for condition in SUITE.conditions("toys")]
    made = []

    def groups() -> Iterator[BatchGroup]:
        for part in parts:
            made.append(part)
            yield (Batch(part, block, (0,), block.image(0).shape, True),)

    with ThreadPoolExecutor(1) as pool:
        block = ImageBlock(source, (0, 1), pool)
        begun = [len(made) for _ in DeviceBackend(source, "cpu").corrupted(pool, groups())]
    assert begun == [1, 4, 5, 5, 5]  # later, it is two batches behind
