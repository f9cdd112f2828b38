"""Chains of random operations on a batch, mixed with the clean images: what AugMix and PRIME share.

Every image draws operations, strengths and weights of its own. An operation is done once for all images that
drew it, so a batch costs about as much as its operations, whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Operation = Callable[[Tensor], Tensor]
"""Images `(n, c, h, w)` in 0..1, each changed at random by its own draw."""


def mixed_chains(images: Tensor, operations: Sequence[Operation], *, width: int, depth: int) -> Tensor:
    """A weighted mean of `width` chains of 1 to `depth` operations on each image; weights sum to 1."""
    weights = dirichlet(len(images), width, images.device)
    total = torch.zeros_like(images)
    with torch.autocast(images.device.type, enabled=False):  # pixels are made in full precision
        for chain in range(width):
            total += weights[:, chain, None, None, None] * _chained(images, operations, depth)
    return total


def dirichlet(count: int, width: int, device: torch.device) -> Tensor:
    """Weights of `width` things for each image, uniform among those that sum to 1."""
    gaps = -torch.log(torch.rand(count, width, device=device).clamp_min(1e-12))
    return gaps / gaps.sum(1, keepdim=True)


def _chained(images: Tensor, operations: Sequence[Operation], depth: int) -> Tensor:
    count, device = len(images), images.device
    length = torch.randint(1, depth + 1, (count,), device=device)
    out = images.clone()
    for step in range(depth):
        chosen = torch.randint(0, len(operations), (count,), device=device)
        chosen[length <= step] = -1
        for number, operation in enumerate(operations):
            places = (chosen == number).nonzero()[:, 0]
            if len(places):
                out[places] = operation(out[places]).clamp(0, 1)
    return out
