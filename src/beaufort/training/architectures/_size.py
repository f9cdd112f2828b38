"""How large a network is: weights that can be learned, and multiplications for one image."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class NetworkSize(NamedTuple):
    """Counts as papers give them."""

    parameters: int
    """Without those that were pruned."""
    multiply_adds: int
    """Of convolutions and linear layers, for one image."""


def network_size(network: nn.Module, shape: tuple[int, int, int] = (3, 32, 32)) -> NetworkSize:
    """Count a network's parameters, and its multiply-adds on an image of a shape.

    >>> layers = nn.Conv2d(3, 8, 3, padding=1), nn.Flatten(), nn.Linear(8 * 64, 10)
    >>> network_size(nn.Sequential(*layers), (3, 8, 8))
    NetworkSize(parameters=5354, multiply_adds=18944)
    """
    found = 0

    def count(layer: Any, _: Any, made: Tensor) -> None:
        nonlocal found
        places = made[0].numel() // made.shape[1]
        found += places * (layer.weight.numel() - _pruned(layer))

    hooks = [
        layer.register_forward_hook(count)
        for layer in network.modules()
        if isinstance(layer, nn.Conv2d | nn.Linear)
    ]
    learning = network.training
    try:
        with torch.no_grad():
            network.eval()(torch.zeros(1, *shape))
    finally:
        network.train(learning)
        for hook in hooks:
            hook.remove()
    pruned = sum(map(_pruned, network.modules()))
    return NetworkSize(sum(one.numel() for one in network.parameters()) - pruned, found)


def _pruned(layer: nn.Module) -> int:
    """Weights that a mask switches off."""
    mask = getattr(layer, "mask", None)
    return int((mask == 0).sum()) if isinstance(mask, Tensor) else 0
