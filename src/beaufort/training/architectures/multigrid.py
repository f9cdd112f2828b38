"""Multigrid-ResNet: Ke, Maire & Yu (2017), "Multigrid neural architectures", arXiv:1611.07661.

A layer holds a pyramid of grids, each of half the size of the one before. Every grid is computed from the
finer one (max-pooled), itself, and the coarser one (nearest neighbors), by one convolution over all three.
A residual unit has two such layers. Between stages the pyramid is pooled, and a grid that would become
smaller than 4×4 ends. With these widths, parameters and multiply-adds are within 10 % of ResNet-20's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort.training.architectures._batch_norm import BatchNorm
from beaufort.training.architectures._layers import kaiming_fan_out

Pyramid = list[Tensor]
"""Features of each grid, the finest first."""


class GridLayer(nn.Module):
    """One convolution with batch normalization and ReLU for each grid, over itself and its neighbors."""

    def __init__(self, inside: Sequence[int], outside: Sequence[int]) -> None:
        super().__init__()
        seen = [sum(inside[max(0, place - 1) : place + 2]) for place in range(len(outside))]
        self.convs = nn.ModuleList(
            nn.Sequential(nn.Conv2d(one, width, 3, padding=1, bias=False), BatchNorm(width, relu=True))
            for one, width in zip(seen, outside, strict=True)
        )

    def forward(self, pyramid: Pyramid, beside: Sequence[Tensor | None]) -> Pyramid:
        """Return the pyramid after the convolutions; `beside` is added before ReLU."""
        made = []
        for place, pair in enumerate(self.convs):
            assert isinstance(pair, nn.Sequential)
            conv, norm = pair
            near = [pyramid[place]]
            if place:
                near.insert(0, functional.max_pool2d(pyramid[place - 1], 2))
            if place + 1 < len(pyramid):
                near.append(functional.interpolate(pyramid[place + 1], scale_factor=2.0, mode="nearest"))
            made.append(norm(conv(torch.cat(near, 1)), beside[place]))
        return made


class GridBlock(nn.Module):
    """Two layers with a shortcut on each grid."""

    def __init__(self, inside: Sequence[int], outside: Sequence[int]) -> None:
        super().__init__()
        self.first, self.second = GridLayer(inside, outside), GridLayer(outside, outside)
        self.shortcuts = nn.ModuleList(
            nn.Sequential()
            if one == other
            else nn.Sequential(nn.Conv2d(one, other, 1, bias=False), BatchNorm(other))
            for one, other in zip(inside, outside, strict=False)
        )

    def forward(self, pyramid: Pyramid) -> Pyramid:
        """Return the pyramid after ReLU."""
        kept = [keep(old) for keep, old in zip(self.shortcuts, pyramid, strict=True)]
        return self.second(self.first(pyramid, [None] * len(kept)), kept)


class Multigrid(nn.Module):
    """Pyramids of images, three stages of blocks, global average pooling of each grid, a linear layer."""

    def __init__(self, widths: Sequence[Sequence[int]], blocks: int, classes: int) -> None:
        super().__init__()
        self.grids = len(widths[0])
        self.stem = nn.ModuleList(
            nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), BatchNorm(width, relu=True))
            for width in widths[0]
        )
        stages = []
        inside = list(widths[0])
        for stage in widths:
            inside = inside[: len(stage)]
            layers = []
            for _ in range(blocks):
                layers.append(GridBlock(inside, stage))
                inside = list(stage)
            stages.append(nn.Sequential(*layers))
        self.stages = nn.ModuleList(stages)
        self.kept = [len(stage) for stage in widths]
        self.classify = nn.Linear(sum(inside), classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, `(n, classes)`."""
        pyramid = []
        for conv in self.stem:
            pyramid.append(conv(images))
            images = functional.avg_pool2d(images, 2)
        for number, stage in enumerate(self.stages):
            if number:
                pyramid = [functional.max_pool2d(one, 2) for one in pyramid[: self.kept[number]]]
            pyramid = stage(pyramid)
        return self.classify(torch.cat([one.mean((2, 3)) for one in pyramid], 1))


def make(
    widths: Sequence[Sequence[int]] = ((15, 7, 3), (22, 11, 5), (40, 20)), blocks: int = 3, classes: int = 50
) -> Multigrid:
    """Return the network; `widths` are the filters of each grid in each stage, the finest first."""
    return kaiming_fan_out(Multigrid(widths, blocks, classes))
