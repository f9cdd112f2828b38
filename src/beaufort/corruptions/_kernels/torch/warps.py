"""Affine maps, displacements and shifts, in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside, constant, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.borders import border_index


def affine(images: Tensor, matrices: Tensor | NDArray[Any], *, border: str) -> Tensor:
    maps = beside(matrices, images, torch.float64).contiguous()
    if kernels := triton_kernels("warps", images):
        return kernels.affine(images, maps, border)
    height, width = images.shape[1:3]
    x = torch.arange(width, dtype=torch.float64, device=images.device)
    y = torch.arange(height, dtype=torch.float64, device=images.device)[:, None]
    a, b, c, d, e, f = (number[:, None, None] for number in maps.reshape(-1, 6).unbind(1))
    from_x, from_y = a * x + (b * y + c), d * x + (e * y + f)
    if border == "zero":
        # A black frame, of which the far pixel stands for everything outside.
        framed = torch.nn.functional.pad(images, (0, 0, 1, 1, 1, 1))
        from_x, from_y = (from_x + 1).clamp(0, width + 1), (from_y + 1).clamp(0, height + 1)
        left, top = from_x.long(), from_y.long()
        right, low = (left + 1).clamp(max=width + 1), (top + 1).clamp(max=height + 1)
        return _sample(framed, top, low, left, right, (from_x - left).float(), (from_y - top).float())
    left, top = from_x.floor(), from_y.floor()
    weight = (from_x - left).float(), (from_y - top).float()
    return _sample(
        images, *_inside(top, height, width, border), *_inside(left, width, height, border), *weight
    )


def displace(images: Tensor, right: Tensor, down: Tensor, *, nearest: bool = False) -> Tensor:
    if kernels := triton_kernels("warps", images):
        return kernels.displace(images, right, down, nearest)
    height, width = images.shape[1:3]
    x = torch.arange(width, dtype=torch.float32, device=images.device)
    y = torch.arange(height, dtype=torch.float32, device=images.device)[:, None]
    from_x, from_y = x + right, y + down
    left, top = from_x.floor(), from_y.floor()
    rows, columns = _inside(top, height, width, "reflect"), _inside(left, width, height, "reflect")
    moved = _sample(images, *rows, *columns, from_x - left, from_y - top).clamp(0, 255)
    return (moved.round() if nearest else moved).byte()


def displace_zero(images: Tensor, right: Tensor, down: Tensor) -> Tensor:
    if kernels := triton_kernels("warps", images):
        return kernels.displace_zero(images, right, down)
    height, width = images.shape[1:3]
    x = torch.arange(width, dtype=torch.float64, device=images.device)
    y = torch.arange(height, dtype=torch.float64, device=images.device)[:, None]
    from_x, from_y = x + right, y + down
    inside = (from_x >= 0) & (from_y >= 0) & (from_x <= width - 1) & (from_y <= height - 1)
    from_x, from_y = from_x.clamp(0, width - 1), from_y.clamp(0, height - 1)
    left, top = from_x.long(), from_y.long()
    right_x, low_y = (left + 1).clamp(max=width - 1), (top + 1).clamp(max=height - 1)
    weights = (from_x - left).float(), (from_y - top).float()
    moved = _sample(images, top, low_y, left, right_x, *weights).clamp(0, 255).round()
    return torch.where(inside[..., None], moved, 0).byte()


def _inside(at: Tensor, size: int, other: int, border: str) -> tuple[Tensor, Tensor]:
    """Return the pixels at a coordinate and at the next one; far outside, all are one pixel."""
    margin = 2 * max(size, other)
    table = constant(border_index(size, margin, margin + 1, border), at.device)
    place = at.clamp(-margin, size + margin - 1).long() + margin
    return table[place], table[place + 1]


def _sample(
    images: Tensor, top: Tensor, low: Tensor, left: Tensor, right: Tensor, s: Tensor, t: Tensor
) -> Tensor:
    """Interpolate between four neighbors, with weight s to the right and t down."""
    width, channels = images.shape[2:]
    pixels = images.flatten(1, 2)

    def pick(rows: Tensor, columns: Tensor) -> Tensor:
        at = (rows * width + columns).flatten(1)[..., None].expand(-1, -1, channels)
        return pixels.gather(1, at).float().view(*rows.shape, channels)

    s, t = s[..., None], t[..., None]
    first, second = pick(top, left), pick(low, left)
    upper = fma(pick(top, right) - first, s, first)
    return fma(fma(pick(low, right) - second, s, second) - upper, t, upper)


def shift(images: Tensor, moves: NDArray[np.int64]) -> Tensor:
    height, width = images.shape[1:3]
    right, down = beside(moves, images, torch.int64).T[..., None]
    x = torch.arange(width, device=images.device) + right
    y = torch.arange(height, device=images.device) + down
    rows = images.gather(1, y.clamp(0, height - 1)[..., None, None].expand(images.shape))
    moved = rows.gather(2, x.clamp(0, width - 1)[:, None, :, None].expand(images.shape))
    inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None]
    return moved * inside[..., None]
