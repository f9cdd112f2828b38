"""Fractals and haze, in torch."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside, constant, f32, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.cpu.plasma_rows import plasma_rows
from beaufort.corruptions._kernels.torch.values import to_bytes
from beaufort.corruptions.rng import FieldKey


def plasma(
    noise: Tensor | FieldKey, side: int, decay: float, height: int, width: int
) -> Tensor | NDArray[np.float32]:
    if isinstance(noise, FieldKey):
        return plasma_rows(noise, side, decay, height, width)
    noise = noise.float().contiguous()
    amplitudes = _amplitudes(side, decay)
    if kernels := triton_kernels("fog", noise):
        return kernels.plasma(noise, constant(amplitudes, noise.device), side, height, width)
    points = noise.new_zeros((len(noise), 1, 1))
    start = 0
    for amplitude in amplitudes.tolist():
        size = points[0].numel()
        wobble = noise[:, start : start + 3 * size].unflatten(1, (3, *points.shape[1:]))
        points = _refine(points, wobble, amplitude)
        start += 3 * size
    low, high = points.amin((1, 2), keepdim=True), points.amax((1, 2), keepdim=True)
    return (points[:, :height, :width] - low) * (1 / (high - low))


def _refine(coarse: Tensor, wobble: Tensor, amplitude: float) -> Tensor:
    """Refine one level: from cells × cells points to twice as many per axis; the map is periodic."""
    square, row, column = wobble.unbind(1)
    right, below = coarse.roll(-1, 2), coarse.roll(-1, 1)
    centers = fma(square, amplitude, ((coarse + right) + (below + right.roll(-1, 1))) * 0.25)
    on_rows = fma(row, amplitude, ((centers + centers.roll(1, 1)) + (coarse + right)) * 0.25)
    on_columns = fma(column, amplitude, ((centers + centers.roll(1, 2)) + (coarse + below)) * 0.25)
    lines = [torch.stack(pair, dim=3).flatten(2) for pair in ((coarse, on_rows), (on_columns, centers))]
    return torch.stack(lines, dim=2).flatten(1, 2)


@lru_cache(maxsize=256)
def _amplitudes(side: int, decay: float) -> NDArray[np.float32]:
    """Return the amplitude of each level, from the coarsest on."""
    amplitudes = [np.float32(10000)]
    while 2 ** len(amplitudes) < side:
        amplitudes.append(amplitudes[-1] / np.float32(decay) ** 2)
    return np.array(amplitudes, np.float32)


def haze(
    images: Tensor, fields: Tensor | NDArray[np.float32], amount: float, *, nearest: bool = False
) -> Tensor:
    fields = beside(fields, images)
    brightest = images.flatten(1).amax(dim=1)
    if kernels := triton_kernels("fog", images):
        return kernels.haze(images, fields, brightest, f32(amount), nearest)
    levels = np.arange(256, dtype=np.float32) / 255
    top = constant(levels, images.device)[brightest.long()][:, None, None]
    gain = top / (top + f32(amount))
    thick = fields * (gain * f32(amount) * 255)
    return to_bytes(fma(images.float(), gain[..., None], thick[..., None]), nearest=nearest)
