"""JPEG encoding and decoding with the integer arithmetic of libjpeg-turbo.

What a file of the baseline format stores is lossless, so nothing is written: colors are turned, halved,
transformed and rounded as its encoder does, and turned back as its decoder does, with `islow` transforms and
the smooth enlargement of the color planes. Every value is that of the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from beaufort._core.device import constant
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.cpu.jpeg_compression import NARROW, quantization_steps


def jpeg(images: Tensor, quality: int) -> Tensor:
    steps = quantization_steps(int(quality))
    if (kernels := triton_kernels("jpeg_compression", images)) and images.shape[2] > NARROW:
        return kernels.jpeg(images, steps)
    luma, chroma = constant(steps, images.device).reshape(2, 8, 1, 8)
    if images.shape[-1] == 1:
        return _round_trip(images[..., 0], luma)[..., None]
    height, width = images.shape[1:3]
    brightness, *colors = _to_ycc(images.to(torch.int32))
    blue, red = (_enlarge(_round_trip(_halve(color), chroma), height, width) for color in colors)
    return _to_rgb(_round_trip(brightness, luma).to(torch.int32), blue, red)


def _to_ycc(images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r, g, b = images.unbind(-1)
    return (
        (19595 * r + 38470 * g + 7471 * b + 32768) >> 16,
        (-11059 * r - 21709 * g + 32768 * b + 8421375) >> 16,
        (32768 * r - 27439 * g - 5329 * b + 8421375) >> 16,
    )


def _to_rgb(y: Tensor, blue: Tensor, red: Tensor) -> Tensor:
    blue, red = blue - 128, red - 128
    r = y + ((91881 * red + 32768) >> 16)
    g = y + ((-22554 * blue - 46802 * red + 32768) >> 16)
    b = y + ((116130 * blue + 32768) >> 16)
    return torch.stack([r, g, b], dim=-1).clamp(0, 255).to(torch.uint8)


def _halve(plane: Tensor) -> Tensor:
    """Average 2 × 2 values, rounded down and up alternately from column to column."""
    height, width = plane.shape[1:]
    down = _padded_index(height, 2, plane.device)
    across = _padded_index(width, 16, plane.device)  # complete blocks, with padding on the right
    plane = plane[:, down][:, :, across]
    sums = plane[:, ::2] + plane[:, 1::2]
    sums = sums[..., ::2] + sums[..., 1::2]
    return (sums + 1 + torch.arange(sums.shape[-1], device=plane.device, dtype=torch.int32) % 2) >> 2


def _enlarge(plane: Tensor, height: int, width: int) -> Tensor:
    """Double the size: three quarters of the nearest value and a quarter of the next, on both sides.

    Images of few columns get the nearest value alone.
    """
    device = plane.device
    rows, columns = torch.arange(height, device=device), torch.arange(width, device=device)
    if width <= NARROW:
        return plane[:, rows // 2][:, :, columns // 2].to(torch.int32)
    last_row, last_column = (height - 1) // 2, (width - 1) // 2
    near = plane[:, rows // 2].to(torch.int32)
    far = plane[:, (rows // 2 + rows % 2 * 2 - 1).clamp(0, last_row)].to(torch.int32)
    sums = 3 * near + far
    further = sums[..., (columns // 2 + columns % 2 * 2 - 1).clamp(0, last_column)]
    return (3 * sums[..., columns // 2] + further + 8 - (columns % 2).to(torch.int32)) >> 4


@lru_cache(maxsize=128)
def _padded_index(size: int, multiple: int, device: torch.device) -> Tensor:
    """Return 0, 1, …, with the last one repeated until the count is a multiple."""
    padded = -(-size // multiple) * multiple
    return torch.arange(padded, device=device).clamp(max=size - 1)


def _round_trip(plane: Tensor, steps: Tensor) -> Tensor:
    """Transform each 8 × 8 block, quantize it, and transform it back."""
    count, height, width = plane.shape
    down, across = (_padded_index(size, 8, plane.device) for size in (height, width))
    plane = plane[:, down][:, :, across].to(torch.int32) - 128
    blocks = plane.reshape(count, len(down) // 8, 8, len(across) // 8, 8)
    blocks = torch.stack(_forward(blocks.unbind(-1), first=True), dim=-1)
    blocks = torch.stack(_forward(blocks.unbind(2), first=False), dim=2)
    levels = torch.div(blocks.abs() + 4 * steps, 8 * steps, rounding_mode="floor")
    blocks = torch.where(blocks < 0, -levels, levels) * steps
    blocks = torch.stack(_inverse(blocks.unbind(2), first=True), dim=2)
    blocks = torch.stack(_inverse(blocks.unbind(-1), first=False), dim=-1)
    plane = (blocks + 128).clamp(0, 255).to(torch.uint8)
    return plane.reshape(count, len(down), len(across))[:, :height, :width]


def _descale(value: Tensor, bits: int) -> Tensor:
    return (value + (1 << (bits - 1))) >> bits


def _odd(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """Return the rotations that the odd halves of both transforms have in common."""
    e = (a + b + c + d) * 9633
    ad, bc = -7373 * (a + d), -20995 * (b + c)
    ac, bd = e - 16069 * (a + c), e - 3196 * (b + d)
    return 2446 * a + ad + ac, 16819 * b + bc + bd, 25172 * c + bc + ac, 12299 * d + ad + bd


def _forward(x: Sequence[Tensor], *, first: bool) -> list[Tensor]:
    """DCT of eight values, times √8; two more bits are kept between the first pass and the second."""
    bits = 11 if first else 15
    a, b, c, d = x[0] + x[7], x[1] + x[6], x[2] + x[5], x[3] + x[4]
    outer, inner, across, within = a + d, b + c, a - d, b - c
    low, high = outer + inner, outer - inner
    turned = (within + across) * 4433
    seven, five, three, one = _odd(x[3] - x[4], x[2] - x[5], x[1] - x[6], x[0] - x[7])
    return [
        low << 2 if first else _descale(low, 2),
        _descale(one, bits),
        _descale(turned + across * 6270, bits),
        _descale(three, bits),
        high << 2 if first else _descale(high, 2),
        _descale(five, bits),
        _descale(turned - within * 15137, bits),
        _descale(seven, bits),
    ]


def _inverse(x: Sequence[Tensor], *, first: bool) -> list[Tensor]:
    bits = 11 if first else 18
    turned = (x[2] + x[6]) * 4433
    inner, outer = turned - x[6] * 15137, turned + x[2] * 6270
    low, high = (x[0] + x[4]) << 13, (x[0] - x[4]) << 13
    even = [low + outer, high + inner, high - inner, low - outer]
    odd = _odd(x[7], x[5], x[3], x[1])[::-1]
    ahead = [_descale(e + o, bits) for e, o in zip(even, odd, strict=True)]
    return ahead + [_descale(e - o, bits) for e, o in zip(even, odd, strict=True)][::-1]
