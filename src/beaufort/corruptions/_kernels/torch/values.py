"""Look-ups, mixtures, noise, textures and conversion to 8 bits, in torch, rounded where Numba rounds."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside, constant, f32, fma
from beaufort.corruptions._kernels import triton_kernels


def to_bytes(values: Tensor, *, nearest: bool = False) -> Tensor:
    values = values.clamp(0, 255)
    return (values.round() if nearest else values).to(torch.uint8)


def look_up(values: Tensor, table: NDArray[np.uint8]) -> Tensor:
    entries = constant(table, values.device)
    if kernels := triton_kernels("values", values):
        return kernels.look_up(values, entries)
    return entries[values.clamp(max=len(table) - 1).long()]


def mix(images: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    total = torch.full(images[0].shape, 128, dtype=torch.int32, device=images[0].device)
    for version, weight in zip(images, weights, strict=True):
        total += version.to(torch.int32) * round(weight * 256)
    return (total >> 8).to(torch.uint8)


def add_noise(images: Tensor, noise: Tensor, sigma: float, *, nearest: bool = False) -> Tensor:
    scale = f32(sigma * 255)
    if kernels := triton_kernels("values", images):
        return kernels.add_noise(images, noise, scale, nearest)
    return to_bytes(fma(noise, scale, images), nearest=nearest)


def multiply_noise(images: Tensor, noise: Tensor, sigma: float, *, nearest: bool = False) -> Tensor:
    if kernels := triton_kernels("values", images):
        return kernels.multiply_noise(images, noise, f32(sigma), nearest)
    return to_bytes(fma(images.float() * noise, f32(sigma), images), nearest=nearest)


def replace(images: Tensor, hits: Tensor) -> Tensor:
    if kernels := triton_kernels("values", images):
        return kernels.replace(images, hits)
    return torch.where(hits == 0, images, (hits == 2).byte() * 255)


def excess(counts: Tensor, rate: float, images: Tensor) -> Tensor:
    return (counts.double() / rate - images.double() / 255).float()


def add_field(images: Tensor, field: Tensor | NDArray[Any], *, nearest: bool = False) -> Tensor:
    field = beside(field, images)
    if kernels := triton_kernels("values", images):
        return kernels.add_field(images, field, nearest)
    return to_bytes(images.float() + field[..., None], nearest=nearest)


def blend(
    images: Tensor,
    textures: Sequence[NDArray[np.uint8]],
    crops: NDArray[np.int64],
    weight: float,
    texture_weight: float,
    *,
    nearest: bool = False,
) -> Tensor:
    kept = [_texture(texture, images.device) for texture in textures]
    if kernels := triton_kernels("values", images):
        weights = constant(np.array([weight, texture_weight], np.float64), images.device)
        return kernels.blend(images, kept, crops, weights, nearest)
    height, width = images.shape[1:3]
    over = torch.stack(
        [kept[number][row : row + height, column : column + width] for number, row, column in crops.tolist()]
    )
    return to_bytes(weight * images.double() + texture_weight * over.double(), nearest=nearest)


_TEXTURES: dict[tuple[int, torch.device], Tensor] = {}


def _texture(texture: NDArray[np.uint8], device: torch.device) -> Tensor:
    """A texture on the device, copied once and kept there for as long as the array lives."""
    place = id(texture), device
    if place not in _TEXTURES:
        _TEXTURES[place] = torch.from_numpy(np.ascontiguousarray(texture)).to(device)
        weakref.finalize(texture, _TEXTURES.pop, place, None)
    return _TEXTURES[place]
