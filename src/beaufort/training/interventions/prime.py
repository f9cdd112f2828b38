"""PRIME-like training: images mixed with random filters, random warps and random color maps.

After Modas, Rade, Ortiz-Jiménez, Moosavi-Dezfooli & Frossard (2022), "PRIME: a few primitives can boost
robustness to common corruptions", arXiv:2112.13547: maximum-entropy versions of three transformations, in
chains, mixed with Dirichlet weights. Transformations and mixing are those of the paper; strengths are in
other units, so results differ from those of its program.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.validation import validate_integer, validate_number
from beaufort.training.interventions.augmix import dirichlet, mixed_chains
from beaufort.training.interventions.base import (
    Intervention,
    TrainingContext,
    plain_loss,
)


def make(
    training: TrainingContext,
    *,
    width: int = 3,
    depth: int = 3,
    filter: float = 1.0,  # noqa: A002
    warp: float = 1.0,
    color: float = 0.05,
) -> Intervention:
    """Train on randomly filtered, warped and recolored images.

    Args:
        training: context of the training run.
        width: number of chains.
        depth: maximum number of transformations in a chain.
        filter: largest standard deviation of the random part of the 3×3 filter taps.
        warp: largest root mean square displacement of a random warp along an axis, in pixels.
        color: largest standard deviation of the coefficients of a random color map.
    """
    for name, value in (("filter", filter), ("warp", warp), ("color", color)):
        validate_number(name, value, 0, 100)
    for name, value in (("width", width), ("depth", depth)):
        validate_integer(name, value, 1, 16)

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        made = prime(images, width=width, depth=depth, filter=filter, warp=warp, color=color)
        return plain_loss(model, made, labels)

    return Intervention(loss=loss, constant=1)


def prime(
    images: Tensor,
    *,
    width: int = 3,
    depth: int = 3,
    filter: float = 1.0,  # noqa: A002
    warp: float = 1.0,
    color: float = 0.05,
) -> Tensor:
    """Return transformed versions of images in 0..1, mixed with the clean images."""
    changes = [
        lambda some: random_filter(some, filter),
        lambda some: random_warp(some, warp),
        lambda some: random_colors(some, color),
    ]
    clean = dirichlet(len(images), width + 1, images.device)[:, 0].view(-1, 1, 1, 1)
    chains = mixed_chains(images, changes, width=width, depth=depth)
    return clean * images + (1 - clean) * chains


def random_filter(images: Tensor, most: float) -> Tensor:
    """Apply a random 3×3 filter to each image, the same for all channels."""
    count, channels, height, width = images.shape
    sigma = most * torch.rand(count, 1, 1, 1, device=images.device)
    taps = sigma * torch.randn(count, 1, 3, 3, device=images.device)
    taps[:, :, 1, 1] += 1
    kernels = taps.repeat_interleave(channels, 0)
    wide = functional.pad(images, (1, 1, 1, 1), mode="reflect").reshape(
        1, count * channels, height + 2, width + 2
    )
    return functional.conv2d(wide, kernels, groups=count * channels).reshape(images.shape).clamp(0, 1)


def random_warp(images: Tensor, most: float, waves: int = 8) -> Tensor:
    """Warp each image by a random sum of sine waves that is zero at the borders."""
    count, _, height, width = images.shape
    device = images.device
    order = torch.arange(1, waves + 1, device=device, dtype=torch.float32)
    tall, wide = (
        torch.sin(math.pi * order[:, None] * (torch.arange(side, device=device) + 0.5) / side)
        for side in (height, width)
    )
    fall = 1 / (order[:, None] ** 2 + order[None, :] ** 2).sqrt()
    field = torch.einsum(
        "npij,iy,jx->npyx", torch.randn(count, 2, waves, waves, device=device) * fall, tall, wide
    )
    size = field.square().mean((1, 2, 3), keepdim=True).sqrt().clamp_min(1e-6)
    field = field / size * (most * torch.rand(count, 1, 1, 1, device=device))
    still = torch.eye(2, 3, device=device).expand(count, 2, 3)
    grid = functional.affine_grid(still, list(images.shape), align_corners=False)
    units = torch.tensor([2 / width, 2 / height], device=device)
    moved = grid + field.permute(0, 2, 3, 1) * units
    return functional.grid_sample(
        images, moved, mode="bilinear", padding_mode="reflection", align_corners=False
    )


def random_colors(images: Tensor, most: float, waves: int = 20) -> Tensor:
    """Apply a random smooth map that keeps 0 and 1 to the values of each channel of each image."""
    count, channels = images.shape[:2]
    sigma = most * torch.rand(count, 1, 1, device=images.device)
    heights = sigma * torch.randn(count, channels, waves, device=images.device)
    change = torch.zeros_like(images)
    for wave in range(waves):
        change += heights[:, :, wave, None, None] * torch.sin(math.pi * (wave + 1) * images)
    return (images + change).clamp(0, 1)
