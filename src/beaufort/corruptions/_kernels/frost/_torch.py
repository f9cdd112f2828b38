"""Images mixed with textures, in torch."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from types import ModuleType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant, use_kernels
from beaufort.corruptions._kernels.values._torch import to_bytes


def _kernels() -> ModuleType:
    from beaufort.corruptions._kernels.frost import _triton

    return _triton


def blend(
    images: Tensor,
    textures: Sequence[NDArray[np.uint8]],
    crops: NDArray[np.int64],
    weight: float,
    texture_weight: float,
    *,
    nearest: bool = False,
) -> Tensor:
    """a·X + b·F; F is cut from a texture `(h, w, c)`: its number, first row and column for each image.

    In double precision, because the weights are tenths: many sums are whole numbers but for rounding.
    """
    kept = [_texture(texture, images.device) for texture in textures]
    if use_kernels(images):
        weights = constant(np.array([weight, texture_weight], np.float64), images.device)
        return _kernels().blend(images, kept, crops, weights, nearest)
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
