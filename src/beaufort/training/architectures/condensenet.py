"""CondenseNet, a dense network that is pruned while it learns: Huang et al. (2018), arXiv:1711.09224.

Each layer is a 1×1 convolution in four groups that learn which inputs they need, and a grouped 3×3
convolution. With the condensation factor 4, three times in the first half of the training every group gives
up a quarter of its inputs, those whose weights are smallest by the L1 norm; a quarter is left for the second
half. Here the weights of what was given up stay in the file as zeros; `network_size` counts those that are
left. CondenseNet-86 of the paper: three blocks of 14 layers with 8, 16 and 32 new features, pooling between
them. The group lasso is the paper's for ImageNet; for small images its program leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort.training.architectures._batch_norm import BatchNorm
from beaufort.training.architectures._layers import kaiming_fan_out

_GROUPS = 4
_FACTOR = 4
"""A group keeps one input of so many."""


class LearnedGroups(nn.Conv2d):
    """A 1×1 convolution whose groups of outputs each learn which inputs to keep.

    The output number j belongs to the group j modulo the groups, so that a grouped convolution that follows
    sees something of every group.
    """

    mask: Tensor

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__(inside, outside, 1, bias=False)
        self.register_buffer("mask", torch.ones(outside, inside, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Inputs that a group gave up count nothing."""
        return functional.conv2d(x, self.weight * self.mask)

    def prune_to(self, kept: int) -> None:
        """Let every group give up inputs until so many are left."""
        with torch.no_grad():
            weights = (self.weight * self.mask).abs().view(-1, _GROUPS, self.in_channels)
            most = weights.sum(0).topk(kept, dim=1).indices
            left = torch.zeros(_GROUPS, self.in_channels, device=most.device).scatter_(1, most, 1.0)
            self.mask.copy_(left.repeat(self.out_channels // _GROUPS, 1)[:, :, None, None])


class CondenseLayer(nn.Module):
    """`growth` new features beside those that come in."""

    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.first_norm = BatchNorm(inside, relu=True)
        self.first = LearnedGroups(inside, 4 * growth)
        self.second_norm = BatchNorm(4 * growth, relu=True)
        self.second = nn.Conv2d(4 * growth, growth, 3, padding=1, groups=_GROUPS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """All features so far and the new ones."""
        y = self.first(self.first_norm(x))
        y = self.second(self.second_norm(y))
        return torch.cat((x, y), 1)


class CondenseNet(nn.Module):
    """A convolution and three blocks of layers with learned groups."""

    def __init__(self, layers: Sequence[int], growth: Sequence[int], classes: int) -> None:
        super().__init__()
        width = 2 * growth[0]
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        blocks: list[nn.Module] = []
        for number, (count, new) in enumerate(zip(layers, growth, strict=True)):
            if number:
                blocks.append(nn.AvgPool2d(2))
            for _ in range(count):
                blocks.append(CondenseLayer(width, new))
                width += new
        self.blocks = nn.Sequential(*blocks)
        self.norm = BatchNorm(width, relu=True)
        self.classify = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, `(n, classes)`."""
        features = self.norm(self.blocks(self.stem(images)))
        return self.classify(features.mean((2, 3)))

    def on_progress(self, share: float) -> None:
        """Prune as far as it is due at a share of the training; the loop calls it before each epoch."""
        stage = min(_FACTOR - 1, int(share * 2 * (_FACTOR - 1)))
        for layer in self.modules():
            if isinstance(layer, LearnedGroups):
                kept = layer.in_channels - stage * (layer.in_channels // _FACTOR)
                if int(layer.mask[0].sum()) > kept:
                    layer.prune_to(kept)


def make(
    layers: Sequence[int] = (14, 14, 14), growth: Sequence[int] = (8, 16, 32), classes: int = 50
) -> CondenseNet:
    """CondenseNet-86, not pruned yet."""
    return kaiming_fan_out(CondenseNet(layers, growth, classes))
