"""Two networks for MNIST, whose published weights fit the names of their parameters."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

__all__ = ["plain", "small"]


def small() -> nn.Sequential:
    """Two convolutions and two dense layers: the network of `convex_adversarial` and `fast_adversarial`."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 4, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 4, stride=2, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 100), nn.ReLU(), nn.Linear(100, 10)),
    )


def plain() -> nn.Sequential:
    """Four convolutions with batch normalization: the plain network of Analysis by Synthesis."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    inside = 1
    for number, (outside, side, stride) in enumerate(((20, 5, 1), (70, 4, 2), (256, 3, 2))):
        layers[f"conv_{number}"] = nn.Conv2d(inside, outside, side, stride)
        layers[f"bn_{number}"] = nn.BatchNorm2d(outside)
        layers[f"elu_{number}"] = nn.ELU()
        inside = outside
    layers["conv_3"] = nn.Conv2d(inside, 10, 5)
    layers["flat"] = nn.Flatten()
    return nn.Sequential(layers)
