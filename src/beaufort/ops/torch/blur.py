"""Filters: Gaussian, disk, motion, zoom.

Sums are taken in the order of the processor's kernels, and products are fused with sums where theirs are: on
a plain area a hair below a whole level costs the level, so one rounding more or less would show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort.ops import Ends
from beaufort.ops.cpu._pixels import border_index
from beaufort.ops.cpu.blur import NARROW, WIDE, disk_parts, gaussian_taps, wave_gains, zoom_positions
from beaufort.ops.torch._device import beside, constant, fma, use_kernels

__all__ = ["defocus", "gaussian", "motion", "smooth", "zoom_average"]


def gaussian(images: Tensor, sigma: float, *, horizontal: bool = True, nearest: bool = False) -> Tensor:
    """Gaussian blur, cut at 4σ, the edge repeated outside; only down the columns if not `horizontal`."""
    taps = gaussian_taps(sigma, 4.0)
    exact = len(taps) - 1 <= NARROW or not horizontal
    taps = taps if exact else taps.astype(np.float32)
    if use_kernels(images):
        from beaufort.ops.torch import _blur_kernels

        blur = _blur_kernels.gaussian_exact if exact else _blur_kernels.gaussian
        return blur(images, taps, horizontal=horizontal, nearest=nearest)
    axes = (1, 2) if horizontal else (1,)
    values = images.double() / 255 if exact else images.float()
    for axis in axes:
        values = (_far_first if exact else _near_first)(values, taps, axis, "nearest")
    return _to_bytes(values * 255 if exact else values, nearest=nearest)


def _to_bytes(values: Tensor, *, nearest: bool) -> Tensor:
    values = values.clamp(0, 255)
    return (values.round() if nearest else values).to(torch.uint8)


def _pair(values: Tensor, k: int, axis: int, index: Tensor) -> Tensor:
    """The sum of both neighbors at distance k."""
    size = values.shape[axis]
    radius = (len(index) - size) // 2
    before, after = index[radius - k :][:size], index[radius + k :][:size]
    return values.index_select(axis, before) + values.index_select(axis, after)


def _border(values: Tensor, radius: int, axis: int, mode: str) -> Tensor:
    return constant(border_index(values.shape[axis], radius, radius, mode), values.device)


def _far_first(values: Tensor, taps: NDArray[Any], axis: int, mode: str) -> Tensor:
    """Weigh along an axis from the farthest pair to the nearest, each rounding counted."""
    index = _border(values, len(taps) - 1, axis, mode)
    total = values * float(taps[0])
    for k in range(len(taps) - 1, 0, -1):
        total = total + _pair(values, k, axis, index) * float(taps[k])
    return total


def _near_first(values: Tensor, taps: NDArray[Any], axis: int, mode: str) -> Tensor:
    """Weigh along an axis from the nearest pairs on, two at a time, products fused with sums."""
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


def smooth(fields: Tensor, sigma: float, *, truncate: float = 4.0, border: str = "nearest") -> Tensor:
    """Gaussian smoothing of float fields `(n, h, w)`; the dtype is kept."""
    if sigma == 0:
        return fields
    dtype = np.float64 if fields.dtype == torch.float64 else np.float32
    taps = gaussian_taps(sigma, truncate).astype(dtype)
    if border == "reflect" and len(taps) - 1 > WIDE:
        waves = [wave_gains(size, sigma, truncate) for size in fields.shape[1:]]
        return _smooth_by_waves(fields, *(part.astype(dtype) for wave in waves for part in wave))
    if use_kernels(fields):
        from beaufort.ops.torch import _blur_kernels

        return _blur_kernels.smooth(fields, taps, border)
    for axis in (1, 2):
        fields = _near_first(fields, taps, axis, border)
    return fields


def _smooth_by_waves(fields: Tensor, *waves: NDArray[Any]) -> Tensor:
    """Split each field into the given waves, weigh them, and put them together again."""
    down, down_gain, across, across_gain = (constant(wave, fields.device) for wave in waves)
    gains = down_gain[:, None] * across_gain
    if use_kernels(fields) and fields.dtype == torch.float32:
        from beaufort.ops.torch import _blur_kernels

        return _blur_kernels.smooth_by_waves(fields, down, across, gains)
    # One by one: how a product of matrices is summed may depend on how many there are.
    return torch.stack([down.T @ (((down @ field @ across.T) * gains) @ across) for field in fields])


def defocus(images: Tensor, radius: float, softness: float, *, nearest: bool = False) -> Tensor:
    """Spread each pixel over a soft disk; outside, the image mirrored.

    The flat disk is one box a column, and boxes come from running sums; its rim is smoothed by a small
    Gaussian after that. What the published kernel has beyond the two, at its edge, is added as boxes.
    """
    parts = disk_parts(radius, softness)
    if use_kernels(images):
        from beaufort.ops.torch import _disk_kernels

        return _disk_kernels.defocus(images, parts, nearest=nearest)
    pad, flat_boxes, flat_heights, weight, taps, heights, boxes, weights = parts
    height, width = images.shape[1:3]
    rim = len(taps) - 1
    rows, columns = (
        constant(border_index(size, pad, pad, "mirror"), images.device) for size in (height, width)
    )
    padded = images[:, rows][:, :, columns].to(torch.int32)
    sums = torch.cat([torch.zeros_like(padded[:, :1]), padded.cumsum(1, dtype=torch.int32)], dim=1)

    def box(half: int, at: int, margin: int) -> Tensor:
        """Sums of 2·half + 1 values down, `at` columns to the right, for the image and a margin around it."""
        top, tall = pad - margin, height + 2 * margin
        tower = sums[:, top + 1 + half :][:, :tall] - sums[:, top - half :][:, :tall]
        return tower[:, :, pad - margin + at :][:, :, : width + 2 * margin]

    count = box(int(flat_heights[flat_boxes[0]]), 0, rim)
    for d in range(1, len(flat_boxes)):
        half = int(flat_heights[flat_boxes[d]])
        count = count + box(half, -d, rim) + box(half, d, rim)
    values = count.float() * float(weight)
    for axis in (1, 2):
        values = _rimmed(values, taps, axis)
    for (k, d), share in zip(boxes.tolist(), weights.tolist(), strict=True):
        half = int(heights[k])
        values = fma(share, box(half, -d, 0).float() + box(half, d, 0).float(), values)
    return _to_bytes(values, nearest=nearest)


def _rimmed(values: Tensor, taps: NDArray[Any], axis: int) -> Tensor:
    """Weigh along an axis, of which the ends are used up."""
    rim = len(taps) - 1
    size = values.shape[axis] - 2 * rim
    total = float(taps[0]) * values.narrow(axis, rim, size)
    for k in range(1, rim + 1):
        pair = values.narrow(axis, rim - k, size) + values.narrow(axis, rim + k, size)
        total = fma(float(taps[k]), pair, total)
    return total


def motion(images: Tensor, radius: float, sigma: float, angles_deg: Tensor | NDArray[Any]) -> Tensor:
    """One-sided motion blur: half a Gaussian that starts at the pixel and runs along the angle.

    The 8-bit result is cut off after a Q16 rounding, as in ImageMagick: a value within 1/514 below
    a whole level counts as that level.
    """
    taps = np.arange(2 * math.ceil(radius) + 1)
    weights = np.exp(-(taps**2) / (2 * sigma**2))
    weights = (weights / weights.sum()).astype(np.float32)
    radians = torch.deg2rad(beside(angles_deg, images, torch.float64))[:, None]
    steps = constant(taps.astype(np.float64), images.device)
    down = torch.ceil(steps * radians.sin() - 0.5).to(torch.int32)
    right = torch.ceil(steps * radians.cos() - 0.5).to(torch.int32)
    if use_kernels(images):
        from beaufort.ops.torch import _smear_kernels

        return _smear_kernels.motion(images, weights, down, right)
    height, width = images.shape[1:3]
    which = torch.arange(len(images), device=images.device)[:, None, None]
    y, x = torch.arange(height, device=images.device), torch.arange(width, device=images.device)

    def shifted(k: int) -> Tensor:
        rows = (y + down[:, k, None]).clamp(0, height - 1)
        columns = (x + right[:, k, None]).clamp(0, width - 1)
        return images[which, rows[:, :, None], columns[:, None]].float()

    shares = [float(weight) for weight in weights]
    total = torch.full(images.shape, 1 / 514, dtype=torch.float32, device=images.device)
    k = 0
    while k + 3 < len(shares):
        near = fma(shares[k], shifted(k), shares[k + 1] * shifted(k + 1))
        far = fma(shares[k + 2], shifted(k + 2), shares[k + 3] * shifted(k + 3))
        total = total + (near + far)
        k += 4
    for last in range(k, len(shares)):
        total = fma(shares[last], shifted(last), total)
    return _to_bytes(total, nearest=False)


def zoom_average(
    images: Tensor, factors: Sequence[float], *, nearest: bool = False, like: Ends | None = None
) -> Tensor:
    """The mean of the image and its zooms into the middle; `like` as for `zoom_positions`."""
    height, width = images.shape[1:3]
    tables = []
    for size in (height, width):
        places = [zoom_positions(size, factor, like) for factor in factors]
        tables.append(constant(np.array([at for at, _ in places], np.int32), images.device))
        tables.append(constant(np.array([share for _, share in places], np.float32), images.device))
    mean = float(np.float32(1) / np.float32(len(factors) + 1))
    if use_kernels(images):
        from beaufort.ops.torch import _smear_kernels

        return _smear_kernels.zoom_average(images, tables, mean, nearest=nearest)
    rows, row_share, columns, column_share = tables
    total = images.float()
    for j in range(len(factors)):
        upper = images[:, rows[j]].float()
        lower = images[:, (rows[j] + 1).clamp(max=height - 1)].float()
        mixed = fma(lower - upper, row_share[j][:, None, None], upper)
        mixed = torch.nn.functional.pad(mixed, (0, 0, 0, 1))  # right of the last column stands 0
        left, right = mixed[:, :, columns[j]], mixed[:, :, columns[j] + 1]
        total = total + fma(right - left, column_share[j][:, None], left)
    return _to_bytes(total * mean, nearest=nearest)
