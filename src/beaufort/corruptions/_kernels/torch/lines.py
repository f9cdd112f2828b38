"""Strokes, in torch."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside, constant
from beaufort.corruptions._kernels.cpu.lines import opacity


def strokes(
    images: Tensor,
    segments: Tensor | NDArray[Any],
    counts: Tensor | NDArray[Any],
    *,
    unit: float = 1.0,
    dash: float = 0.0,
) -> Tensor:
    height, width = images.shape[1:3]
    lines = beside(segments, images, torch.float64)
    drawn = torch.arange(lines.shape[1], device=images.device) < beside(counts, images)[:, None]
    open_columns = constant(_open_columns(width, dash), images.device)
    x = torch.arange(width, dtype=torch.float64, device=images.device)
    y = torch.arange(height, dtype=torch.float64, device=images.device)[:, None]
    reach = 2.3 * (1 - math.exp(-1.0)) * unit
    canvas = images.float()
    for line, there in zip(lines.unbind(1), drawn.unbind(1), strict=True):
        x0, y0, x1, y1 = line[:, :, None, None].unbind(1)
        columns = (x >= x0.floor()) & (x < x1.ceil()) & open_columns & there[:, None, None] & (x0 != x1)
        middle = y0 + (y1 - y0) / (x1 - x0) * (x - x0)
        touched = columns & (y >= (middle - reach).ceil()) & (y <= (middle + reach).floor())
        distance = torch.where(touched, (y - middle).abs(), 0.0)
        light = 1 + torch.log(1 - distance / (2.3 * unit))
        light = torch.where(touched & (light > 0), light * 255, 0.0).float()[..., None]
        canvas = torch.where(light > 0, (canvas + light).clamp(max=255), canvas)
    return canvas.round().byte()


@lru_cache(maxsize=64)
def _open_columns(width: int, dash: float) -> NDArray[np.bool_]:
    """The columns in which a stroke leaves a trace."""
    if dash <= 0:
        return np.ones(width, np.bool_)
    return (np.arange(width) / dash).astype(np.int64) % 2 == 1


def gray_lines(images: Tensor, ends: NDArray[Any]) -> Tensor:
    """Draw antialiased lines between whole (row, column, row, column), `(n, lines, 4)`, in middle gray.

    One after the other: values are cut off to 8 bit after each. The host finds the pixels of a line.
    """
    out = images.double()
    opaque = np.empty(tuple(images.shape[:3]))
    for lines in ends.swapaxes(0, 1):
        for line, plane in zip(lines.tolist(), opaque, strict=True):
            opacity(*line, plane)
        o = beside(opaque.copy(), images)[..., None]
        out = torch.where(o >= 0, ((1 - o) * out + o * 128).floor(), out)
    return out.to(torch.uint8)
