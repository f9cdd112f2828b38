"""Maps of one value or one pixel in torch: noise, haze, color. Rounded where `ops.cpu.pointwise` rounds."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort.ops.cpu.pointwise import brighter
from beaufort.ops.torch._device import beside, constant, fma, use_kernels

__all__ = [
    "add_field",
    "add_noise",
    "blend",
    "brighten",
    "excess",
    "haze",
    "look_up",
    "lower_contrast",
    "mix",
    "multiply_noise",
    "paint",
    "pick",
    "replace",
    "saturate_colors",
    "scale_counts",
    "shift",
    "to_bytes",
]


def _kernels() -> ModuleType:
    from beaufort.ops.torch import _pointwise_kernels

    return _pointwise_kernels


def _f32(value: float) -> float:
    return float(np.float32(value))


def to_bytes(values: Tensor, *, nearest: bool = False) -> Tensor:
    """Clip 0…255 values and cut the fraction off, or round half to even."""
    values = values.clamp(0, 255)
    return (values.round() if nearest else values).to(torch.uint8)


def add_noise(images: Tensor, noise: Tensor, sigma: float, *, nearest: bool = False) -> Tensor:
    """x + σ·n, σ in units of the whole range."""
    scale = _f32(sigma * 255)
    if use_kernels(images):
        return _kernels().add_noise(images, noise, scale, nearest)
    return to_bytes(fma(noise, scale, images), nearest=nearest)


def multiply_noise(images: Tensor, noise: Tensor, sigma: float, *, nearest: bool = False) -> Tensor:
    """x + x·σ·n."""
    if use_kernels(images):
        return _kernels().multiply_noise(images, noise, _f32(sigma), nearest)
    return to_bytes(fma(images.float() * noise, _f32(sigma), images), nearest=nearest)


def replace(images: Tensor, hits: Tensor) -> Tensor:
    """Keep the value where the hit is 0; black where it is 1, white where it is 2."""
    if use_kernels(images):
        return _kernels().replace(images, hits)
    return torch.where(hits == 0, images, (hits == 2).byte() * 255)


def scale_counts(counts: Tensor, table: NDArray[np.uint8]) -> Tensor:
    """The 8-bit value of each count, the last one's for all counts beyond the table."""
    values = constant(table, counts.device)
    if use_kernels(counts):
        return _kernels().look_up(counts, values)
    return values[counts.clamp(max=len(table) - 1).long()]


def look_up(images: Tensor, table: NDArray[np.uint8]) -> Tensor:
    """A map given by its 256 values."""
    return scale_counts(images, table)


