"""Conv2: the network of Madry et al. (2018) for MNIST, arXiv:1706.06083.

Section 5: two convolutions with 32 and 64 filters, each followed by 2×2 max-pooling, and a fully connected
layer of 1024. Their published program has 5×5 filters with padding and takes values in 0..1 as they are.
"""

from __future__ import annotations

from torch import nn


def make(first: int = 32, second: int = 64, hidden: int = 1024, classes: int = 10) -> nn.Sequential:
    """Two padded convolutions of 5×5, each with ReLU and pooling, and a hidden layer."""
    return nn.Sequential(
        *(nn.Conv2d(1, first, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(second * 7 * 7, hidden), nn.ReLU(), nn.Linear(hidden, classes)),
    )
