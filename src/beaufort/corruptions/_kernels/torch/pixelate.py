"""Cells of pixels, in torch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.cpu.pixelate import cell_areas, cell_table


def pixel_cells(images: Tensor, rows: int, columns: int) -> Tensor:
    height, width = images.shape[1:3]
    down, down_shown = _cell_table(height, rows, images.device)
    across, across_shown = _cell_table(width, columns, images.device)
    if kernels := triton_kernels("pixelate", images):
        return kernels.pixel_cells(images, down, down_shown, across, across_shown)
    narrow = _means(images, across, 2)
    return _means(narrow, down, 1)[:, down_shown][:, :, across_shown]


def soft_cells(images: Tensor, rows: float, columns: float, softness: float) -> Tensor:
    count, height, width, channels = images.shape
    down, across = (
        constant(cell_areas(size, cells, softness), images.device)
        for size, cells in ((height, rows), (width, columns))
    )
    wide = _weighted(across.T, _weighted(across, images.double()))
    wide = _weighted(down.T, _weighted(down, wide.reshape(count, height, width * channels)))
    return wide.reshape(images.shape).byte()


def _weighted(areas: Tensor, values: Tensor) -> Tensor:
    """Means by area, rounded; all sums are of integers, and so the same in any order."""
    whole = areas.sum(dim=1, keepdim=True)
    return ((areas @ values + whole / 2) / whole).floor()


def _means(images: Tensor, cells: Tensor, axis: int) -> Tensor:
    """The rounded mean of each cell along an axis, in PIL's fixed point."""
    first, count, weight = cells.long().unbind(1)
    sums = torch.nn.functional.pad(images.movedim(axis, -1).cumsum(-1, dtype=torch.int32), (1, 0))
    totals = sums[..., first + count] - sums[..., first]
    return (totals * weight + (1 << 21) >> 22).byte().movedim(-1, axis)


@lru_cache(maxsize=128)
def _cell_table(size: int, cells: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """First pixel, number of pixels and weight of a pixel (in 2⁻²²) of each cell; each pixel's cell."""
    table, shown = cell_table(size, cells)
    weights = [round((1 << 22) / int(count)) for count in table[:, 1]]
    full = np.column_stack([table, weights]).astype(np.int32)
    return torch.from_numpy(full).to(device), torch.from_numpy(shown.astype(np.int32)).to(device)


def pick(fields: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Any:
    """Select rows and columns of every field `(n, h, w, …)` by index; an array stays an array."""
    if isinstance(fields, np.ndarray):
        return np.ascontiguousarray(fields[:, rows][:, :, columns])
    down, across = constant(rows, fields.device), constant(columns, fields.device)
    return fields.index_select(1, down).index_select(2, across)
