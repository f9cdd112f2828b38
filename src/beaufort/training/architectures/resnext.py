"""ResNeXt for small images: Xie et al. (2017), arXiv:1611.05431, section 5.3.

Bottleneck blocks whose 3×3 convolution runs in parallel groups (the cardinality). ResNeXt-29 has three stages
of three blocks. "8×32d" of the paper of Icons-50 is, in its program, 8 groups of 32 filters in the
first stage and twice and four times as many in the others; the blocks give 128, 256 and 512 features, half of
what ResNeXt-29 (8×64d) gives.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from beaufort.training.architectures._batch_norm import BatchNorm
from beaufort.training.architectures._layers import StagedNetwork, blocks_of, kaiming_fan_out, projection

_EXPANSION = 4
"""Output features of a block per filter of a group."""


class GroupedBlock(nn.Module):
    """1×1, grouped 3×3 and 1×1 convolutions with a shortcut."""

    def __init__(self, inside: int, filters: int, stride: int, *, groups: int) -> None:
        super().__init__()
        middle, outside = groups * filters, _EXPANSION * filters
        self.reduce = nn.Conv2d(inside, middle, 1, bias=False)
        self.reduce_norm = BatchNorm(middle, relu=True)
        self.grouped = nn.Conv2d(middle, middle, 3, stride, padding=1, groups=groups, bias=False)
        self.grouped_norm = BatchNorm(middle, relu=True)
        self.expand = nn.Conv2d(middle, outside, 1, bias=False)
        self.expand_norm = BatchNorm(outside, relu=True)
        self.shortcut = projection(inside, outside, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the same size, or of half the size if the stride is 2."""
        y = self.reduce_norm(self.reduce(x))
        y = self.grouped_norm(self.grouped(y))
        return self.expand_norm(self.expand(y), self.shortcut(x))


def make(
    depth: int = 29, cardinality: int = 8, base: int = 32, stem: int | None = None, classes: int = 50
) -> StagedNetwork:
    """Return ResNeXt-29 (8×32d); the first convolution has `stem` filters, `base` by default."""
    blocks = blocks_of(depth, "ResNeXt", layers=3, others=2)
    block = partial(GroupedBlock, groups=cardinality)
    first = base if stem is None else stem
    return kaiming_fan_out(StagedNetwork(first, base, blocks, block, classes, expansion=_EXPANSION))
