"""JPEG as Triton kernels: colors to planes, each block there and back, planes to colors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import constant


@triton.jit
def _to_planes(images, planes, height, width, rows, columns, blocks, BLOCK: tl.constexpr):
    """Brightness in full, colors halved, all three filled up to whole blocks; four pixels an element."""
    image = (tl.program_id(0) // blocks).to(tl.int64)
    at = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = at < rows * columns
    row, column = at // columns, at % columns
    # Below the image the last halved row is repeated, right of it the last pixel.
    upper = 2 * tl.minimum(row, (height - 1) // 2)
    lower = tl.minimum(upper + 1, height - 1)
    left = tl.minimum(2 * column, width - 1)
    right = tl.minimum(2 * column + 1, width - 1)
    source = images + image * height * width * 3
    y_a, blue_a, red_a = _to_ycc(source + (upper * width + left) * 3, inside)
    y_b, blue_b, red_b = _to_ycc(source + (upper * width + right) * 3, inside)
    y_c, blue_c, red_c = _to_ycc(source + (lower * width + left) * 3, inside)
    y_d, blue_d, red_d = _to_ycc(source + (lower * width + right) * 3, inside)
    bias = 1 + column % 2
    target = planes + image * rows * columns * 6
    below = 2 * row >= height
    corner = target + 4 * row * columns + 2 * column
    tl.store(corner, tl.where(below, y_c, y_a).to(tl.uint8), inside)
    tl.store(corner + 1, tl.where(below, y_d, y_b).to(tl.uint8), inside)
    tl.store(corner + 2 * columns, y_c.to(tl.uint8), inside)
    tl.store(corner + 2 * columns + 1, y_d.to(tl.uint8), inside)
    target += rows * columns * 4 + at
    tl.store(target, ((blue_a + blue_b + blue_c + blue_d + bias) >> 2).to(tl.uint8), inside)
    target += rows * columns
    tl.store(target, ((red_a + red_b + red_c + red_d + bias) >> 2).to(tl.uint8), inside)


@triton.jit
def _to_ycc(source, inside):
    r = tl.load(source, inside, 0).to(tl.int32)
    g = tl.load(source + 1, inside, 0).to(tl.int32)
    b = tl.load(source + 2, inside, 0).to(tl.int32)
    y = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16
    blue = (-11059 * r - 21709 * g + 32768 * b + 8421375) >> 16
    red = (32768 * r - 27439 * g - 5329 * b + 8421375) >> 16
    return y, blue, red


@triton.jit
def _to_colors(planes, out, height, width, rows, columns, blocks, BLOCK: tl.constexpr):
    """Enlarge the colors, three quarters of the nearest and a quarter of the next, and turn them back."""
    image = (tl.program_id(0) // blocks).to(tl.int64)
    at = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = at < height * width
    row, column = at // width, at % width
    near_row, near = row // 2, column // 2
    far_row = tl.minimum(tl.maximum(near_row + row % 2 * 2 - 1, 0), (height - 1) // 2)
    far = tl.minimum(tl.maximum(near + column % 2 * 2 - 1, 0), (width - 1) // 2)
    source = planes + image * rows * columns * 6
    y = tl.load(source + 2 * row * columns + column, inside, 0).to(tl.int32)
    source += rows * columns * 4
    offset = 8 - column % 2
    blue = _mixed(source, columns, near_row, far_row, near, far, offset, inside)
    red = _mixed(source + rows * columns, columns, near_row, far_row, near, far, offset, inside)
    r = y + ((91881 * red + 32768) >> 16)
    g = y + ((-22554 * blue - 46802 * red + 32768) >> 16)
    b = y + ((116130 * blue + 32768) >> 16)
    target = out + image * height * width * 3 + at * 3
    tl.store(target, tl.minimum(tl.maximum(r, 0), 255).to(tl.uint8), inside)
    tl.store(target + 1, tl.minimum(tl.maximum(g, 0), 255).to(tl.uint8), inside)
    tl.store(target + 2, tl.minimum(tl.maximum(b, 0), 255).to(tl.uint8), inside)


@triton.jit
def _mixed(source, columns, near_row, far_row, near, far, offset, inside):
    a = tl.load(source + near_row * columns + near, inside, 0).to(tl.int32)
    b = tl.load(source + near_row * columns + far, inside, 0).to(tl.int32)
    c = tl.load(source + far_row * columns + near, inside, 0).to(tl.int32)
    d = tl.load(source + far_row * columns + far, inside, 0).to(tl.int32)
    return ((3 * (3 * a + c) + 3 * b + d + offset) >> 4) - 128


@triton.jit
def _round_trip(words, steps, pitch, luma, image_words, programs, BLOCK: tl.constexpr):
    """Transform blocks, round to whole steps, and transform back, in place; a word is a row of a block.

    An image is `luma` blocks in lines of `pitch`, then the colors in lines of half as many.
    """
    image = (tl.program_id(0) // programs).to(tl.int64)
    block = (tl.program_id(0) % programs) * BLOCK + tl.arange(0, BLOCK)
    inside = (block * 8 < image_words)[:, None]
    is_color = block >= luma
    line = tl.where(is_color, pitch // 2, pitch)
    within = tl.where(is_color, block - luma, block)
    first = tl.where(is_color, luma * 8, 0) + within // line * line * 8 + within % line
    eight = tl.arange(0, 8)[None, :]
    place = words + image * image_words + (first[:, None] + eight * line[:, None])
    word = tl.load(place, inside, 0)

    a, b, c, d, e, f, g, h = _forward(
        _byte(word, 0), _byte(word, 8), _byte(word, 16), _byte(word, 24),
        _byte(word, 32), _byte(word, 40), _byte(word, 48), _byte(word, 56), True,
    )  # fmt: skip
    a, b, c, d, e, f, g, h = _turned(a, b, c, d, e, f, g, h)
    a, b, c, d, e, f, g, h = _forward(a, b, c, d, e, f, g, h, False)
    table = steps + tl.where(is_color, 64, 0)[:, None] + eight
    a, b, c, d = _rounded(a, table), _rounded(b, table + 8), _rounded(c, table + 16), _rounded(d, table + 24)
    table += 32
    e, f, g, h = _rounded(e, table), _rounded(f, table + 8), _rounded(g, table + 16), _rounded(h, table + 24)
    a, b, c, d, e, f, g, h = _inverse(a, b, c, d, e, f, g, h, True)
    a, b, c, d, e, f, g, h = _turned(a, b, c, d, e, f, g, h)
    a, b, c, d, e, f, g, h = _inverse(a, b, c, d, e, f, g, h, False)
    low = _shown(a) | _shown(b) << 8 | _shown(c) << 16 | _shown(d) << 24
    high = _shown(e) | _shown(f) << 8 | _shown(g) << 16 | _shown(h) << 24
    tl.store(place, high.to(tl.int64) << 32 | (low.to(tl.int64) & 0xFFFFFFFF), inside)


@triton.jit
def _byte(word, SHIFT: tl.constexpr):
    return ((word >> SHIFT).to(tl.int32) & 255) - 128


@triton.jit
def _shown(value):
    return tl.minimum(tl.maximum(value + 128, 0), 255)


@triton.jit
def _rounded(value, table):
    """To the nearest integer of steps; half a step away from zero. The division is by 8 steps."""
    step = tl.load(table)
    inverse = tl.load(table + 128).to(tl.uint32)  # ⌈2³²/8·step⌉, exact for numbers of 15 bits
    level = tl.umulhi((tl.abs(value) + 4 * step).to(tl.uint32), inverse).to(tl.int32) * step
    return tl.where(value < 0, -level, level)


@triton.jit
def _turned(a, b, c, d, e, f, g, h):
    """Eight columns of blocks as eight rows."""
    even = tl.join(tl.join(a, e), tl.join(c, g))
    odd = tl.join(tl.join(b, f), tl.join(d, h))
    whole = tl.reshape(tl.join(even, odd), (a.shape[0], 8, 8))
    whole = tl.reshape(tl.permute(whole, (0, 2, 1)), (whole.shape[0], 8, 2, 2, 2))
    even, odd = tl.split(whole)
    ae, cg = tl.split(even)
    bf, dh = tl.split(odd)
    a, e = tl.split(ae)
    b, f = tl.split(bf)
    c, g = tl.split(cg)
    d, h = tl.split(dh)
    return a, b, c, d, e, f, g, h


@triton.jit
def _descale(value, BITS: tl.constexpr):
    return (value + (1 << (BITS - 1))) >> BITS


@triton.jit
def _odd(a, b, c, d):
    e = (a + b + c + d) * 9633
    ad = -7373 * (a + d)
    bc = -20995 * (b + c)
    ac = e - 16069 * (a + c)
    bd = e - 3196 * (b + d)
    return 2446 * a + ad + ac, 16819 * b + bc + bd, 25172 * c + bc + ac, 12299 * d + ad + bd


@triton.jit
def _forward(a, b, c, d, e, f, g, h, FIRST: tl.constexpr):
    BITS: tl.constexpr = 11 if FIRST else 15
    seven, five, three, one = _odd(d - e, c - f, b - g, a - h)
    a, b, c, d = a + h, b + g, c + f, d + e
    outer = a + d
    inner = b + c
    across = a - d
    within = b - c
    turned = (within + across) * 4433
    if FIRST:
        low = (outer + inner) << 2
        high = (outer - inner) << 2
    else:
        low = _descale(outer + inner, 2)
        high = _descale(outer - inner, 2)
    two = _descale(turned + across * 6270, BITS)
    six = _descale(turned - within * 15137, BITS)
    one, three = _descale(one, BITS), _descale(three, BITS)
    five, seven = _descale(five, BITS), _descale(seven, BITS)
    return low, one, two, three, high, five, six, seven


@triton.jit
def _inverse(a, b, c, d, e, f, g, h, FIRST: tl.constexpr):
    BITS: tl.constexpr = 11 if FIRST else 18
    turned = (c + g) * 4433
    inner = turned - g * 15137
    outer = turned + c * 6270
    low = (a + e) << 13
    high = (a - e) << 13
    odd_d, odd_c, odd_b, odd_a = _odd(h, f, d, b)
    a, b, c, d = low + outer, high + inner, high - inner, low - outer
    h, g, f, e = (
        _descale(a - odd_a, BITS),
        _descale(b - odd_b, BITS),
        _descale(c - odd_c, BITS),
        _descale(d - odd_d, BITS),
    )
    a, b, c, d = (
        _descale(a + odd_a, BITS),
        _descale(b + odd_b, BITS),
        _descale(c + odd_c, BITS),
        _descale(d + odd_d, BITS),
    )
    return a, b, c, d, e, f, g, h


_BLOCK = 512

_BLOCKS = 32


def jpeg(images: Tensor, steps: NDArray[np.int32]) -> Tensor:
    """As `Ops.jpeg`, with the steps of brightness and of color, `(2, 64)`."""
    count, height, width, channels = images.shape
    table = constant(
        np.stack([steps, -(-(1 << 32) // (8 * steps.astype(np.int64)))]).astype(np.int32), images.device
    )
    if channels == 1:
        return _gray(images, table)
    rows, columns = ((-(-side // 16)) * 8 for side in (height, width))
    planes = torch.empty((count, 6 * rows * columns), dtype=torch.uint8, device=images.device)
    out = torch.empty_like(images)
    parts = triton.cdiv(rows * columns, _BLOCK)
    _to_planes[(count * parts,)](
        images, planes, height, width, rows, columns, parts, _BLOCK, enable_fp_fusion=False
    )
    _transform(planes, table, columns // 4, rows * columns // 16)
    parts = triton.cdiv(height * width, _BLOCK)
    _to_colors[(count * parts,)](
        planes, out, height, width, rows, columns, parts, _BLOCK, enable_fp_fusion=False
    )
    return out


def _gray(images: Tensor, table: Tensor) -> Tensor:
    height, width = images.shape[1:3]
    down, across = (
        torch.arange(-(-side // 8) * 8, device=images.device).clamp(max=side - 1) for side in (height, width)
    )
    planes = images[:, down[:, None], across, 0]
    _transform(planes, table, len(across) // 8, len(down) * len(across) // 64)
    return planes[:, :height, :width, None].contiguous()


def _transform(planes: Tensor, table: Tensor, pitch: int, luma: int) -> None:
    words: Any = planes.view(torch.int64)
    size = words[0].numel()
    programs = triton.cdiv(size // 8, _BLOCKS)
    _round_trip[(len(planes) * programs,)](
        words, table, pitch, luma, size, programs, _BLOCKS, enable_fp_fusion=False
    )
