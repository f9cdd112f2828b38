"""Gaussian filters in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.borders import border_index
from beaufort.corruptions._kernels.cpu.gaussian_blur import NARROW, WIDE, gaussian_taps, wave_gains
from beaufort.corruptions._kernels.torch.values import to_bytes


def gaussian(images: Tensor, sigma: float, *, horizontal: bool = True, nearest: bool = False) -> Tensor:
    taps = gaussian_taps(sigma, 4.0)
    exact = len(taps) - 1 <= NARROW or not horizontal
    taps = taps if exact else taps.astype(np.float32)
    if kernels := triton_kernels("gaussian_blur", images):
        blur = kernels.gaussian_exact if exact else kernels.gaussian
        return blur(images, taps, horizontal=horizontal, nearest=nearest)
    axes = (1, 2) if horizontal else (1,)
    # A lookup table, because CUDA divides by a host number by multiplying with its inverse.
    values = constant(np.arange(256) / 255, images.device)[images.long()] if exact else images.float()
    for axis in axes:
        values = (_far_first if exact else _near_first)(values, taps, axis, "nearest")
    return to_bytes(values * 255 if exact else values, nearest=nearest)


def _pair(values: Tensor, k: int, axis: int, index: Tensor) -> Tensor:
    """The sum of both neighbors at distance k."""
    size = values.shape[axis]
    radius = (len(index) - size) // 2
    before, after = index[radius - k :][:size], index[radius + k :][:size]
    return values.index_select(axis, before) + values.index_select(axis, after)


def _border(values: Tensor, radius: int, axis: int, mode: str) -> Tensor:
    return constant(border_index(values.shape[axis], radius, radius, mode), values.device)


def _far_first(values: Tensor, taps: NDArray[Any], axis: int, mode: str) -> Tensor:
    """Filter along an axis from the farthest pair to the nearest, with the same roundings as on the CPU."""
    index = _border(values, len(taps) - 1, axis, mode)
    total = values * float(taps[0])
    for k in range(len(taps) - 1, 0, -1):
        total = total + _pair(values, k, axis, index) * float(taps[k])
    return total


def _near_first(values: Tensor, taps: NDArray[Any], axis: int, mode: str) -> Tensor:
    """Filter along an axis from the nearest pairs on, two at a time, with fused products."""
    radius = len(taps) - 1
    index = _border(values, radius, axis, mode)
    weights = [float(tap) for tap in taps]
    total = weights[0] * values
    for k in range(2, radius + 1, 2):
        near, far = _pair(values, k - 1, axis, index), _pair(values, k, axis, index)
        total = total + _fused(weights[k - 1], near, weights[k] * far)
    if radius % 2:
        total = _fused(weights[radius], _pair(values, radius, axis, index), total)
    return total


def _fused(weight: float, values: Tensor, other: Tensor) -> Tensor:
    return weight * values + other if values.dtype == torch.float64 else fma(weight, values, other)


def smooth(
    fields: Tensor, sigma: float, *, truncate: float = 4.0, border: str = "nearest", gain: float = 1.0
) -> Tensor:
    smoothed = _smoothed(fields, sigma, truncate, border)
    return smoothed if gain == 1 else smoothed * gain


def _smoothed(fields: Tensor, sigma: float, truncate: float, border: str) -> Tensor:
    if sigma == 0:
        return fields
    dtype = np.float64 if fields.dtype == torch.float64 else np.float32
    taps = gaussian_taps(sigma, truncate).astype(dtype)
    if border == "reflect" and len(taps) - 1 > WIDE:
        waves = [wave_gains(size, sigma, truncate) for size in fields.shape[1:]]
        return _smooth_by_waves(fields, *(part.astype(dtype) for wave in waves for part in wave))
    if kernels := triton_kernels("gaussian_blur", fields):
        return kernels.smooth(fields, taps, border)
    for axis in (1, 2):
        fields = _near_first(fields, taps, axis, border)
    return fields


def _smooth_by_waves(fields: Tensor, *waves: NDArray[Any]) -> Tensor:
    """Transform each field into the given waves, multiply by the gains, and transform back."""
    down, down_gain, across, across_gain = (constant(wave, fields.device) for wave in waves)
    gains = down_gain[:, None] * across_gain
    if (kernels := triton_kernels("gaussian_blur", fields)) and fields.dtype == torch.float32:
        return kernels.smooth_by_waves(fields, down, across, gains)
    # One by one: how a product of matrices is summed may depend on how many there are.
    return torch.stack([down.T @ (((down @ field @ across.T) * gains) @ across) for field in fields])
