"""Drops of water and mud, in torch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from beaufort._core.device import constant, f32, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.torch.canny_edges import framed
from beaufort.corruptions._kernels.torch.gaussian_blur import smooth
from beaufort.corruptions._kernels.torch.spatter_edges import canny, depths
from beaufort.corruptions._kernels.torch.values import to_bytes


def mud_spots(
    normals: Tensor, mean: float, spread: float, sigma: float, threshold: float, rim: float
) -> Tensor:
    smoothed = smooth(normals.double(), sigma)
    if kernels := triton_kernels("spatter", normals):
        spots = kernels.spots(smoothed, constant(np.array((mean, spread, threshold)), normals.device))
    else:
        spots = (smoothed * spread + mean > threshold).float()
    masks = smooth(spots, rim)
    return masks.masked_fill(masks < f32(0.8), 0)


def water_drops(
    normals: Tensor, mean: float, spread: float, sigma: float, threshold: float, strength: float
) -> Tensor:
    smoothed = smooth(normals.double(), sigma)
    if kernels := triton_kernels("spatter", normals):
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


def run_down(layers: Tensor, weights: Mapping[int, float]) -> Tensor:
    if kernels := triton_kernels("spatter", layers):
        rows, parts = np.array(list(weights), np.int32), np.array(list(weights.values()))
        return kernels.run_down(layers, constant(rows, layers.device), constant(parts, layers.device))
    below = torch.zeros_like(layers)
    for above, weight in weights.items():
        if above >= 0:
            below[:, above:] += weight * layers[:, : layers.shape[1] - above]
        else:
            below[:, :above] += weight * layers[:, -above:]
    return below


def paint(
    images: Tensor, masks: Tensor, color: tuple[float, ...], *, cover: bool, nearest: bool = False
) -> Tensor:
    if kernels := triton_kernels("spatter", images):
        return kernels.paint(images, masks, tuple(map(f32, color)), cover, nearest)
    masks = masks[..., None]
    added = masks * constant(np.array(color, np.float32), images.device)
    return to_bytes(fma(images.float(), 1 - masks if cover else 1.0, added), nearest=nearest)
