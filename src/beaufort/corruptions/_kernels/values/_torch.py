"""Single values and whole arrays, in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant, use_kernels


def to_bytes(values: Tensor, *, nearest: bool = False) -> Tensor:
    """Clip 0…255 values and cut the fraction off, or round half to even."""
    values = values.clamp(0, 255)
    return (values.round() if nearest else values).to(torch.uint8)


def look_up(values: Tensor, table: NDArray[np.uint8]) -> Tensor:
    """The table's entry for each whole number, and its last entry for all beyond."""
    entries = constant(table, values.device)
    if use_kernels(values):
        from beaufort.corruptions._kernels.values import _triton as kernels

        return kernels.look_up(values, entries)
    return entries[values.clamp(max=len(table) - 1).long()]


def mix(images: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """The mean of several versions of the same images, rounded; weights are multiples of 1/256."""
    total = torch.full(images[0].shape, 128, dtype=torch.int32, device=images[0].device)
    for version, weight in zip(images, weights, strict=True):
        total += version.to(torch.int32) * round(weight * 256)
    return (total >> 8).to(torch.uint8)


def pick(fields: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Any:
    """Some rows and columns of every field `(n, h, w, …)`, by their numbers; an array stays an array."""
    if isinstance(fields, np.ndarray):
        return np.ascontiguousarray(fields[:, rows][:, :, columns])
    down, across = constant(rows, fields.device), constant(columns, fields.device)
    return fields.index_select(1, down).index_select(2, across)
