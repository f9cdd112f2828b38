"""Random weights to start from, as the program behind the paper of Icons-50 draws them."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

Network = TypeVar("Network", bound=nn.Module)


def kaiming_fan_out(network: Network) -> Network:
    """Draw every convolution from a normal distribution with variance 2 / fan-out (He et al. 2015).

    Biases of linear layers are zero; batch normalization starts as the identity, which is torch's default.
    """
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.bias)
    return network
