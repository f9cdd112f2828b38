"""Conv3: the network of Wang & Yu (2019) for MNIST, arXiv:1905.09591.

Their published program: two padded convolutions of 5×5 with 32 and 64 filters, ReLU and 2×2 max-pooling after
each, and one linear layer; values are mapped to -1..1 first.
"""

from __future__ import annotations

from torch import nn

from beaufort.training.architectures._layers import Normalize


def make(first: int = 32, second: int = 64, classes: int = 10) -> nn.Sequential:
    """Two padded convolutions of 5×5, each with ReLU and pooling, and a linear layer."""
    return nn.Sequential(
        Normalize(0.5, 0.5),
        *(nn.Conv2d(1, first, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(second * 7 * 7, classes)),
    )
