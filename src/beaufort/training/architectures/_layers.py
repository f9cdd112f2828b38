"""Shared parts of networks: normalization, residual stages, initial weights, and network size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn, tensor

from beaufort._core.errors import OptionError
from beaufort.training.architectures._batch_norm import BatchNorm

Network = TypeVar("Network", bound=nn.Module)
Block = Callable[[int, int, int], nn.Module]
"""Makes a block from the number of input features, filters and the stride."""


class Normalize(nn.Module):
    """Subtract the mean and divide by the standard deviation, of all channels or of each."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", tensor(std).view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return normalized images."""
        return (images - self.mean) / self.std


class Convolutions(nn.Module):
    """Two 3×3 convolutions with batch normalization; ReLU between them and optionally at the end."""

    def __init__(self, inside: int, outside: int, stride: int, *, relu: bool = False) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.first_norm = BatchNorm(outside, relu=True)
        self.second = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.second_norm = BatchNorm(outside, relu=relu)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the same size, or of half the size if the stride is 2."""
        return self.added_to(None, x)

    def added_to(self, beside: Tensor | None, x: Tensor) -> Tensor:
        """Return the features added to `beside` before the last ReLU."""
        return self.second_norm(self.second(self.first_norm(self.first(x))), beside)


class StagedNetwork(nn.Module):
    """A convolution, three stages of blocks, global average pooling, a linear layer."""

    def __init__(
        self, stem: int, filters: int, blocks: int, block: Block, classes: int, *, expansion: int = 1
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, stem, 3, padding=1, bias=False), BatchNorm(stem, relu=True))
        self.stages = three_stages(stem, filters, blocks, block, expansion=expansion)
        self.classify = nn.Linear(4 * filters * expansion, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, `(n, classes)`."""
        features = self.stages(self.stem(images))
        return self.classify(features.mean((2, 3)))


def blocks_of(depth: int, network: str, *, layers: int, others: int) -> int:
    """Return the number of blocks per stage of a network with `layers` per block and `others` outside.

    >>> blocks_of(20, "ResNet", layers=2, others=2)
    3
    """
    blocks, rest = divmod(depth - others, 3 * layers)
    if blocks < 1 or rest:
        raise OptionError(f"depth of a {network} must be {3 * layers}n + {others}, got {depth}")
    return blocks


def three_stages(
    inside: int, filters: int, blocks: int, block: Block, *, expansion: int = 1
) -> nn.Sequential:
    """Return blocks with `filters`, then 2 and 4 times as many; each has `expansion` × filters outputs."""
    stages = []
    for number, width in enumerate((filters, 2 * filters, 4 * filters)):
        for place in range(blocks):
            stages.append(block(inside, width, 2 if number and not place else 1))
            inside = expansion * width
    return nn.Sequential(*stages)


def projection(inside: int, outside: int, stride: int) -> nn.Sequential:
    """Return a shortcut: a 1×1 convolution with batch normalization if the width changes."""
    if inside == outside:
        return nn.Sequential()
    return nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), BatchNorm(outside))


def kaiming_fan_out(network: Network) -> Network:
    """Draw convolutions from a normal distribution with variance 2 / fan-out (He et al. 2015).

    As in the program of Icons-50, biases of linear layers are zero.
    """
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.bias)
    return network


def ten_classes(network: str, classes: int) -> None:
    """Reject data with another number of classes."""
    if classes != 10:
        raise OptionError(f"the network {network!r} requires data with 10 classes, got {classes}")


class NetworkSize(NamedTuple):
    """Size of a network as reported in papers."""

    parameters: int
    """Without pruned ones."""
    multiply_adds: int
    """Of convolutions and linear layers, for one image."""


def network_size(network: nn.Module, shape: tuple[int, int, int] = (3, 32, 32)) -> NetworkSize:
    """Count the parameters of a network and its multiply-adds for an image.

    >>> layers = nn.Conv2d(3, 8, 3, padding=1), nn.Flatten(), nn.Linear(8 * 64, 10)
    >>> network_size(nn.Sequential(*layers), (3, 8, 8))
    NetworkSize(parameters=5354, multiply_adds=18944)
    """
    found = 0

    def count(layer: Any, _: Any, made: Tensor) -> None:
        nonlocal found
        places = made[0].numel() // made.shape[1]
        found += places * (layer.weight.numel() - _pruned(layer))

    hooks = [
        layer.register_forward_hook(count)
        for layer in network.modules()
        if isinstance(layer, nn.Conv2d | nn.Linear)
    ]
    learning = network.training
    try:
        with torch.no_grad():
            network.eval()(torch.zeros(1, *shape))
    finally:
        network.train(learning)
        for hook in hooks:
            hook.remove()
    pruned = sum(map(_pruned, network.modules()))
    return NetworkSize(sum(one.numel() for one in network.parameters()) - pruned, found)


def _pruned(layer: nn.Module) -> int:
    """Return the number of masked weights."""
    mask = getattr(layer, "mask", None)
    return int((mask == 0).sum()) if isinstance(mask, Tensor) else 0
