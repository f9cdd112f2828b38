"""ResNet for small images: He et al. (2016), arXiv:1512.03385, section 4.2.

Three stages of basic blocks with 16, 32 and 64 filters on 32×32, 16×16 and 8×8 pixels; depth 6n + 2. The
paper's small networks pad the shortcut with zeros where the width changes. The program behind the results on
Icons-50 has a projection there (1×1 convolution with batch normalization), and so has this one.
"""

from __future__ import annotations

from torch import Tensor

from beaufort.training.architectures._layers import (
    Convolutions,
    StagedNetwork,
    blocks_of,
    kaiming_fan_out,
    projection,
)


class BasicBlock(Convolutions):
    """Two convolutions of 3×3 beside a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__(inside, outside, stride, relu=True)
        self.shortcut = projection(inside, outside, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Features of the same size, or of half the size if the stride is 2."""
        return self.added_to(self.shortcut(x), x)


def make(depth: int = 20, width: int = 16, classes: int = 50) -> StagedNetwork:
    """ResNet-20; other depths and widths."""
    blocks = blocks_of(depth, "ResNet", layers=2, others=2, such_as="20 or 56")
    return kaiming_fan_out(StagedNetwork(width, width, blocks, BasicBlock, classes))
