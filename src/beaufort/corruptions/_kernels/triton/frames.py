"""Frames of a sequence as Triton kernels: a program works on a row of a frame, a pixel at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from beaufort.corruptions._kernels.triton.tiles import EXACTLY, row_grid, row_tile

_SIZES = ["height", "width", "top", "left", "side"]


@triton.jit
def _toward(p, q, weight):
    """Interpolate from p to q; products in single precision are fused."""
    if weight.dtype == tl.float64:
        made = p + (q - p) * weight
    else:
        made = tl.fma(q - p, weight, p)
    return made


@triton.jit(do_not_specialize=_SIZES)
def _affine(
    images, numbers, totals, out, height, width, top, left, side, count,
    CHANNELS: tl.constexpr, EXACT: tl.constexpr, ADD: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    """Compute a frame; or add it to the totals and return their mean."""
    image, y, x, shown = row_tile(side, side, BW)
    about_x, about_y = tl.load(numbers + 4), tl.load(numbers + 5)
    right = (x + left).to(tl.float64) + 0.5 - about_x
    down = (y + top).to(tl.float64) + 0.5 - about_y
    u = tl.load(numbers) * right + tl.load(numbers + 1) * down + about_x
    v = tl.load(numbers + 2) * right + tl.load(numbers + 3) * down + about_y
    seen = shown & (u >= 0) & (u < width) & (v >= 0) & (v < height)
    u = tl.minimum(tl.maximum(u - 0.5, 0.0), width - 1)
    v = tl.minimum(tl.maximum(v - 0.5, 0.0), height - 1)
    column, row = u.to(tl.int32), v.to(tl.int32)
    s, t = u - column, v - row
    if not EXACT:
        s, t = s.to(tl.float32), t.to(tl.float32)
    line = width * CHANNELS
    near, far = column * CHANNELS, tl.minimum(column + 1, width - 1) * CHANNELS
    upper, lower = row * line, tl.minimum(row + 1, height - 1) * line
    source = images + image * height * line
    target = (image * side * side + y * side + x) * CHANNELS
    for c in tl.static_range(CHANNELS):
        a = tl.load(source + (upper + near + c), mask=seen, other=0).to(s.dtype)
        b = tl.load(source + (upper + far + c), mask=seen, other=0).to(s.dtype)
        d = tl.load(source + (lower + near + c), mask=seen, other=0).to(s.dtype)
        e = tl.load(source + (lower + far + c), mask=seen, other=0).to(s.dtype)
        value = _toward(_toward(a, b, s), _toward(d, e, s), t).to(tl.int32)
        if ADD:
            total = tl.load(totals + (target + c), mask=shown, other=0)
            total += tl.div_rn(value.to(tl.float32), 255.0)
            tl.store(totals + (target + c), total, mask=shown)
            value = tl.minimum(tl.div_rn(total, count) * 255.0, 255.0).to(tl.int32)
        tl.store(out + (target + c), value.to(tl.uint8), mask=shown)


def affine_frame(images: Tensor, numbers: Tensor, exact: bool, top: int, left: int, side: int) -> Tensor:
    """As `Ops.affine_frame`; the numbers are the matrix, then the point, in double precision.

    The frame begins at a row and a column of the image. Pixels are mixed in double precision if `exact`.
    """
    out = torch.empty((len(images), side, side, images.shape[3]), dtype=torch.uint8, device=images.device)
    _launch_affine(images, numbers, out, out, top, left, 1, exact=exact, add=False)
    return out


def add_frame(
    total: Tensor, images: Tensor, numbers: Tensor, exact: bool, top: int, left: int, count: int
) -> Tensor:
    """As `Ops.add_frame`; the numbers and where the frame begins as for `affine_frame`."""
    assert total.is_contiguous(), "the sum is changed in place"
    out = torch.empty(total.shape, dtype=torch.uint8, device=images.device)
    _launch_affine(images, numbers, total, out, top, left, count, exact=exact, add=True)
    return out


def _launch_affine(
    images: Tensor, numbers: Tensor, totals: Tensor, out: Tensor, top: int, left: int, count: int,
    *, exact: bool, add: bool,
) -> None:  # fmt: skip
    number, side, _, channels = out.shape
    grid, shape = row_grid(number, side, side)
    _affine[grid](
        images.contiguous(), numbers, totals, out, *images.shape[1:3], top, left, side, float(count),
        CHANNELS=channels, EXACT=exact, ADD=add, **shape, **EXACTLY,
    )  # fmt: skip


@triton.jit
def _in_32nds(position):
    """The nearest integer of 1/32, half to even: next to 1.5 · 2⁵² there are no other numbers."""
    return (position * 32.0 + 6755399441055744.0) - 6755399441055744.0


@triton.jit(do_not_specialize=_SIZES)
def _perspective(
    images, matrix, out, height, width, top, left, side, CHANNELS: tl.constexpr, BW: tl.constexpr
):
    """Mixtures of integers of 1/1024 are integers."""
    image, y, x, shown = row_tile(side, side, BW)
    right, down = (x + left).to(tl.float64), (y + top).to(tl.float64)
    depth = tl.load(matrix + 6) * right + tl.load(matrix + 7) * down + tl.load(matrix + 8)
    u = tl.load(matrix) * right + tl.load(matrix + 1) * down + tl.load(matrix + 2)
    v = tl.load(matrix + 3) * right + tl.load(matrix + 4) * down + tl.load(matrix + 5)
    u, v = _in_32nds(u / depth), _in_32nds(v / depth)
    seen = shown & (u >= -32) & (u < width * 32) & (v >= -32) & (v < height * 32)
    u, v = tl.where(seen, u, 0.0).to(tl.int32), tl.where(seen, v, 0.0).to(tl.int32)
    column, row, s, t = u >> 5, v >> 5, u & 31, v & 31
    before, after = seen & (column >= 0), seen & (column < width - 1)
    above, below = row >= 0, row < height - 1
    line = width * CHANNELS
    source = images + image * height * line
    at = row * line + column * CHANNELS
    target = (image * side * side + y * side + x) * CHANNELS
    for c in tl.static_range(CHANNELS):
        a = tl.load(source + (at + c), mask=before & above, other=0).to(tl.int32)
        b = tl.load(source + (at + CHANNELS + c), mask=after & above, other=0).to(tl.int32)
        d = tl.load(source + (at + line + c), mask=before & below, other=0).to(tl.int32)
        e = tl.load(source + (at + line + CHANNELS + c), mask=after & below, other=0).to(tl.int32)
        upper, lower = a * (32 - s) + b * s, d * (32 - s) + e * s
        mixed = (upper * (32 - t) + lower * t + 512) >> 10
        tl.store(out + (target + c), mixed.to(tl.uint8), mask=shown)


def perspective_frame(images: Tensor, matrix: Tensor, top: int, left: int, side: int) -> Tensor:
    """As `Ops.perspective_frame`, of an image from a row and a column on; the matrix is float64."""
    count, height, width, channels = images.shape
    out = torch.empty((count, side, side, channels), dtype=torch.uint8, device=images.device)
    grid, shape = row_grid(count, side, side)
    _perspective[grid](
        images.contiguous(), matrix, out, height, width, top, left, side,
        CHANNELS=channels, **shape, **EXACTLY,
    )  # fmt: skip
    return out
