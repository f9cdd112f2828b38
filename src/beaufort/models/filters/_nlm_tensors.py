"""Non-local means of torch tensors where they are: one shift of the whole batch at a time, for a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

    from beaufort.models.filters.nlm import NonLocalMeans

_CUTOFF = 5.0
"""As for the processor."""


class _Shift(NamedTuple):
    down: int
    right: int


def denoise_tensors(images: Tensor, noise: Tensor, options: NonLocalMeans) -> Tensor:
    """The images, uint8 `(n, channels, h, w)`, denoised by the noise `(n,)` that each has.

    It sums what the loops for the processor sum, in another order: few pixels differ, by one level.
    """
    import torch

    planes = images.float() / 255
    border = options.patch // 2 + options.distance + 1
    wide = _mirrored(planes, border)
    level = (options.h * noise.to(wide)).clamp_min(1e-8)
    scale = (1 / (planes.shape[1] * level**2 * options.patch**2))[:, None, None]
    expected = 2 * noise.to(wide)[:, None, None] ** 2 * planes.shape[1] * options.subtract
    total, weights = planes.clone(), torch.ones_like(planes[:, 0])
    for shift in _shifts(options.distance):
        weight = _weights(wide, shift, border, options.patch // 2, expected, scale)
        for part, other in _both_ways(weight, wide, shift, border):
            total += part[:, None] * other
            weights += part
    made = (total / weights[:, None] * 255).clamp(0, 255).round().to(torch.uint8)
    return torch.where((noise.to(images.device) > 0)[:, None, None, None], made, images)


def _mirrored(planes: Tensor, border: int) -> Tensor:
    """With a border as `np.pad` makes it, which may be wider than the picture: torch's may not."""
    import torch

    rows, columns = (
        torch.from_numpy(np.pad(np.arange(side), border, mode="reflect")).to(planes.device)
        for side in planes.shape[2:]
    )
    return planes[:, :, rows][..., columns]


def _shifts(reach: int) -> Iterator[_Shift]:
    """Half of all shifts: a distance counts for both of its pixels."""
    for down in range(reach + 1):
        for right in range(-reach, reach + 1):
            if down > 0 or right > 0:
                yield _Shift(down, right)


def _weights(
    wide: Tensor, shift: _Shift, border: int, radius: int, expected: Tensor, scale: Tensor
) -> Tensor:
    """The weight of each pair of which one pixel at least is inside the picture."""
    from torch.nn import functional

    height, width = wide.shape[2:]
    top, left = border - shift.down, border - max(shift.right, 0)
    bottom, end = height - border, width - border + max(-shift.right, 0)
    rows = slice(top - radius + 1, bottom + radius)
    columns = slice(left - radius + 1, end + radius)
    moved = wide[
        :,
        :,
        rows.start + shift.down : rows.stop + shift.down,
        columns.start + shift.right : columns.stop + shift.right,
    ]
    apart = (wide[:, :, rows, columns] - moved).square_().sum(1) - expected
    box = 2 * radius
    sums = functional.avg_pool2d(apart[:, None], box, stride=1)[:, 0] * box**2
    distance = sums.clamp_min_(0).mul_(scale)
    return (-distance).exp_() * (distance <= _CUTOFF)


def _both_ways(weight: Tensor, wide: Tensor, shift: _Shift, border: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Weights of the pixels inside, and the pixels that they are for: the shifted ones, then those back."""
    height, width = wide.shape[2] - 2 * border, wide.shape[3] - 2 * border
    for sign, row, column in (
        (1, shift.down, max(shift.right, 0)),
        (-1, 0, max(-shift.right, 0)),
    ):
        top, left = border + sign * shift.down, border + sign * shift.right
        part = weight[:, row : row + height, column : column + width]
        yield part, wide[:, :, top : top + height, left : left + width]
