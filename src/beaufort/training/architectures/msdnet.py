"""MSDNet, the multi-scale dense network: Huang et al. (2018), arXiv:1703.09844.

Each layer has features at three scales. A scale sees all its earlier features, as in a DenseNet, and those of
the next finer scale through a strided convolution. There are several exits (classifiers) on the coarsest
scale; their losses are summed, and the last exit predicts. The finest scale ends after a third of the layers
and the next one after two thirds, with half of the features.

The paper of Icons-50 gives no configuration; its program contains an unused file of this network, with three
scales and 32 first filters. Ten exits, four layers before the first and two before each other one, and 6, 12
and 24 new features per layer are those of the authors' program for CIFAR.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort.training.architectures._batch_norm import BatchNorm
from beaufort.training.architectures._layers import kaiming_fan_out
from beaufort.training.ending import label_entropy

_FACTORS = (1, 2, 4)
"""Relative width of each scale, the finest first, and of its bottlenecks."""

Scales = list[Tensor]
"""Features of each remaining scale, the finest first."""


def _conv(inside: int, outside: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    """Convolution, batch normalization, ReLU."""
    conv = nn.Conv2d(inside, outside, kernel, stride, padding=kernel // 2, bias=False)
    return nn.Sequential(conv, BatchNorm(outside, relu=True))


def _bottleneck(inside: int, outside: int, factor: int, stride: int = 1) -> nn.Sequential:
    middle = min(inside, factor * outside)
    return nn.Sequential(_conv(inside, middle, 1), _conv(middle, outside, stride=stride))


class Layer(nn.Module):
    """Adds features at each scale; the finest scale may end here."""

    def __init__(self, widths: list[int], growth: int, kept: int) -> None:
        super().__init__()
        first = len(_FACTORS) - len(widths)
        self.left_out = len(widths) - kept
        each = []
        for place in range(self.left_out, len(widths)):
            scale = first + place
            new = growth * _FACTORS[scale]
            if place == 0:
                parts = [_bottleneck(widths[0], new, _FACTORS[scale])]
            else:
                finer = _bottleneck(widths[place - 1], new // 2, _FACTORS[scale - 1], stride=2)
                parts = [finer, _bottleneck(widths[place], new // 2, _FACTORS[scale])]
            each.append(nn.ModuleList(parts))
        self.parts = nn.ModuleList(each)

    def forward(self, scales: Scales) -> Scales:
        """Return the remaining scales."""
        made = []
        for place, parts in enumerate(self.parts, self.left_out):
            assert isinstance(parts, nn.ModuleList)
            seen = scales[max(0, place - 1) : place + 1]
            new = [part(features) for part, features in zip(parts, seen, strict=True)]
            made.append(torch.cat((scales[place], *new), 1))
        return made


class Halve(nn.Module):
    """A 1×1 convolution at each scale that halves the number of features."""

    def __init__(self, widths: list[int], halves: list[int]) -> None:
        super().__init__()
        self.each = nn.ModuleList(_conv(*pair, 1) for pair in zip(widths, halves, strict=True))

    def forward(self, scales: Scales) -> Scales:
        """Return the same scales."""
        return [halve(features) for halve, features in zip(self.each, scales, strict=True)]


class Exit(nn.Module):
    """Two strided convolutions, global average pooling, a linear layer."""

    def __init__(self, inside: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.reduce = nn.Sequential(_conv(inside, hidden, stride=2), _conv(hidden, hidden, stride=2))
        self.classify = nn.Linear(hidden, classes)

    def forward(self, features: Tensor) -> Tensor:
        """Return logits, `(n, classes)`."""
        return self.classify(self.reduce(features).mean((2, 3)))


class MSDNet(nn.Module):
    """Layers over scales, with exits between them."""

    def __init__(
        self, exits: int, base: int, step: int, growth: int, first: int, hidden: int, classes: int
    ) -> None:
        super().__init__()
        widths = [first * factor for factor in _FACTORS]
        self.start = nn.ModuleList(
            _conv(inside, outside, stride=1 if place == 0 else 2)
            for place, (inside, outside) in enumerate(zip([3, *widths], widths, strict=False))
        )
        total = base + step * (exits - 1)
        interval = -(-total // len(_FACTORS))
        stages, made = [], 0
        heads = []
        for number in range(exits):
            layers: list[nn.Module] = []
            for _ in range(step if number else base):
                kept = len(_FACTORS) - made // interval
                layers.append(Layer(widths, growth, kept))
                ended = kept < len(widths)
                factors = _FACTORS[-kept:]
                widths = [w + growth * f for w, f in zip(widths[-kept:], factors, strict=True)]
                if ended:
                    halves = [w // f // 2 * f for w, f in zip(widths, factors, strict=True)]
                    layers.append(Halve(widths, halves))
                    widths = halves
                made += 1
            stages.append(nn.Sequential(*layers))
            heads.append(Exit(widths[-1], hidden, classes))
        self.stages, self.heads = nn.ModuleList(stages), nn.ModuleList(heads)

    def exits(self, images: Tensor) -> list[Tensor]:
        """Return the logits of every exit, `(n, classes)` each."""
        scales: Scales = []
        for start in self.start:
            scales.append(start(scales[-1] if scales else images))
        found = []
        for stage, head in zip(self.stages, self.heads, strict=True):
            scales = stage(scales)
            found.append(head(scales[-1]))
        return found

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of the last exit, `(n, classes)`."""
        return self.exits(images)[-1]

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return the sum of the cross entropies of all exits."""
        return torch.stack(
            [functional.cross_entropy(one.float(), labels) for one in self.exits(images)]
        ).sum()

    def constant_loss(self, counts: Sequence[int]) -> float:
        """Return the least loss of constant predictions."""
        return len(self.heads) * label_entropy(counts)


def make(
    exits: int = 10,
    base: int = 4,
    step: int = 2,
    growth: int = 6,
    first: int = 32,
    hidden: int = 128,
    classes: int = 50,
) -> MSDNet:
    """Return a network with three scales, ten exits and 22 layers."""
    return kaiming_fan_out(MSDNet(exits, base, step, growth, first, hidden, classes))
