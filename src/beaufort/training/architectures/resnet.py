"""ResNet for small images: He et al. (2016), arXiv:1512.03385, section 4.2.

Three stages of basic blocks with 16, 32 and 64 filters on 32×32, 16×16 and 8×8 pixels; depth 6n + 2. The
paper's small networks pad the shortcut with zeros where the width changes. Like the program of Icons-50, this
one uses a projection there (1×1 convolution with batch normalization).
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
    """Two 3×3 convolutions with a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__(inside, outside, stride, relu=True)
        self.shortcut = projection(inside, outside, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the same size, or of half the size if the stride is 2."""
        return self.added_to(self.shortcut(x), x)


def make(depth: int = 20, width: int = 16, classes: int = 50) -> StagedNetwork:
    """Return ResNet-20, or one of another depth and width."""
    blocks = blocks_of(depth, "ResNet", layers=2, others=2)
    return kaiming_fan_out(StagedNetwork(width, width, blocks, BasicBlock, classes))
