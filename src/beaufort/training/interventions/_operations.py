"""Simple operations on batches of images in 0..1, as Pillow has them; each image has a level of its own.

A level of 1 is the strongest: 30 degrees, a third of a side, a shear of 0.3, one bit of four. Turns and
shears leave the middle where it is; Pillow shears from a corner.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def autocontrast(images: Tensor) -> Tensor:
    """Each channel spread over 0..1."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    wide = high > low
    return torch.where(wide, (images - low) / torch.where(wide, high - low, 1), images)


def equalize(images: Tensor) -> Tensor:
    """Each channel with all of 256 values about equally frequent."""
    count, channels, height, width = images.shape
    levels = (images * 255).round().long().reshape(count * channels, -1)
    counts = torch.zeros(count * channels, 256, device=images.device)
    counts.scatter_add_(1, levels, torch.ones_like(levels, dtype=torch.float32))
    last = counts.gather(1, levels.amax(1, keepdim=True))
    step = ((height * width - last) / 255).floor()
    before = counts.cumsum(1) - counts
    table = ((before + (step / 2).floor()) / step.clamp_min(1)).floor().clamp(0, 255)
    made = table.gather(1, levels).reshape(images.shape) / 255
    return torch.where((step > 0).view(count, channels, 1, 1), made, images)


def posterize(images: Tensor, level: Tensor) -> Tensor:
    """Fewer bits: four, down to one."""
    bits = 4 - (level * 4).floor().clamp(max=3)
    size = (2 ** (8 - bits)).view(-1, 1, 1, 1)
    return ((images * 255).round() / size).floor() * size / 255


def solarize(images: Tensor, level: Tensor) -> Tensor:
    """Values above a threshold inverted."""
    threshold = (256 - (level * 256).floor()).view(-1, 1, 1, 1) / 255
    return torch.where(images < threshold, images, 1 - images)


def rotate(images: Tensor, level: Tensor) -> Tensor:
    """Turned by up to 30 degrees, to either side."""
    angle = _signed(level) * math.radians(30)
    one, zero = torch.cos(angle), torch.zeros_like(angle)
    return _moved(images, one, -torch.sin(angle), zero, torch.sin(angle), one, zero)


def shear_x(images: Tensor, level: Tensor) -> Tensor:
    """Rows moved in proportion to their height."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _moved(images, one, 0.3 * _signed(level), zero, zero, one, zero)


def shear_y(images: Tensor, level: Tensor) -> Tensor:
    """Columns moved in proportion to their place."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _moved(images, one, zero, zero, 0.3 * _signed(level), one, zero)


def translate_x(images: Tensor, level: Tensor) -> Tensor:
    """Moved sideways by up to a third of the width."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _moved(images, one, zero, _signed(level) * 2 / 3, zero, one, zero)


def translate_y(images: Tensor, level: Tensor) -> Tensor:
    """Moved up or down by up to a third of the height."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _moved(images, one, zero, zero, zero, one, _signed(level) * 2 / 3)


def _signed(level: Tensor) -> Tensor:
    return torch.where(torch.rand_like(level) < 0.5, -level, level)


def _moved(images: Tensor, *entries: Tensor) -> Tensor:
    """An affine map of each image, its shifts in units of half a side; what comes in is black."""
    maps = torch.stack(entries, 1).view(-1, 2, 3)
    height, width = images.shape[2:]
    maps[:, 0, 1] *= height / width  # torch counts each axis in its own half sides
    maps[:, 1, 0] *= width / height
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
