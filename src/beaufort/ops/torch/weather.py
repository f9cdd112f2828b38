"""Fractal fog, snow, and drops of water and mud."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort.ops import Ends
from beaufort.ops.cpu._plasma_rows import plasma_rows
from beaufort.ops.cpu.blur import zoom_positions
from beaufort.ops.torch._device import constant, fma, use_kernels
from beaufort.ops.torch._edges import canny, depths, framed
from beaufort.ops.torch.blur import smooth
from beaufort.rng import Undrawn

__all__ = ["flakes", "mud_spots", "plasma", "snowfall", "water_drops"]


def plasma(
    noise: Tensor | Undrawn, side: int, decay: float, height: int, width: int
) -> Tensor | NDArray[np.float32]:
    """Diamond-square fractals of `side` = 2^k, scaled to [0, 1] and cropped, float32.

    `noise` holds side² - 1 numbers of (-1, 1) an image: for each level the squares, the diamonds
    on the rows and those on the columns. The amplitude is 100² at first and falls by decay² a level.
    Numbers that are too many to hold are drawn on the processor, row by row, and an array comes back.
    """
    if isinstance(noise, Undrawn):
        return plasma_rows(*noise, side, decay, height, width)
    noise = noise.float().contiguous()
    amplitudes = _amplitudes(side, decay)
    if use_kernels(noise):
        from beaufort.ops.torch import _weather_kernels as kernels

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
    """One level: from cells × cells points to twice as many each way, around which the map wraps."""
    square, row, column = wobble.unbind(1)
    right, below = coarse.roll(-1, 2), coarse.roll(-1, 1)
    centers = fma(square, amplitude, ((coarse + right) + (below + right.roll(-1, 1))) * 0.25)
    on_rows = fma(row, amplitude, ((centers + centers.roll(1, 1)) + (coarse + right)) * 0.25)
    on_columns = fma(column, amplitude, ((centers + centers.roll(1, 2)) + (coarse + below)) * 0.25)
    lines = [torch.stack(pair, dim=3).flatten(2) for pair in ((coarse, on_rows), (on_columns, centers))]
    return torch.stack(lines, dim=2).flatten(1, 2)


@lru_cache(maxsize=256)
def _amplitudes(side: int, decay: float) -> NDArray[np.float32]:
    """How far the points of each level are moved, from the coarsest on."""
    amplitudes = [np.float32(10000)]
    while 2 ** len(amplitudes) < side:
        amplitudes.append(amplitudes[-1] / np.float32(decay) ** 2)
    return np.array(amplitudes, np.float32)


def flakes(
    normals: Tensor, mean: float, spread: float, factor: float, threshold: float, *, like: Ends | None = None
) -> Tensor:
    """A layer of grains `(n, h, w, 1)`: normal noise zoomed into the middle, only the brightest left."""
    height, width = normals.shape[1:]
    (rows, row_shares), (columns, column_shares) = (
        zoom_positions(side, factor, like) for side in (height, width)
    )
    if use_kernels(normals):
        from beaufort.ops.torch import _weather_kernels as kernels

        places = constant(np.concatenate([rows, columns]).astype(np.int32), normals.device)
        shares = constant(
            np.concatenate([row_shares, column_shares, (mean, spread, threshold)]), normals.device
        )
        return kernels.flakes(normals.contiguous(), places, shares)
    device = normals.device
    top, left = constant(rows, device), constant(columns, device)
    t, s = constant(row_shares, device)[:, None], constant(column_shares, device)
    wide = normals.double()
    lines = wide[:, top] * (1 - t) + wide[:, (top + 1).clamp(max=height - 1)] * t
    zoomed = lines[:, :, left] * (1 - s) + lines[:, :, (left + 1).clamp(max=width - 1)] * s
    value = zoomed * spread + mean
    value = torch.where(value < threshold, 0.0, value).clamp(0, 1)
    return (value * 255).byte()[..., None]


def snowfall(images: Tensor, layers: Tensor, mix: float, *, nearest: bool = False) -> Tensor:
    """Whiten the image, then add the layer and the layer turned by 180°."""
    if use_kernels(images):
        from beaufort.ops.torch import _weather_kernels as kernels

        constants = np.array([mix, 1 - _f32(mix), 0.299, 0.587, 0.114], np.float32)
        return kernels.snowfall(images, layers, constant(constants, images.device), nearest)
    values = images.float()
    grey = values
    if images.shape[-1] == 3:
        red, green, blue = values.split(1, dim=-1)
        grey = fma(_f32(0.114), blue, fma(_f32(0.299), red, green * _f32(0.587)))
    pale = torch.maximum(values, fma(1.5, grey, 127.5))
    both = (layers.int() + layers.int().flip(1, 2)).float()[..., None]
    mix = _f32(mix)
    snowy = (fma(mix, values, pale * _f32(1 - mix)) + both).clamp(0, 255)
    return (snowy.round() if nearest else snowy).byte()


def _f32(value: float) -> float:
    """The float32 number nearest to a constant, as the CPU's kernels have it."""
    return float(np.float32(value))


