"""Batch normalization re-estimated behind a front end, for networks in which it is folded into convolutions.

Normalization brings the output of a convolution to a mean and a deviation that were learned; they are those
of plain photos, up to chance. Behind a front end the outputs have others. Re-estimated statistics bring them
back, layer after layer: each layer sees what layers before it make with theirs. Labels play no part.
"""

from __future__ import annotations

import torch
from torch import Tensor

from beaufort.studies.enhancements.graph import GraphNetwork

Lines = dict[str, tuple[Tensor, Tensor]]
"""Factor and offset of each channel, by the convolution that they follow."""

_LEAST = 1e-5
"""Deviations below which a channel is left alone."""


def renormalizing_lines(network: GraphNetwork, plain: Tensor, shown: Tensor) -> Lines:
    """What brings the outputs for `shown` to the means and deviations of those for `plain`.

    Both are the same photos, values in 0..1, without and behind the front end; the more, the surer. A
    convolution whose output has one place, which is a classifier, is left alone.
    """
    wanted: dict[str, tuple[Tensor, Tensor]] = {}

    def remember(name: str, output: Tensor) -> Tensor:
        if output.shape[2:].numel() > 1:
            wanted[name] = _moments(output)
        return output

    lines: Lines = {}

    def renormalize(name: str, output: Tensor) -> Tensor:
        if name not in wanted:
            return output
        (mean, spread), (found, other) = wanted[name], _moments(output)
        factor = torch.where(other > _LEAST, spread / other.clamp_min(_LEAST), 1.0)
        lines[name] = factor, mean - factor * found
        return output * factor[:, None, None] + lines[name][1][:, None, None]

    with torch.no_grad():
        network(plain, remember)
        network(shown, renormalize)
    return lines


def _moments(output: Tensor) -> tuple[Tensor, Tensor]:
    spread, mean = torch.std_mean(output, dim=(0, 2, 3), correction=0)
    return mean, spread
