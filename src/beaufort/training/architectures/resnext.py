"""ResNeXt for small images: Xie et al. (2017), arXiv:1611.05431, section 5.3.

Bottleneck blocks whose 3×3 convolution runs in parallel groups (the cardinality). ResNeXt-29 has three stages
of three blocks. "8×32d" of the paper of Icons-50 is, in the program behind it, 8 groups of 32 filters in the
first stage and twice and four times as many in the others; the blocks give 128, 256 and 512 features, half of
what ResNeXt-29 (8×64d) gives.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from beaufort.errors import OptionError
from beaufort.training.architectures._weights import kaiming_fan_out

__all__ = ["ResNeXt", "make"]

_EXPANSION = 4
"""Features that a block gives, for each filter of a group."""


class GroupedBlock(nn.Module):
    """1×1, grouped 3×3 and 1×1 convolutions beside a shortcut."""

    def __init__(self, inside: int, filters: int, groups: int, stride: int) -> None:
        super().__init__()
        middle, outside = groups * filters, _EXPANSION * filters
        self.reduce = nn.Conv2d(inside, middle, 1, bias=False)
        self.reduce_norm = nn.BatchNorm2d(middle)
        self.grouped = nn.Conv2d(middle, middle, 3, stride, padding=1, groups=groups, bias=False)
        self.grouped_norm = nn.BatchNorm2d(middle)
        self.expand = nn.Conv2d(middle, outside, 1, bias=False)
        self.expand_norm = nn.BatchNorm2d(outside)
        self.shortcut = nn.Sequential()
        if inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Features of the same size, or of half the size if the stride is 2."""
        y = functional.relu(self.reduce_norm(self.reduce(x)))
        y = functional.relu(self.grouped_norm(self.grouped(y)))
        y = self.expand_norm(self.expand(y))
        return functional.relu(y + self.shortcut(x))


class ResNeXt(nn.Module):
    """A convolution, three stages of grouped blocks, the mean over all places, a linear layer."""

    def __init__(self, depth: int, cardinality: int, base: int, stem: int, classes: int) -> None:
        super().__init__()
        blocks, rest = divmod(depth - 2, 9)
        if blocks < 1 or rest:
            raise OptionError(f"depth of a ResNeXt must be 9n + 2, as 29, got {depth}")
        self.stem = nn.Sequential(nn.Conv2d(3, stem, 3, padding=1, bias=False), nn.BatchNorm2d(stem))
        stages = []
        inside = stem
        for number, filters in enumerate((base, 2 * base, 4 * base)):
            for place in range(blocks):
                stages.append(GroupedBlock(inside, filters, cardinality, 2 if number and not place else 1))
                inside = _EXPANSION * filters
        self.stages = nn.Sequential(*stages)
        self.classify = nn.Linear(inside, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, `(n, classes)`."""
        features = self.stages(functional.relu(self.stem(images)))
        return self.classify(features.mean((2, 3)))


def make(
    depth: int = 29, cardinality: int = 8, base: int = 32, stem: int | None = None, classes: int = 50
) -> ResNeXt:
    """ResNeXt-29 (8×32d); the first convolution has `base` filters unless told otherwise."""
    return kaiming_fan_out(ResNeXt(depth, cardinality, base, base if stem is None else stem, classes))
