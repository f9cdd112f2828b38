"""The soft disk of a lens, in torch."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.borders import border_index
from beaufort.corruptions._kernels.cpu.defocus_blur import disk_parts
from beaufort.corruptions._kernels.torch.values import to_bytes


def defocus(images: Tensor, radius: float, softness: float, *, nearest: bool = False) -> Tensor:
    parts = disk_parts(radius, softness)
    if kernels := triton_kernels("defocus_blur", images):
        return kernels.defocus(images, parts, nearest=nearest)
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
    for (k, d), factor in zip(boxes.tolist(), weights.tolist(), strict=True):
        half = int(heights[k])
        values = fma(factor, box(half, -d, 0).float() + box(half, d, 0).float(), values)
    return to_bytes(values, nearest=nearest)


def _rimmed(values: Tensor, taps: NDArray[Any], axis: int) -> Tensor:
    """Filter along an axis, without padding."""
    rim = len(taps) - 1
    size = values.shape[axis] - 2 * rim
    total = float(taps[0]) * values.narrow(axis, rim, size)
    for k in range(1, rim + 1):
        pair = values.narrow(axis, rim - k, size) + values.narrow(axis, rim + k, size)
        total = fma(float(taps[k]), pair, total)
    return total