def mud_spots(
    normals: Tensor, mean: float, spread: float, sigma: float, threshold: float, rim: float
) -> Tensor:
    """How much mud covers each pixel, 0 or 0.8 to 1, float32: noise above a threshold, rounded off."""
    smoothed = smooth(normals.double(), sigma)
    if use_kernels(normals):
        from beaufort.ops.torch import _drops_kernels as kernels

        spots = kernels.spots(smoothed, constant(np.array((mean, spread, threshold)), normals.device))
    else:
        spots = (smoothed * spread + mean > threshold).float()
    masks = smooth(spots, rim)
    return masks.masked_fill(masks < _f32(0.8), 0)


def water_drops(
    normals: Tensor, mean: float, spread: float, sigma: float, threshold: float, strength: float
) -> Tensor:
    """How much light each pixel of water adds, float32: drops with a bright and a dark rim."""
    smoothed = smooth(normals.double(), sigma)
    if use_kernels(normals):
        from beaufort.ops.torch import _drops_kernels as kernels

        water = kernels.liquid(smoothed, constant(np.array((mean, spread, threshold)), normals.device))
        steps, counts = kernels.steps(depths(canny(water, 50, 150)))
        shine = kernels.shine(water, kernels.relief(steps, _equalizer(counts)))
    else:
        value = smoothed * spread + mean
        water = torch.where(value < threshold, 0, (value * 255).int()).byte()
        steps = _box(depths(canny(water, 50, 150)).double()).mul(1 / 9).float().byte()
        counts = torch.stack([(steps == step).sum((1, 2)) for step in range(_STEPS)], dim=1)
        level = _equalizer(counts).gather(1, steps.flatten(1).long()).view_as(steps)
        relief = _emboss(level.int()).clamp(0, 255)
        shine = water * ((2 * _box(relief) + 9) // 18)
    brightest = shine.amax((1, 2), keepdim=True).float()
    gain = torch.where(brightest > 0, torch.full_like(brightest, strength) / brightest, 0)
    return shine.float() * gain


_STEPS = 21
"""Depths are cut at 20 pixels, so that as many whole ones are left."""


def _equalizer(counts: Tensor) -> Tensor:
    """For each step its level, 0…255, that makes all levels as frequent, as OpenCV has it.

    The lowest step that occurs becomes 0; if no other does, everything stays as it is.
    """
    steps = torch.arange(_STEPS, dtype=torch.int32, device=counts.device)
    sums = counts.cumsum(1)
    total = sums[:, -1:]
    lowest = counts.gather(1, (counts > 0).int().argmax(1, keepdim=True))
    scale = torch.full_like(total, 255, dtype=torch.float32) / (total - lowest)
    levels = ((sums - lowest).float() * scale).round().clamp(0, 255)
    return torch.where(lowest == total, steps, levels).byte()


def _box(values: Tensor) -> Tensor:
    """The sums over 3×3 pixels, the image mirrored outside."""
    wide = framed(values, "mirror")
    lines = wide[:, :, :-2] + wide[:, :, 1:-1] + wide[:, :, 2:]
    return lines[:, :-2] + lines[:, 1:-1] + lines[:, 2:]


def _emboss(values: Tensor) -> Tensor:
    """The relief in the light from the upper left, taps (-2 -1 0 / -1 1 1 / 0 1 2)."""
    wide = framed(values, "mirror")
    height, width = values.shape[1:]

    def near(down: int, right: int) -> Tensor:
        return wide[:, 1 + down : 1 + down + height, 1 + right : 1 + right + width]

    slope = 2 * (near(1, 1) - near(-1, -1)) + near(0, 1) - near(0, -1) + near(1, 0) - near(-1, 0)
    return slope + values
