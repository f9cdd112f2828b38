"""Frames of a sequence, in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant, fma
from beaufort.corruptions._kernels import triton_kernels


def affine_frame(images: Tensor, matrix: NDArray[Any], about: tuple[float, float], side: int) -> Tensor:
    if kernels := triton_kernels("frames", images):
        return kernels.affine_frame(images, *_map(matrix, about, images.device), *_corner(images, side), side)
    height, width = images.shape[1:3]
    top, left = _corner(images, side)
    steps = torch.arange(side, dtype=torch.float64, device=images.device)
    right, down = steps + left + 0.5 - about[0], (steps + top + 0.5 - about[1])[:, None]
    (a, b), (c, d) = matrix.tolist()
    u, v = a * right + b * down + about[0], c * right + d * down + about[1]
    inside = (u >= 0) & (u < width) & (v >= 0) & (v < height)
    u, v = (u - 0.5).clamp(0, width - 1), (v - 0.5).clamp(0, height - 1)
    column, row = u.floor().long(), v.floor().long()
    next_column, next_row = (column + 1).clamp(max=width - 1), (row + 1).clamp(max=height - 1)
    dtype = torch.float64 if _is_diagonal(matrix) else torch.float32
    s, t = (u - column)[..., None].to(dtype), (v - row)[..., None].to(dtype)
    upper, lower = (
        _toward(images[:, at, column].to(dtype), images[:, at, next_column].to(dtype), s)
        for at in (row, next_row)
    )
    return (_toward(upper, lower, t) * inside[..., None]).to(torch.uint8)


def _corner(images: Tensor, side: int) -> tuple[int, int]:
    """Return the first row and column of the center of an image."""
    top, left = (round((length - side) / 2) for length in images.shape[1:3])
    return top, left


def _is_diagonal(matrix: NDArray[Any]) -> bool:
    return not matrix[0, 1] and not matrix[1, 0]


def _map(matrix: NDArray[Any], about: tuple[float, float], device: torch.device) -> tuple[Tensor, bool]:
    """The numbers of a map on the device, and whether pixels are mixed in double precision."""
    return constant(np.array([*matrix.ravel(), *about], np.float64), device), _is_diagonal(matrix)


def _toward(p: Tensor, q: Tensor, weight: Tensor) -> Tensor:
    """Interpolate from p to q, rounded like the CPU kernels."""
    return p + (q - p) * weight if weight.dtype == torch.float64 else fma(q - p, weight, p)


def perspective_frame(images: Tensor, matrix: NDArray[Any], side: int) -> Tensor:
    if kernels := triton_kernels("frames", images):
        numbers = constant(matrix.astype(np.float64), images.device)
        return kernels.perspective_frame(images, numbers, *_corner(images, side), side)
    height, width = images.shape[1:3]
    top, left = _corner(images, side)
    steps = torch.arange(side, dtype=torch.float64, device=images.device)
    right, down = steps + left, (steps + top)[:, None]
    a = matrix.tolist()
    depth = a[2][0] * right + a[2][1] * down + a[2][2]
    u, v = ((a[k][0] * right + a[k][1] * down + a[k][2]) / depth for k in (0, 1))
    u, v = (u * 32).round() / 32, (v * 32).round() / 32
    column, row = u.floor(), v.floor()
    s, t = (u - column)[..., None], (v - row)[..., None]
    framed = torch.nn.functional.pad(images, (0, 0, 1, 1, 1, 1))
    inside = (column >= -1) & (column < width) & (row >= -1) & (row < height)
    x, y = (column + 1).clamp(0, width).long(), (row + 1).clamp(0, height).long()
    upper, lower = (_toward(framed[:, at, x].double(), framed[:, at, x + 1].double(), s) for at in (y, y + 1))
    mixed = (_toward(upper, lower, t) + 0.5).floor()
    return (mixed * inside[..., None]).to(torch.uint8)


def add_frame(
    total: Tensor, images: Tensor, matrix: NDArray[Any], about: tuple[float, float], count: int
) -> Tensor:
    side = total.shape[1]
    if kernels := triton_kernels("frames", images):
        numbers = _map(matrix, about, images.device)
        return kernels.add_frame(total, images, *numbers, *_corner(images, side), count)
    # A device may divide by a host number by multiplying with its inverse, which rounds differently.
    whole, many = (constant(np.array([number], np.float32), images.device) for number in (255, count))
    total += affine_frame(images, matrix, about, side) / whole
    return (total / many * 255).clamp(max=255).to(torch.uint8)
