"""The classifier of digits that comes with Beaufort, `demo:digits`."""

from __future__ import annotations

from torch import nn


def make(
    widths: tuple[int, int, int] = (16, 32, 64), dropout: float = 0.5, classes: int = 10
) -> nn.Sequential:
    """Three convolutions with ReLU, pooling after the first two, and a linear layer."""
    first, second, third = widths
    return nn.Sequential(
        *(nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(second, third, 3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Dropout(dropout), nn.Linear(third * 7 * 7, classes)),
    )
