"""ResNets for CIFAR-10 (He et al. 2016, section 4.2): 6n + 2 layers, 16-32-64 channels, option-A shortcuts.

The names of the parameters are those of github.com/akamaster/pytorch_resnet_cifar10, whose weights fit.
Images come in normalized with ImageNet's mean and standard deviation, as those weights were trained.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

__all__ = ["CifarResNet", "resnet20", "resnet32", "resnet56"]


class Block(nn.Module):
    """Two 3×3 convolutions and a shortcut without parameters."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.stride = stride
        self.added = outside - inside

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.added:  # every second pixel; the new channels are zero, half of them on each side
            x = functional.pad(
                x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.added // 2, self.added // 2)
            )
        return functional.relu(y + x)


class CifarResNet(nn.Module):
    """Three stages of `n` blocks for 32×32 images in 10 classes."""

    def __init__(self, n: int, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(n, 16, 16, 1)
        self.layer2 = _stage(n, 16, 32, 2)
        self.layer3 = _stage(n, 32, 64, 2)
        self.linear = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean(dim=(2, 3)))


def _stage(n: int, inside: int, outside: int, stride: int) -> nn.Sequential:
    first = Block(inside, outside, stride)
    return nn.Sequential(first, *(Block(outside, outside, 1) for _ in range(n - 1)))


def resnet20() -> CifarResNet:
    return CifarResNet(3)


def resnet32() -> CifarResNet:
    return CifarResNet(5)


def resnet56() -> CifarResNet:
    return CifarResNet(9)
