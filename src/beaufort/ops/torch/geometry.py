"""Moving pixels: warps and cells."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort.errors import ImageValueError
from beaufort.ops.cpu._pixels import border_index
from beaufort.ops.cpu.geometry import MOST_PIXELS, cell_areas, cell_table
from beaufort.ops.torch._device import beside, constant, fma, use_kernels

__all__ = ["affine", "displace", "displace_zero", "pixel_cells", "soft_cells"]


def affine(images: Tensor, matrices: Tensor | NDArray[Any], *, border: str) -> Tensor:
    """Float32 bilinear samples (0…255): pixel (x, y) comes from matrix · (x, y, 1).

    Outside stands the image mirrored (`mirror`), or black (`zero`), which samples across the edge blend in.
    """
    maps = beside(matrices, images, torch.float64).contiguous()
    if use_kernels(images):
        from beaufort.ops.torch import _geometry_kernels as kernels

        return kernels.affine(images, maps, border)
    height, width = images.shape[1:3]
    x = torch.arange(width, dtype=torch.float64, device=images.device)
    y = torch.arange(height, dtype=torch.float64, device=images.device)[:, None]
    a, b, c, d, e, f = (number[:, None, None] for number in maps.reshape(-1, 6).unbind(1))
    from_x, from_y = a * x + (b * y + c), d * x + (e * y + f)
    if border == "zero":
        # A black frame, of which the far pixel stands for everything outside.
        framed = torch.nn.functional.pad(images, (0, 0, 1, 1, 1, 1))
        from_x, from_y = (from_x + 1).clamp(0, width + 1), (from_y + 1).clamp(0, height + 1)
        left, top = from_x.long(), from_y.long()
        right, low = (left + 1).clamp(max=width + 1), (top + 1).clamp(max=height + 1)
        return _sample(framed, top, low, left, right, (from_x - left).float(), (from_y - top).float())
    left, top = from_x.floor(), from_y.floor()
    share = (from_x - left).float(), (from_y - top).float()
    return _sample(
        images, *_inside(top, height, width, border), *_inside(left, width, height, border), *share
    )


def displace(images: Tensor, right: Tensor, down: Tensor, *, nearest: bool = False) -> Tensor:
    """Bilinear samples of float images at (x + right, y + down); outside, the image mirrored."""
    if use_kernels(images):
        from beaufort.ops.torch import _geometry_kernels as kernels

        return kernels.displace(images, right, down, nearest)
    height, width = images.shape[1:3]
    x = torch.arange(width, dtype=torch.float32, device=images.device)
    y = torch.arange(height, dtype=torch.float32, device=images.device)[:, None]
    from_x, from_y = x + right, y + down
    left, top = from_x.floor(), from_y.floor()
    rows, columns = _inside(top, height, width, "reflect"), _inside(left, width, height, "reflect")
    moved = _sample(images, *rows, *columns, from_x - left, from_y - top).clamp(0, 255)
    return (moved.round() if nearest else moved).byte()


def displace_zero(images: Tensor, right: Tensor, down: Tensor) -> Tensor:
    """As `displace`, but black wherever the sample lies outside; rounded."""
    if use_kernels(images):
        from beaufort.ops.torch import _geometry_kernels as kernels

        return kernels.displace_zero(images, right, down)
    height, width = images.shape[1:3]
    x = torch.arange(width, dtype=torch.float64, device=images.device)
    y = torch.arange(height, dtype=torch.float64, device=images.device)[:, None]
    from_x, from_y = x + right, y + down
    inside = (from_x >= 0) & (from_y >= 0) & (from_x <= width - 1) & (from_y <= height - 1)
    from_x, from_y = from_x.clamp(0, width - 1), from_y.clamp(0, height - 1)
    left, top = from_x.long(), from_y.long()
    right_x, low_y = (left + 1).clamp(max=width - 1), (top + 1).clamp(max=height - 1)
    shares = (from_x - left).float(), (from_y - top).float()
    moved = _sample(images, top, low_y, left, right_x, *shares).clamp(0, 255).round()
    return torch.where(inside[..., None], moved, 0).byte()


def _inside(at: Tensor, size: int, other: int, border: str) -> tuple[Tensor, Tensor]:
    """The pixels that stand at a coordinate and at the one after it; far outside, all is one pixel."""
    margin = 2 * max(size, other)
    table = constant(border_index(size, margin, margin + 1, border), at.device)
    place = at.clamp(-margin, size + margin - 1).long() + margin
    return table[place], table[place + 1]


def _sample(
    images: Tensor, top: Tensor, low: Tensor, left: Tensor, right: Tensor, s: Tensor, t: Tensor
) -> Tensor:
    """Between four neighbors: s of the way to the right, t of the way down."""
    width, channels = images.shape[2:]
    pixels = images.flatten(1, 2)

    def pick(rows: Tensor, columns: Tensor) -> Tensor:
        at = (rows * width + columns).flatten(1)[..., None].expand(-1, -1, channels)
        return pixels.gather(1, at).float().view(*rows.shape, channels)

    s, t = s[..., None], t[..., None]
    first, second = pick(top, left), pick(low, left)
    upper = fma(pick(top, right) - first, s, first)
    return fma(fma(pick(low, right) - second, s, second) - upper, t, upper)


def pixel_cells(images: Tensor, rows: int, columns: int) -> Tensor:
    """Average into rows × columns cells and show each cell flat, as PIL's BOX filter does."""
    height, width = images.shape[1:3]
    down, down_shown = _cell_table(height, rows, images.device)
    across, across_shown = _cell_table(width, columns, images.device)
    if use_kernels(images):
        from beaufort.ops.torch import _geometry_kernels as kernels

        return kernels.pixel_cells(images, down, down_shown, across, across_shown)
    narrow = _means(images, across, 2)
    return _means(narrow, down, 1)[:, down_shown][:, :, across_shown]


def soft_cells(images: Tensor, rows: float, columns: float, softness: float) -> Tensor:
    """Average into cells whose edges may cut pixels; a pixel shows the cells by its area in each."""
    count, height, width, channels = images.shape
    down, across = (
        constant(cell_areas(size, cells, softness), images.device)
        for size, cells in ((height, rows), (width, columns))
    )
    wide = _weighted(across.T, _weighted(across, images.double()))
    wide = _weighted(down.T, _weighted(down, wide.reshape(count, height, width * channels)))
    return wide.reshape(images.shape).byte()


def _weighted(areas: Tensor, values: Tensor) -> Tensor:
    """Means by area, rounded; all sums are of whole numbers, and so the same in any order."""
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
    most = int(table[:, 1].max())
    if most > MOST_PIXELS:
        raise ImageValueError(
            f"cells of {most} pixels came; at most {MOST_PIXELS} are accepted: shrink the image first"
        )
    weights = [round((1 << 22) / int(count)) for count in table[:, 1]]
    full = np.column_stack([table, weights]).astype(np.int32)
    return torch.from_numpy(full).to(device), torch.from_numpy(shown.astype(np.int32)).to(device)
