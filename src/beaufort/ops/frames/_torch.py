"""Frames of a film, in torch."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["add_frame", "affine_frame", "perspective_frame"]


def affine_frame(images: Tensor, matrix: NDArray[Any], about: tuple[float, float], side: int) -> Tensor:
    """The middle of a picture under (x, y) ← matrix · (x, y) about a point, cut off to 8 bit.

    Linear between pixels. A position outside the picture is black; its edge is not blended.
    """
    height, width = images.shape[1:3]
    top, left = (round((length - side) / 2) for length in (height, width))
    steps = torch.arange(side, dtype=torch.float64, device=images.device)
    right, down = steps + left + 0.5 - about[0], (steps + top + 0.5 - about[1])[:, None]
    (a, b), (c, d) = matrix.tolist()
    u, v = a * right + b * down + about[0], c * right + d * down + about[1]
    inside = (u >= 0) & (u < width) & (v >= 0) & (v < height)
    u, v = (u - 0.5).clamp(0, width - 1), (v - 0.5).clamp(0, height - 1)
    column, row = u.floor().long(), v.floor().long()
    next_column, next_row = (column + 1).clamp(max=width - 1), (row + 1).clamp(max=height - 1)
    s, t = (u - column)[..., None], (v - row)[..., None]
    lines = []
    for at in (row, next_row):
        p, q = images[:, at, column].double(), images[:, at, next_column].double()
        lines.append(p + (q - p) * s)
    return ((lines[0] + (lines[1] - lines[0]) * t) * inside[..., None]).to(torch.uint8)


def perspective_frame(images: Tensor, matrix: NDArray[Any], side: int) -> Tensor:
    """The middle of a picture under a perspective map from the frame to the picture, rounded.

    Positions are multiples of 1/32 pixel. Linear between pixels, and black outside is blended in.
    """
    height, width = images.shape[1:3]
    top, left = (round((length - side) / 2) for length in (height, width))
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
    lines = []
    for at in (y, y + 1):
        p, q = framed[:, at, x].double(), framed[:, at, x + 1].double()
        lines.append(p + (q - p) * s)
    mixed = (lines[0] + (lines[1] - lines[0]) * t + 0.5).floor()
    return (mixed * inside[..., None]).to(torch.uint8)


def add_frame(total: Tensor, images: Tensor, count: int) -> Tensor:
    """Add images, as values from 0 to 1, to a float32 sum in place: the mean of `count`, cut off."""
    total += images.float() / 255
    return (total / count * 255).clamp(max=255).to(torch.uint8)
