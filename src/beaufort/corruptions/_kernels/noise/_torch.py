"""Noise in torch, rounded where Numba's kernels round."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside, f32, fma, use_kernels
from beaufort.corruptions._kernels.values._torch import to_bytes


def _kernels() -> ModuleType:
    from beaufort.corruptions._kernels.noise import _triton

    return _triton


def add_noise(images: Tensor, noise: Tensor, sigma: float, *, nearest: bool = False) -> Tensor:
    """x + σ·n, σ in units of the whole range."""
    scale = f32(sigma * 255)
    if use_kernels(images):
        return _kernels().add_noise(images, noise, scale, nearest)
    return to_bytes(fma(noise, scale, images), nearest=nearest)


def multiply_noise(images: Tensor, noise: Tensor, sigma: float, *, nearest: bool = False) -> Tensor:
    """x + x·σ·n."""
    if use_kernels(images):
        return _kernels().multiply_noise(images, noise, f32(sigma), nearest)
    return to_bytes(fma(images.float() * noise, f32(sigma), images), nearest=nearest)


def replace(images: Tensor, hits: Tensor) -> Tensor:
    """Keep the value where the hit is 0; black where it is 1, white where it is 2."""
    if use_kernels(images):
        return _kernels().replace(images, hits)
    return torch.where(hits == 0, images, (hits == 2).byte() * 255)


def excess(counts: Tensor, rate: float, images: Tensor) -> Tensor:
    """By how much counts / rate is more than x / 255, float32."""
    return (counts.double() / rate - images.double() / 255).float()


def add_field(images: Tensor, field: Tensor | NDArray[Any], *, nearest: bool = False) -> Tensor:
    """x + f, one field value (0…255) a pixel, the same for all channels."""
    field = beside(field, images)
    if use_kernels(images):
        return _kernels().add_field(images, field, nearest)
    return to_bytes(images.float() + field[..., None], nearest=nearest)
