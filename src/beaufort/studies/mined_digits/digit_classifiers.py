"""Eight small classifiers that have little in common, three judges, and how they are trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor, nn

from beaufort._core.files import write_bytes
from beaufort.models import Model, as_model

JUDGES = ("judge-1", "judge-2", "judge-3")
"""Networks that saw all nuisances: they stand in for reviewers."""


def _linear() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))


def _perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(3 * 32 * 32, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def _lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(16, 32, 5), nn.Tanh(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(800, 120), nn.Tanh(), nn.Linear(120, 10),
    )  # fmt: skip


def _vgg(width: int = 32) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in ((3, width), (width, 2 * width), (2 * width, 4 * width)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * width * 16, 128), nn.ReLU(), nn.Linear(128, 10))


def _large_kernels() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 9, stride=2, padding=4), nn.ReLU(),
        nn.Conv2d(32, 64, 9, stride=2, padding=4), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 10),
    )  # fmt: skip


def _separable() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU()]
    for before, after in ((32, 64), (64, 128)):
        layers += [nn.Conv2d(before, before, 5, padding=2, groups=before), nn.Conv2d(before, after, 1)]
        layers += [nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(512, 10))


def _residual() -> nn.Module:
    class Block(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels),
            )  # fmt: skip

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.relu(x + self.body(x))

    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), Block(32), nn.MaxPool2d(2), nn.Conv2d(32, 64, 1), Block(64),
        nn.MaxPool2d(2), Block(64), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def _patches() -> nn.Module:
    """A transformer over 4 × 4 patches."""
    import torch

    class Patches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cut = nn.Conv2d(3, 64, 4, stride=4)
            self.where = nn.Parameter(torch.randn(1, 64, 64) * 0.02)
            self.body = nn.Sequential(
                *(
                    nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True, norm_first=True)
                    for _ in range(3)
                )
            )
            self.head = nn.Linear(64, 10)

        def forward(self, x: Tensor) -> Tensor:
            tokens = self.cut(x).flatten(2).transpose(1, 2) + self.where
            logits: Tensor = self.head(self.body(tokens).mean(dim=1))
            return logits

    return Patches()


CLASSIFIERS: dict[str, Callable[[], nn.Module]] = {
    "linear": _linear,
    "perceptron": _perceptron,
    "lenet": _lenet,
    "vgg": _vgg,
    "large-kernels": _large_kernels,
    "separable": _separable,
    "residual": _residual,
    "patches": _patches,
}


def train_classifier(
    name: str,
    digits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    path: Path,
    *,
    painted: NDArray[np.uint8] | None = None,
    steps: int = 3000,
    batch: int = 256,
    device: str = "cpu",
    seed: int = 0,
) -> float:
    """Train a network on digits in plain colors, new in every batch; gives the mean loss of the last tenth.

    Args:
        name: of `CLASSIFIERS` or `JUDGES`.
        digits: masks `(n, 32, 32)` from 0 to 255.
        labels: of the digits, and of `painted`.
        path: safetensors to write.
        painted: the same digits with nuisances, shown in half of the batches, for judges.
        steps: batches.
        batch: images in each.
        device: cpu, cuda or cuda:1.
        seed: of everything random.
    """
    torch.manual_seed(seed)
    network = _network(name).to(device)
    masks, truth = torch.as_tensor(digits).to(device), torch.as_tensor(labels).to(device)
    shown = None if painted is None else torch.as_tensor(painted).to(device)
    rng = torch.Generator(device).manual_seed(seed)
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps + 1)
    total, counted = torch.zeros((), device=device), max(1, steps // 10)
    for step in range(steps):
        chosen = torch.randint(len(masks), (batch,), generator=rng, device=device)
        if shown is not None and step % 2:
            images = shown[chosen].permute(0, 3, 1, 2).float() / 255
        else:
            images = _colored(masks[chosen].float() / 255, rng)
        loss = torch.nn.functional.cross_entropy(network(_centered(images)), truth[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step >= steps - counted:
            total += loss.detach()
    tensors = {key: value.contiguous().cpu() for key, value in network.state_dict().items()}
    write_bytes(path, save(tensors))
    return float(total) / counted


def load_classifier(name: str, path: Path, device: str = "cpu") -> Model:
    """A trained network as a model."""
    network = _network(name)
    network.load_state_dict(load(path.read_bytes()))
    return as_model(
        network.eval(), name=name, classes=list(map(str, range(10))), device=device,
        input_size=32, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25),
    )  # fmt: skip


def _network(name: str) -> nn.Module:
    return _vgg(48) if name in JUDGES else CLASSIFIERS[name]()


def _centered(images: Tensor) -> Tensor:
    return (images - 0.5) / 0.25


def _colored(masks: Tensor, rng: torch.Generator) -> Tensor:
    """Return digits in a random color on a ground of another one; colors too alike are pushed apart."""
    colors = torch.rand((2, len(masks), 3, 1, 1), generator=rng, device=masks.device)
    apart = (colors[0] - colors[1]).mean(dim=1, keepdim=True)
    push = (0.4 - apart.abs()).clamp(min=0) / 2 * torch.where(apart < 0, -1.0, 1.0)
    front, back = (colors[0] + push).clamp(0, 1), (colors[1] - push).clamp(0, 1)
    return masks[:, None] * front + (1 - masks[:, None]) * back
