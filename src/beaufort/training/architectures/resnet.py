"""ResNet for small images: He et al. (2016), arXiv:1512.03385, section 4.2.

Three stages of basic blocks with 16, 32 and 64 filters on 32×32, 16×16 and 8×8 pixels; depth 6n + 2. The
paper's small networks pad the shortcut with zeros where the width changes. The program behind the results on
Icons-50 has a projection there (1×1 convolution with batch normalization), and so has this one.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from beaufort.errors import OptionError
from beaufort.training.architectures._weights import kaiming_fan_out

__all__ = ["ResNet", "make"]


class BasicBlock(nn.Module):
    """Two convolutions of 3×3 beside a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.shortcut = nn.Sequential()
        if inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Features of the same size, or of half the size if the stride is 2."""
        y = functional.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        return functional.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    """A convolution, three stages of basic blocks, the mean over all places, a linear layer."""

    def __init__(self, depth: int, width: int, classes: int) -> None:
        super().__init__()
        blocks, rest = divmod(depth - 2, 6)
        if blocks < 1 or rest:
            raise OptionError(f"depth of a ResNet must be 6n + 2, as 20 or 56, got {depth}")
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))
        stages = []
        inside = width
        for number, outside in enumerate((width, 2 * width, 4 * width)):
            for place in range(blocks):
                stages.append(BasicBlock(inside, outside, 2 if number and not place else 1))
                inside = outside
        self.stages = nn.Sequential(*stages)
        self.classify = nn.Linear(inside, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, `(n, classes)`."""
        features = self.stages(functional.relu(self.stem(images)))
        return self.classify(features.mean((2, 3)))


def make(depth: int = 20, width: int = 16, classes: int = 50) -> ResNet:
    """ResNet-20; other depths and widths."""
    return kaiming_fan_out(ResNet(depth, width, classes))
