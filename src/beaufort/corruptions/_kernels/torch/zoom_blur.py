"""Zooms about the center, in torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from beaufort._core.device import constant, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.cpu.zoom_blur import zoom_positions
from beaufort.corruptions._kernels.operations import Ends
from beaufort.corruptions._kernels.torch.values import to_bytes


def zoom_average(
    images: Tensor, factors: Sequence[float], *, nearest: bool = False, like: Ends | None = None
) -> Tensor:
    height, width = images.shape[1:3]
    tables = []
    for size in (height, width):
        places = [zoom_positions(size, factor, like) for factor in factors]
        tables.append(constant(np.array([at for at, _ in places], np.int32), images.device))
        tables.append(constant(np.array([weight for _, weight in places], np.float32), images.device))
    mean = float(np.float32(1) / np.float32(len(factors) + 1))
    if kernels := triton_kernels("zoom_blur", images):
        return kernels.zoom_average(images, tables, mean, nearest=nearest)
    rows, row_weight, columns, column_weight = tables
    total = images.float()
    for j in range(len(factors)):
        upper = images[:, rows[j]].float()
        lower = images[:, (rows[j] + 1).clamp(max=height - 1)].float()
        mixed = fma(lower - upper, row_weight[j][:, None, None], upper)
        mixed = torch.nn.functional.pad(mixed, (0, 0, 0, 1))  # 0 right of the last column
        left, right = mixed[:, :, columns[j]], mixed[:, :, columns[j] + 1]
        total = total + fma(right - left, column_weight[j][:, None], left)
    return to_bytes(total * mean, nearest=nearest)
