"""CondenseNet, a dense network that is pruned during training: Huang et al. (2018), arXiv:1711.09224.

Each layer is a 1×1 convolution in four groups that learn which inputs they need, and a grouped 3×3
convolution. With condensation factor 4, each group drops a quarter of its inputs, those with the smallest L1
norm, three times in the first half of training, and the last quarter stays. Here, dropped weights stay in the
file as zeros; `network_size` does not count them. CondenseNet-86 of the paper has three blocks of 14 layers
with 8, 16 and 32 new features, with pooling between them. The group lasso, which the program uses only for
ImageNet, is left out.
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
"""A group keeps one of this many inputs."""


class LearnedGroups(nn.Conv2d):
    """A 1×1 convolution whose groups of outputs each learn which inputs to keep.

    Output j belongs to group j modulo the number of groups, so that each group of the next convolution sees
    outputs of all groups.
    """

    mask: Tensor

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__(inside, outside, 1, bias=False)
        self.register_buffer("mask", torch.ones(outside, inside, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the convolution without the dropped inputs."""
        return functional.conv2d(x, self.weight * self.mask)

    def prune_to(self, kept: int) -> None:
        """Drop inputs of each group until `kept` are left."""
        with torch.no_grad():
            weights = (self.weight * self.mask).abs().view(-1, _GROUPS, self.in_channels)
            most = weights.sum(0).topk(kept, dim=1).indices
            left = torch.zeros(_GROUPS, self.in_channels, device=most.device).scatter_(1, most, 1.0)
            self.mask.copy_(left.repeat(self.out_channels // _GROUPS, 1)[:, :, None, None])


class CondenseLayer(nn.Module):
    """Adds `growth` new features."""

    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.first_norm = BatchNorm(inside, relu=True)
        self.first = LearnedGroups(inside, 4 * growth)
        self.second_norm = BatchNorm(4 * growth, relu=True)
        self.second = nn.Conv2d(4 * growth, growth, 3, padding=1, groups=_GROUPS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return all features so far and the new ones."""
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
        """Return logits, `(n, classes)`."""
        features = self.norm(self.blocks(self.stem(images)))
        return self.classify(features.mean((2, 3)))

    def on_progress(self, fraction: float) -> None:
        """Prune as scheduled at a fraction of the training run; called before each epoch."""
        stage = min(_FACTOR - 1, int(fraction * 2 * (_FACTOR - 1)))
        for layer in self.modules():
            if isinstance(layer, LearnedGroups):
                kept = layer.in_channels - stage * (layer.in_channels // _FACTOR)
                if int(layer.mask[0].sum()) > kept:
                    layer.prune_to(kept)


def make(
    layers: Sequence[int] = (14, 14, 14), growth: Sequence[int] = (8, 16, 32), classes: int = 50
) -> CondenseNet:
    """Return CondenseNet-86 before pruning."""
    return kaiming_fan_out(CondenseNet(layers, growth, classes))
