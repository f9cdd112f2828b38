"""Turning pictures, in torch."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant
from beaufort.corruptions._kernels.circular_motion_blur._cpu import ROUNDING
from beaufort.corruptions._kernels.circular_motion_blur._spline import prefilter


def turned(images: Tensor, angles: NDArray[Any], weights: NDArray[Any]) -> Tensor:
    """A weighted mean of copies that are turned by `angles`, in radians, with black outside.

    Between pixels a cubic spline runs through the values, mirrored at the borders.
    """
    height, width = images.shape[1:3]
    down, across = constant(prefilter(height), images.device), constant(prefilter(width), images.device)
    coefficients = torch.einsum("ij,njkc->nikc", down, images.double())
    coefficients = torch.einsum("ij,nkjc->nkic", across, coefficients)
    v = torch.arange(height, dtype=torch.float64, device=images.device)[:, None] - (height - 1) / 2
    u = torch.arange(width, dtype=torch.float64, device=images.device) - (width - 1) / 2
    total = torch.zeros_like(coefficients)
    for angle, weight in zip(torch.from_numpy(angles), weights.tolist(), strict=True):
        cosine, sine = float(angle.cos()), float(angle.sin())
        row, column = cosine * v + sine * u + (height - 1) / 2, cosine * u - sine * v + (width - 1) / 2
        inside = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
        for r, a in _taps(row, height):
            for c, b in _taps(column, width):
                total += (weight * a * b * inside)[..., None] * coefficients[:, r, c]
    return (total + ROUNDING).clamp(0, 255).to(torch.uint8)


def _taps(at: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """The four places that a cubic spline reads, mirrored at the borders, and their weights."""
    first = at.floor()
    t = at - first
    s = 1 - t
    weights = (s**3 / 6, (4 - 6 * t**2 + 3 * t**3) / 6, (4 - 6 * s**2 + 3 * s**3) / 6, t**3 / 6)
    found = []
    for shift, weight in enumerate(weights, -1):
        place = (first + shift).abs()
        place = torch.where(place >= size, 2 * size - 2 - place, place).clamp(0, size - 1)
        found.append((place.long(), weight))
    return found
