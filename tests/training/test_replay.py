"""Recorded steps: the bookkeeping anywhere, and the numbers where there is a GPU."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from beaufort.training import TrainingTensors, get_recipe, train
from beaufort.training.replay import ReplayedStep


class Stream:
    def wait_stream(self, other: Any) -> None:
        pass


class Cuda:
    """A GPU that records what is done between the lines, and does it again when asked."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
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
        if self.refuses:
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


def test_what_cannot_be_recorded_is_made_one_by_one() -> None:
    step, seen = step_on(Cuda(refuses=True))
    for _ in range(3):
        step(torch.ones(2), torch.zeros(2))
    with pytest.warns(UserWarning, match=r"one by one \(operation not permitted when stream is capturing\)"):
        step(torch.ones(2), torch.zeros(2))
    step(torch.ones(2), torch.zeros(2))
    assert len(seen) == 5


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
