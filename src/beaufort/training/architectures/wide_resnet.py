"""Wide residual network: Zagoruyko & Komodakis (2016), arXiv:1605.07146.

Batch normalization and ReLU come before each convolution, dropout between the two of a block. WRN-d-k has
d = 6n + 4 layers and k times 16, 32 and 64 filters. WRN-16-4 with dropout 0.3 is in the program of Icons-50,
though not in the paper's table; WRN-40-2 is the network of its experiment on CIFAR-100.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor, nn

from beaufort._core.errors import OptionError
from beaufort.training.architectures._batch_norm import BatchNorm
from beaufort.training.architectures._layers import Normalize, blocks_of, kaiming_fan_out, three_stages


class WideBlock(nn.Module):
    """Two 3×3 convolutions with a shortcut, which begins after the ReLU if the width changes."""

    def __init__(self, inside: int, outside: int, stride: int, *, dropout: float) -> None:
        super().__init__()
        self.first_norm = BatchNorm(inside, relu=True)
        self.first = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.second_norm = BatchNorm(outside, relu=True)
        self.dropout = nn.Dropout(dropout)
        self.second = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.shortcut = None if inside == outside else nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the same size, or of half the size if the stride is 2."""
        active = self.first_norm(x)
        y = self.dropout(self.second_norm(self.first(active)))
        return self.second(y) + (x if self.shortcut is None else self.shortcut(active))


class WideResNet(nn.Module):
    """A convolution, three stages of wide blocks, global average pooling, a linear layer."""

    def __init__(self, normalize: nn.Module, depth: int, factor: int, dropout: float, classes: int) -> None:
        super().__init__()
        self.normalize = normalize
        blocks = blocks_of(depth, "wide ResNet", layers=2, others=4)
        self.stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.stages = three_stages(16, 16 * factor, blocks, partial(WideBlock, dropout=dropout))
        self.norm = BatchNorm(64 * factor, relu=True)
        self.classify = nn.Linear(64 * factor, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, `(n, classes)`."""
        features = self.norm(self.stages(self.stem(self.normalize(images))))
        return self.classify(features.mean((2, 3)))


def make(
    depth: int = 16,
    factor: int = 4,
    dropout: float = 0.3,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    classes: int = 50,
) -> WideResNet:
    """Return WRN-16-4 with dropout 0.3, or another depth and width; `mean` and `std` normalize images."""
    if (mean is None) != (std is None):
        raise OptionError("mean and std must be passed together")
    normalize = nn.Identity() if mean is None or std is None else Normalize(mean, std)
    return kaiming_fan_out(WideResNet(normalize, depth, factor, dropout, classes))