def mix(images: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """The mean of several versions of the same images, rounded; weights are multiples of 1/256."""
    total = torch.full(images[0].shape, 128, dtype=torch.int32, device=images[0].device)
    for version, weight in zip(images, weights, strict=True):
        total += version.to(torch.int32) * round(weight * 256)
    return (total >> 8).to(torch.uint8)


def excess(counts: Tensor, rate: float, images: Tensor) -> Tensor:
    """By how much counts / rate is more than x / 255, float32."""
    return (counts.double() / rate - images.double() / 255).float()


def pick(fields: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Any:
    """Some rows and columns of every field `(n, h, w, …)`, by their numbers; an array stays an array."""
    if isinstance(fields, np.ndarray):
        return np.ascontiguousarray(fields[:, rows][:, :, columns])
    down, across = constant(rows, fields.device), constant(columns, fields.device)
    return fields.index_select(1, down).index_select(2, across)


def shift(images: Tensor, moves: NDArray[np.int64]) -> Tensor:
    """Each image moved by whole pixels: sampled at (x + right, y + down), `(n, 2)`; black outside."""
    height, width = images.shape[1:3]
    right, down = beside(moves, images, torch.int64).T[..., None]
    x = torch.arange(width, device=images.device) + right
    y = torch.arange(height, device=images.device) + down
    rows = images.gather(1, y.clamp(0, height - 1)[..., None, None].expand(images.shape))
    moved = rows.gather(2, x.clamp(0, width - 1)[:, None, :, None].expand(images.shape))
    inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None]
    return moved * inside[..., None]


def add_field(images: Tensor, field: Tensor | NDArray[Any], *, nearest: bool = False) -> Tensor:
    """x + f, one field value (0…255) a pixel, the same for all channels."""
    field = beside(field, images)
    if use_kernels(images):
        return _kernels().add_field(images, field, nearest)
    return to_bytes(images.float() + field[..., None], nearest=nearest)


def paint(
    images: Tensor, masks: Tensor, color: tuple[float, ...], *, cover: bool, nearest: bool = False
) -> Tensor:
    """x + m·color, or x·(1 - m) + m·color where the paint is to `cover`; color in 0…255."""
    if use_kernels(images):
        return _kernels().paint(images, masks, tuple(map(_f32, color)), cover, nearest)
    masks = masks[..., None]
    added = masks * constant(np.array(color, np.float32), images.device)
    return to_bytes(fma(images.float(), 1 - masks if cover else 1.0, added), nearest=nearest)


def haze(
    images: Tensor, fields: Tensor | NDArray[np.float32], amount: float, *, nearest: bool = False
) -> Tensor:
    """(x + a·P)·M / (M + a) with P in [0, 1] and M the largest value of the image."""
    fields = beside(fields, images)
    brightest = images.flatten(1).amax(dim=1)
    if use_kernels(images):
        return _kernels().haze(images, fields, brightest, _f32(amount), nearest)
    top = brightest.float()[:, None, None] / 255
    gain = top / (top + _f32(amount))
    thick = fields * (gain * _f32(amount) * 255)
    return to_bytes(fma(images.float(), gain[..., None], thick[..., None]), nearest=nearest)


def lower_contrast(images: Tensor, factor: float, *, nearest: bool = False) -> Tensor:
    """(x - μ)·c + μ with μ the mean of the channel."""
    if use_kernels(images):
        exact = constant(np.array(factor), images.device)
        return _kernels().lower_contrast(images, _f32(factor), exact, nearest)
    mean = images.flatten(1, 2).sum(dim=1, dtype=torch.int64).double() / math.prod(images.shape[1:3])
    offset = (mean - mean * factor).float()
    return to_bytes(fma(images.float(), _f32(factor), offset[:, None, None]), nearest=nearest)


def brighten(images: Tensor, amount: float) -> Tensor:
    """V ← clip(V + c) in HSV, which scales R, G and B by V'/V; black becomes grey."""
    after = np.minimum(np.arange(256) / 255 + amount, 1) * 255
    if images.shape[-1] == 1:
        return look_up(images, after.astype(np.uint8))
    ratio = constant(brighter(after.tobytes()), images.device)
    black = _f32(after[0])
    if use_kernels(images):
        return _kernels().brighten(images, ratio, black)
    value = images.amax(dim=-1, keepdim=True)
    return torch.where(value == 0, black, images.float() * ratio[value.long()]).to(torch.uint8)


def saturate_colors(images: Tensor, gain: float, lift: float) -> Tensor:
    """S ← clip(a·S + b) in HSV: R, G, B ← V - (V - R, G, B)·S'/S; greys have hue 0, red."""
    gain, lift = _f32(gain), _f32(lift)
    if use_kernels(images):
        return _kernels().saturate(images, gain, lift)
    colors = images.float()
    value = colors.amax(dim=-1, keepdim=True)
    spread = value - colors.amin(dim=-1, keepdim=True)
    inverse = value / spread
    ratio = torch.minimum(fma(inverse, lift, gain), inverse)
    vivid = fma(colors - value, ratio, value)
    grey = fma(value, -min(max(lift, 0.0), 1.0), value)
    flat = torch.cat([value, grey, grey], dim=-1)
    return to_bytes(torch.where(spread > 0, vivid, flat))


def blend(
    images: Tensor,
    textures: Sequence[NDArray[np.uint8]],
    crops: NDArray[np.int64],
    weight: float,
    texture_weight: float,
    *,
    nearest: bool = False,
) -> Tensor:
    """a·X + b·F; F is cut from a texture `(h, w, c)`: its number, first row and column for each image.

    In double precision, because the weights are tenths: many sums are whole numbers but for rounding.
    """
    kept = [_texture(texture, images.device) for texture in textures]
    if use_kernels(images):
        weights = constant(np.array([weight, texture_weight], np.float64), images.device)
        return _kernels().blend(images, kept, crops, weights, nearest)
    height, width = images.shape[1:3]
    over = torch.stack(
        [kept[number][row : row + height, column : column + width] for number, row, column in crops.tolist()]
    )
    return to_bytes(weight * images.double() + texture_weight * over.double(), nearest=nearest)


_TEXTURES: dict[tuple[int, torch.device], Tensor] = {}


def _texture(texture: NDArray[np.uint8], device: torch.device) -> Tensor:
    """A texture on the device, copied once and kept there for as long as the array lives."""
    place = id(texture), device
    if place not in _TEXTURES:
        _TEXTURES[place] = torch.from_numpy(np.ascontiguousarray(texture)).to(device)
        weakref.finalize(texture, _TEXTURES.pop, place, None)
    return _TEXTURES[place]
