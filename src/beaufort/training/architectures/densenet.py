"""DenseNet for small images: Huang et al. (2017), arXiv:1608.06993.

Every layer sees the features of all layers before it in its block. The paper of Icons-50 names "DenseNet-40
(k = 24)". The program behind it has bottlenecks (a 1×1 convolution to 4k features before each 3×3
convolution), so a block has six such pairs instead of twelve layers, starts from 2k filters, and does not
compress between blocks: DenseNet-B in the terms of the paper.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort.training.architectures._batch_norm import BatchNorm
from beaufort.training.architectures._layers import blocks_of, kaiming_fan_out


class Bottleneck(nn.Module):
    """Adds `growth` new features."""

    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.first_norm = BatchNorm(inside, relu=True)
        self.first = nn.Conv2d(inside, 4 * growth, 1, bias=False)
        self.second_norm = BatchNorm(4 * growth, relu=True)
        self.second = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return all features so far and the new ones."""
        y = self.first(self.first_norm(x))
        y = self.second(self.second_norm(y))
        return torch.cat((x, y), 1)


class Transition(nn.Module):
    """A 1×1 convolution and pooling between blocks."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.norm = BatchNorm(inside, relu=True)
        self.mix = nn.Conv2d(inside, outside, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of half the size."""
        return functional.avg_pool2d(self.mix(self.norm(x)), 2)


class DenseNet(nn.Module):
    """A convolution and three dense blocks, on 32×32, 16×16 and 8×8 pixels."""

    def __init__(self, depth: int, growth: int, compression: float, classes: int) -> None:
        super().__init__()
        pairs = blocks_of(depth, "DenseNet with bottlenecks", layers=2, others=4)
        width = 2 * growth
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        layers: list[nn.Module] = []
        for block in range(3):
            if block:
                layers.append(Transition(width, int(width * compression)))
                width = int(width * compression)
            layers += [Bottleneck(width + place * growth, growth) for place in range(pairs)]
            width += pairs * growth
        self.blocks = nn.Sequential(*layers)
        self.norm = BatchNorm(width, relu=True)
        self.classify = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, `(n, classes)`."""
        features = self.norm(self.blocks(self.stem(images)))
        return self.classify(features.mean((2, 3)))


def make(depth: int = 40, growth: int = 24, compression: float = 1.0, classes: int = 50) -> DenseNet:
    """Return DenseNet-40 with 24 features per layer; with `compression` below 1, a DenseNet-BC."""
    return kaiming_fan_out(DenseNet(depth, growth, compression, classes))
