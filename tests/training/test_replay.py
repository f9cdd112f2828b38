"""Recorded steps: the bookkeeping anywhere, and the numbers where there is a GPU."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from beaufort.training import Recipe, TrainingTensors, get_recipe, train
from beaufort.training.interventions import interventions, make_intervention
from beaufort.training.replay import ReplayedStep


class Stream:
    def wait_stream(self, other: Any) -> None:
        pass


class Cuda:
    """A simulated GPU that records operations and replays them."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.replayed = 0

    def current_stream(self, device: Any) -> Any:
        return Stream()

    def Stream(self, device: Any) -> Any:  # noqa: N802
        return Stream()

    def stream(self, stream: Any) -> Any:
        return nullcontext()

    def device(self, device: Any) -> Any:
        return nullcontext()

    def synchronize(self, device: Any) -> None:
        pass

    def CUDAGraph(self) -> Any:  # noqa: N802
        return self

    @contextmanager
    def graph(self, graph: Any) -> Any:
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        yield

    def replay(self) -> None:
        self.replayed += 1


def step_on(cuda: Cuda) -> tuple[ReplayedStep, list[float]]:
    seen: list[float] = []

    def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        seen.append(float(images.sum()))
        return images.sum()

    replayed = ReplayedStep(step)
    replayed.torch = type("torch", (), {"cuda": cuda})
    return replayed, seen


def test_three_steps_are_made_and_the_others_replayed() -> None:
    cuda = Cuda()
    step, seen = step_on(cuda)
    for number in range(6):
        step(torch.full((2,), number), torch.zeros(2))
    assert seen == [0, 2, 4, 6]  # the last of them was only recorded
    assert cuda.replayed == 3
    assert step.images.tolist() == [5, 5]


def test_steps_that_cannot_be_recorded_are_not_replayed() -> None:
    step, seen = step_on(Cuda(fails=True))
    for _ in range(3):
        step(torch.ones(2), torch.zeros(2))
    with pytest.warns(UserWarning, match="stream is capturing"):
        step(torch.ones(2), torch.zeros(2))
    step(torch.ones(2), torch.zeros(2))
    assert len(seen) == 5


Change = Callable[[torch.Tensor], torch.Tensor]
_counter = itertools.count()
_own = np.random.default_rng(0)
_rough = torch.Generator().manual_seed(0)
FROZEN: dict[str, Change] = {
    "draws of torch": lambda images: images + torch.rand(2).to(images.device),
    "draws of numpy": lambda images: images * float(np.random.rand()),  # noqa: NPY002  what users write
    "draws of python": lambda images: images if random.random() < 0.001 else images * 2,
    "a generator of numpy": lambda images: images + torch.from_numpy(_own.random(2)).to(images.device),
    "a generator of torch": lambda images: images + torch.rand(2, generator=_rough).to(images.device),
    "a count": lambda images: images * next(_counter),
    "a branch": lambda images: images + 1 if next(_counter) % 2 else images,
    "one operation more": lambda images: images.cos().sin() if next(_counter) % 2 else images.cos(),
}
ALIKE: dict[str, Change] = {
    "draws of the device": lambda images: images + torch.rand_like(images),
    "a constant": lambda images: images * 0.5 + torch.tensor([1.0, 2.0]).to(images.device),
    "nothing": lambda images: images,
}


def recorded(change: Change) -> ReplayedStep:
    """A step after six batches on a device whose values cannot be read."""
    step = ReplayedStep(lambda images, labels: (change(images) + labels).sum())
    step.torch = type("torch", (), {"cuda": Cuda()})
    for _ in range(6):
        step(torch.ones(2, device="meta"), torch.zeros(2, device="meta"))
    return step


@pytest.mark.parametrize("change", FROZEN.values(), ids=FROZEN)
def test_steps_that_a_recording_would_freeze_are_not_replayed(change: Change) -> None:
    with pytest.warns(UserWarning, match=r"random numbers|not do the same"):
        assert recorded(change).graph is None


@pytest.mark.parametrize("change", ALIKE.values(), ids=ALIKE)
def test_equal_steps_are_recorded(change: Change) -> None:
    assert recorded(change).graph is not None


def test_a_failed_recording_does_not_change_random_numbers() -> None:
    drawn: list[float] = []

    def change(images: torch.Tensor) -> torch.Tensor:
        drawn.append(float(torch.rand(())))
        return images

    torch.manual_seed(3)
    with pytest.warns(UserWarning, match="CPU"):
        recorded(change)
    torch.manual_seed(3)
    expected = [float(torch.rand(())) for _ in range(6)]
    assert [*drawn[:3], *drawn[4:]] == expected  # the fourth is the one that was tried
    assert drawn[3] == expected[3]


def test_changes_between_epochs_are_recorded_again() -> None:
    factors = iter([1, 1, 1, 1, 2, 2])
    step = ReplayedStep(lambda images, _: (images * next(factors)).sum())
    step.torch = type("torch", (), {"cuda": Cuda()})
    for batch in range(8):
        if batch == 5:
            step.forget()
        step(torch.ones(2, device="meta"), torch.zeros(2, device="meta"))
    assert step.graph is not None
    assert not list(factors)


RECORDABLE = {"plain", "corruptions", "image_filter", "network", "noise", "pruning", "stability"}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"shift": 2, "flip": True, "mixup": 0.5},
    "corruptions": {"names": ["stripe"], "scale": "mnist"},
    "image_filter": {"image_filter": "stretch"},
    "network": {"steps": 1, "width": 2},
    "noise": {"clean": 0.5},
    "pgd": {"steps": 1},
    "pruning": {"fraction": 0.5},
    "stability": {"shift": 1},
}


@pytest.mark.filterwarnings("ignore:training steps are not replayed")
@pytest.mark.parametrize("name", interventions)
def test_which_interventions_are_recorded(patches: TrainingTensors, quick: Recipe, name: str) -> None:
    """Here the processor plays the device, so what counts are operations, sizes and numbers."""
    from beaufort.training.architectures import build

    torch.manual_seed(0)
    model = build(quick.architecture, quick.architecture_options, classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    made = make_intervention(name, OPTIONS.get(name, {}), seed=0, device="cpu")

    def advance(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        loss = made.loss(model, images.float() / 255, labels)
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimizer.step()
        return loss.detach()

    step = ReplayedStep(advance)
    step.torch = type("torch", (), {"cuda": Cuda()})
    for start in range(0, 80, 16):
        step(patches.images[start : start + 16], patches.labels[start : start + 16])
    assert (step.graph is not None) == (name in RECORDABLE)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is there")
@pytest.mark.parametrize("name", ["icons-resnet20", "icons-shake26-32d", "icons-condensenet86"])
def test_replayed_steps_learn_the_same(tmp_path: Path, name: str) -> None:
    """Random numbers, rates and weights are those of steps that are made one by one, up to rounding."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 255, (256, 3, 32, 32), dtype=torch.uint8, generator=generator)
    data = TrainingTensors("noise", tuple("abcde"), images, torch.arange(256) % 5)
    recipe = get_recipe(name).changed(["epochs=3", "batch=32", "precision=float32"])
    found = {}
    for replay in (True, False):
        made = train(replace(recipe, replay=replay), data, output=tmp_path / str(replay), device="cuda")
        assert made.facts["replayed"] is replay
        found[replay] = made.facts["losses"]
    assert found[True] == pytest.approx(found[False], rel=0.02)
