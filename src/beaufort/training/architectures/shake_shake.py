"""Shake-Shake: Gastaldi (2017), arXiv:1705.07485.

Each block has two residual branches of two 3×3 convolutions. In training they are mixed in a random
proportion, drawn for each image, and their gradients in another; in evaluation, half and half. The paper of
Icons-50 calls the network "ResNeXt + Shake-Shake"; its program has plain convolutions: 26 layers, 96, 192 and
384 filters ("26 2×96d"), and a first convolution with as many filters as the first stage, where Gastaldi's
has 16.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.validation import validate_flag
from beaufort.training.architectures._batch_norm import BatchNorm
from beaufort.training.architectures._layers import Convolutions, StagedNetwork, blocks_of, kaiming_fan_out


class _Mix(torch.autograd.Function):
    """Mixes two branches in one proportion, and their gradients in another."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, portion: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return torch.lerp(second, first, portion)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (back,) = ctx.saved_tensors
        first = slopes[0] * back
        return first, slopes[0] - first, None, None


class Shortcut(nn.Module):
    """Halves the size: even and odd pixels, each through a 1×1 convolution."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.here = nn.Conv2d(inside, outside // 2, 1, bias=False)
        self.further = nn.Conv2d(inside, outside // 2, 1, bias=False)
        self.norm = BatchNorm(outside)

    def forward(self, x: Tensor) -> Tensor:
        """Return the shortcut of features after ReLU."""
        return self.norm(torch.cat((self.here(x[:, :, ::2, ::2]), self.further(x[:, :, 1::2, 1::2])), 1))


class ShakeBlock(nn.Module):
    """Two mixed branches with a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int, *, shake: bool) -> None:
        super().__init__()
        self.shake = shake
        self.one = Convolutions(inside, outside, stride)
        self.other = Convolutions(inside, outside, stride)
        self.shortcut = None if inside == outside else Shortcut(inside, outside)

    def forward(self, x: Tensor) -> Tensor:
        """Return features before ReLU, which the next block applies."""
        active = functional.relu(x)
        one, other = self.one(active), self.other(active)
        if self.training and self.shake:
            portions = torch.rand(2, len(x), 1, 1, 1, device=x.device).to(one.dtype)
            mixed = _Mix.apply(one, other, portions[0], portions[1])
        else:
            mixed = torch.lerp(other, one, 0.5)
        return mixed + (x if self.shortcut is None else self.shortcut(active))


def make(depth: int = 26, width: int = 96, shake: bool = True, classes: int = 50) -> StagedNetwork:
    """Return Shake-Shake 26 2×96d; `width=32` is 2×32d, and `shake=False` weighs the branches equally.

    As in the published program, there is no ReLU between the last block and the pooling.
    """
    validate_flag("shake", shake)
    blocks = blocks_of(depth, "Shake-Shake network", layers=2, others=2)
    return kaiming_fan_out(StagedNetwork(width, width, blocks, partial(ShakeBlock, shake=shake), classes))
