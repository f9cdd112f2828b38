"""Motion along a line and about the center, in torch."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside, constant, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.cpu.motion_blur import ROUNDING
from beaufort.corruptions._kernels.torch.values import to_bytes


def motion(images: Tensor, radius: float, sigma: float, angles_deg: Tensor | NDArray[Any]) -> Tensor:
    taps = np.arange(2 * math.ceil(radius) + 1)
    weights = np.exp(-(taps**2) / (2 * sigma**2))
    weights = (weights / weights.sum()).astype(np.float32)
    radians = torch.deg2rad(beside(angles_deg, images, torch.float64))[:, None]
    steps = constant(taps.astype(np.float64), images.device)
    along, across = taps.size * radians.cos(), taps.size * radians.sin()  # rounds as ImageMagick does
    length = torch.hypot(across, along)
    down = torch.ceil(steps * across / length - 0.5).to(torch.int32)
    right = torch.ceil(steps * along / length - 0.5).to(torch.int32)
    if kernels := triton_kernels("motion_blur", images):
        return kernels.motion(images, weights, down, right)
    height, width = images.shape[1:3]
    which = torch.arange(len(images), device=images.device)[:, None, None]
    y, x = torch.arange(height, device=images.device), torch.arange(width, device=images.device)

    def shifted(k: int) -> Tensor:
        rows = (y + down[:, k, None]).clamp(0, height - 1)
        columns = (x + right[:, k, None]).clamp(0, width - 1)
        return images[which, rows[:, :, None], columns[:, None]].float()

    factors = [float(weight) for weight in weights]
    total = torch.full(images.shape, 1 / 514, dtype=torch.float32, device=images.device)
    k = 0
    while k + 3 < len(factors):
        near = fma(factors[k], shifted(k), factors[k + 1] * shifted(k + 1))
        far = fma(factors[k + 2], shifted(k + 2), factors[k + 3] * shifted(k + 3))
        total = total + (near + far)
        k += 4
    for last in range(k, len(factors)):
        total = fma(factors[last], shifted(last), total)
    return to_bytes(total, nearest=False)


@lru_cache(maxsize=16)
def prefilter(size: int) -> NDArray[np.float64]:
    """Return the matrix that maps values on a line to spline coefficients, mirrored about its end points.

    It is the inverse of what evaluates a spline at its knots, with the weights 1/6, 2/3, 1/6.
    """
    at_knots = np.zeros((size, size))
    np.fill_diagonal(at_knots, 2 / 3)
    inner = np.arange(size - 1)
    at_knots[inner, inner + 1] = at_knots[inner + 1, inner] = 1 / 6
    at_knots[0, 1] = at_knots[-1, -2] = 1 / 3
    inverse: NDArray[np.float64] = np.linalg.inv(at_knots).astype(np.float64, copy=False)
    inverse.flags.writeable = False
    return inverse


def turned(images: Tensor, angles: NDArray[Any], weights: NDArray[Any]) -> Tensor:
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
    """Return the four positions that a cubic spline reads, mirrored at the borders, and their weights."""
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
