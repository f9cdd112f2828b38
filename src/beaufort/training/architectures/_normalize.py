"""The first layer of a network that was trained on centered values."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn, tensor


class Normalize(nn.Module):
    """Subtract a mean and divide by a standard deviation, of all channels or of each; in units of 0..1."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", tensor(std).view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Centered images."""
        return (images - self.mean) / self.std
