"""Frames of a film, in torch."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["affine_frame"]


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
