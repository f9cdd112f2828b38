"""Colored digits, eight small and diverse classifiers, and three judges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor, nn

from beaufort._core.files import write_bytes
from beaufort.mining import BUILT_IN, SURFACES, ConditionPair
from beaufort.models import Model, as_model

SIDE = 32
JUDGES = ("judge-1", "judge-2", "judge-3")
"""Networks trained with all nuisances, in place of reviewers."""

_NUISANCES = [(kind, name) for kind, names in BUILT_IN.items() for name in names]
PAIRS = tuple(ConditionPair(str(digit), *nuisance) for nuisance in _NUISANCES for digit in range(10))
"""Every digit with every built-in nuisance."""


def placed(digits: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return digits `(n, 28, 28)` as masks `(n, 32, 32)` in 0..1, each shifted by up to two pixels."""
    masks = np.zeros((len(digits), SIDE, SIDE), np.float32)
    for mask, digit, (y, x) in zip(masks, digits, rng.integers(0, 5, (len(digits), 2)), strict=True):
        mask[y : y + 28, x : x + 28] = digit / np.float32(255)
    return masks


def paint(
    digits: NDArray[np.uint8], labels: NDArray[np.int64], *, seed: int = 0
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return digits with random nuisances as images `(n, 32, 32, 3)`, and the index of each in `PAIRS`.

    On a background, the digit has a color that contrasts with it. A texture or material covers the digit, on
    gray: parts of it are lighter than the ground, and parts darker.
    """
    rng = np.random.default_rng([seed, len(digits)])
    chosen = rng.integers(len(_NUISANCES), size=len(digits))
    images = np.empty((len(digits), SIDE, SIDE, 3), np.uint8)
    for place, mask in enumerate(placed(digits, rng)):
        kind, nuisance = _NUISANCES[chosen[place]]
        surface = SURFACES[nuisance](SIDE, rng)
        layers: tuple[NDArray[Any], NDArray[Any]] = surface, np.full(3, 0.5)  # gray, as in composites
        if kind == "background":
            dark = float(surface.mean()) < 0.5
            layers = rng.uniform(0, 0.25, 3) + (0.75 if dark else 0.0), surface
        image = mask[..., None] * layers[0] + (1 - mask[..., None]) * layers[1]
        images[place] = (image.clip(0, 1) * 255).round()
    return images, chosen.astype(np.int64) * 10 + labels


def _linear() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))


def _perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(3 * 32 * 32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, 10),
    )  # fmt: skip


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


class _Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(x + self.body(x))


def _residual() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), _Block(32), nn.MaxPool2d(2), nn.Conv2d(32, 64, 1), _Block(64),
        nn.MaxPool2d(2), _Block(64), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


class _Patches(nn.Module):
    """A transformer over 4 × 4 patches."""

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


CLASSIFIERS: dict[str, Callable[[], nn.Module]] = {
    "linear": _linear,
    "perceptron": _perceptron,
    "lenet": _lenet,
    "vgg": _vgg,
    "large-kernels": _large_kernels,
    "separable": _separable,
    "residual": _residual,
    "patches": _Patches,
}


def train_classifier(
    name: str,
    digits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    path: Path,
    *,
    painted: NDArray[np.uint8] | None,
    steps: int,
    batch: int,
    device: str,
    seed: int,
) -> float:
    """Train a network, write its weights, and return the mean loss of the last tenth of the steps.

    Args:
        name: a name in `CLASSIFIERS` or `JUDGES`.
        digits: masks `(n, 32, 32)` in 0..255, in new plain colors in every batch.
        labels: labels of `digits` and `painted`.
        path: safetensors file to write.
        painted: the same digits with nuisances, for every second batch of judges.
        steps: number of batches.
        batch: batch size.
        device: `cpu`, `cuda` or `cuda:1`.
        seed: seed of all random numbers.
    """
    torch.manual_seed(seed)
    network = _network(name).to(device)
    masks, targets = torch.as_tensor(digits).to(device), torch.as_tensor(labels).to(device)
    nuisances = None if painted is None else torch.as_tensor(painted).to(device)
    rng = torch.Generator(device).manual_seed(seed)
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps + 1)
    total, last = torch.zeros((), device=device), max(1, steps // 10)
    for step in range(steps):
        chosen = torch.randint(len(masks), (batch,), generator=rng, device=device)
        if nuisances is not None and step % 2:
            images = nuisances[chosen].permute(0, 3, 1, 2).float() / 255
        else:
            images = _colored(masks[chosen].float() / 255, rng)
        loss = torch.nn.functional.cross_entropy(network((images - 0.5) / 0.25), targets[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step >= steps - last:
            total += loss.detach()
    write_bytes(path, save({key: value.contiguous().cpu() for key, value in network.state_dict().items()}))
    return float(total) / last


def load_classifier(name: str, path: Path, device: str = "cpu") -> Model:
    """Return a trained network as a model."""
    network = _network(name)
    network.load_state_dict(load(path.read_bytes()))
    return as_model(
        network.eval(), name=name, classes=list(map(str, range(10))), device=device,
        input_size=SIDE, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25),
    )  # fmt: skip


def _network(name: str) -> nn.Module:
    return _vgg(48) if name in JUDGES else CLASSIFIERS[name]()


def _colored(masks: Tensor, rng: torch.Generator) -> Tensor:
    """Return digits in a random color on a ground of another one; similar colors are pushed apart."""
    colors = torch.rand((2, len(masks), 3, 1, 1), generator=rng, device=masks.device)
    apart = (colors[0] - colors[1]).mean(dim=1, keepdim=True)
    push = (0.4 - apart.abs()).clamp(min=0) / 2 * torch.where(apart < 0, -1.0, 1.0)
    front, back = (colors[0] + push).clamp(0, 1), (colors[1] - push).clamp(0, 1)
    return masks[:, None] * front + (1 - masks[:, None]) * back
