"""Flakes and snowfall, in torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from beaufort._core.device import constant, f32, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.cpu.zoom_blur import zoom_positions
from beaufort.corruptions._kernels.operations import Ends


def flakes(
    normals: Tensor, mean: float, spread: float, factor: float, threshold: float, *, like: Ends | None = None
) -> Tensor:
    height, width = normals.shape[1:]
    (rows, row_weights), (columns, column_weights) = (
        zoom_positions(side, factor, like) for side in (height, width)
    )
    if kernels := triton_kernels("snow", normals):
        places = constant(np.concatenate([rows, columns]).astype(np.int32), normals.device)
        weights = constant(
            np.concatenate([row_weights, column_weights, (mean, spread, threshold)]), normals.device
        )
        return kernels.flakes(normals.contiguous(), places, weights)
    device = normals.device
    top, left = constant(rows, device), constant(columns, device)
    t, s = constant(row_weights, device)[:, None], constant(column_weights, device)
    wide = normals.double()
    lines = wide[:, top] * (1 - t) + wide[:, (top + 1).clamp(max=height - 1)] * t
    zoomed = lines[:, :, left] * (1 - s) + lines[:, :, (left + 1).clamp(max=width - 1)] * s
    value = zoomed * spread + mean
    value = torch.where(value < threshold, 0.0, value).clamp(0, 1)
    return (value * 255).byte()[..., None]


def snowfall(images: Tensor, layers: Tensor, mix: float, *, nearest: bool = False) -> Tensor:
    if kernels := triton_kernels("snow", images):
        constants = np.array([mix, 1 - f32(mix), 0.299, 0.587, 0.114], np.float32)
        return kernels.snowfall(images, layers, constant(constants, images.device), nearest)
    values = images.float()
    gray = values
    if images.shape[-1] == 3:
        red, green, blue = values.split(1, dim=-1)
        gray = fma(f32(0.114), blue, fma(f32(0.299), red, green * f32(0.587)))
    pale = torch.maximum(values, fma(1.5, gray, 127.5))
    both = (layers.int() + layers.int().flip(1, 2)).float()[..., None]
    mix = f32(mix)
    snowy = (fma(mix, values, pale * f32(1 - mix)) + both).clamp(0, 255)
    return (snowy.round() if nearest else snowy).byte()
