"""Triton kernels of batch normalization fused with addition and ReLU, in few passes over GPU memory.

Features are matrices of positions × channels, as they are stored in channels-last memory. Torch makes one
pass for each of normalization, addition and ReLU, forward and backward; here addition and ReLU are part of
the passes of normalization. Sums over positions are computed in parts, and the parts added in a fixed order,
so that every run gives the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_TILE = 4096
"""Values that a program instance reads at once."""
_PARTS = 512
"""Program instances that share the sums over positions."""
_WARPS = 8


@triton.jit
def _tile(first, rows, channels, BR: tl.constexpr, BC: tl.constexpr):
    """Return the offsets of a tile of positions × channels, its channels, and masks of valid ones."""
    row = tl.arange(0, BR)
    column = tl.program_id(1) * BC + tl.arange(0, BC)
    inside = column < channels
    return (
        row[:, None] * channels + column[None, :],
        column,
        inside,
        ((first + row) < rows)[:, None] & inside[None, :],
    )


@triton.jit
def _deviation(variance, epsilon):
    return 1.0 / tl.sqrt_rn(variance + epsilon)


@triton.jit
def _channel(mean, variance, weight, bias, column, inside, epsilon):
    """Return mean, 1 / deviation, weight / deviation and bias of each channel."""
    center = tl.load(mean + column, mask=inside, other=0.0)
    deviation = _deviation(tl.load(variance + column, mask=inside, other=1.0), epsilon)
    scale = deviation * tl.load(weight + column, mask=inside, other=0.0)
    return center, deviation, scale, tl.load(bias + column, mask=inside, other=0.0)


@triton.jit
def _relu(value):
    """Return the ReLU; NaN stays NaN as in torch, where a maximum would return 0."""
    return tl.where(value <= 0, 0.0, value)


@triton.jit
def _sum_moments(
    x, parts, rows, chunk, units, UNIT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, PARTS: tl.constexpr
):
    """Sum values and squares relative to the first position, which avoids cancellation."""
    channels = units * UNIT
    first = tl.program_id(0) * chunk
    offset, column, inside, _ = _tile(first, rows, channels, BR, BC)
    origin = tl.load(x + column, mask=inside, other=0.0).to(tl.float32)
    at = x + first.to(tl.int64) * channels
    total = tl.zeros((BR, BC), tl.float32)
    squares = tl.zeros((BR, BC), tl.float32)
    for start in range(0, chunk, BR):
        there = ((first + start + tl.arange(0, BR)) < rows)[:, None] & inside[None, :]
        value = tl.load(at + offset, mask=there, other=0.0).to(tl.float32) - origin[None, :]
        value = tl.where(there, value, 0.0)
        total += value
        squares += value * value
        at += BR * channels
    place = parts + tl.program_id(0) * channels + column
    tl.store(place, tl.sum(total, axis=0), mask=inside)
    tl.store(place + PARTS * channels, tl.sum(squares, axis=0), mask=inside)


@triton.jit
def _add_up(parts, channels, column, inside, PARTS: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    total = tl.zeros((BP, BC), tl.float32)
    for start in range(0, PARTS, BP):
        part = start + tl.arange(0, BP)
        there = (part < PARTS)[:, None] & inside[None, :]
        total += tl.load(parts + part[:, None] * channels + column[None, :], mask=there, other=0.0)
    return tl.sum(total, axis=0)


@triton.jit
def _finish_moments(
    x,
    parts,
    moments,
    running_mean,
    running_variance,
    batches,
    rows,
    channels,
    momentum,
    TRACK: tl.constexpr,
    PARTS: tl.constexpr,
    BP: tl.constexpr,
    BC: tl.constexpr,
):
    """Compute mean and variance of each channel, and update the running ones."""
    column = tl.program_id(0) * BC + tl.arange(0, BC)
    inside = column < channels
    total = _add_up(parts, channels, column, inside, PARTS, BP, BC)
    squares = _add_up(parts + PARTS * channels, channels, column, inside, PARTS, BP, BC)
    shift = total / rows
    mean = tl.load(x + column, mask=inside, other=0.0).to(tl.float32) + shift
    variance = _relu(squares / rows - shift * shift)
    tl.store(moments + column, mean, mask=inside)
    tl.store(moments + channels + column, variance, mask=inside)
    if TRACK:
        old = tl.load(running_mean + column, mask=inside, other=0.0)
        tl.store(running_mean + column, old + momentum * (mean - old), mask=inside)
        unbiased = variance * (rows / (rows - 1.0))
        old = tl.load(running_variance + column, mask=inside, other=0.0)
        tl.store(running_variance + column, old + momentum * (unbiased - old), mask=inside)
        if tl.program_id(0) == 0:
            tl.store(batches, tl.load(batches) + 1)


@triton.jit
def _apply(
    x,
    mean,
    variance,
    weight,
    bias,
    beside,
    out,
    rows,
    units,
    epsilon,
    ADD: tl.constexpr,
    RELU: tl.constexpr,
    UNIT: tl.constexpr,
    BR: tl.constexpr,
    BC: tl.constexpr,
):
    channels = units * UNIT
    first = tl.program_id(0) * BR
    offset, column, inside, there = _tile(first, rows, channels, BR, BC)
    start = first.to(tl.int64) * channels
    center, _, scale, shift = _channel(mean, variance, weight, bias, column, inside, epsilon)
    value = tl.load(x + start + offset, mask=there, other=0.0).to(tl.float32)
    value = (value - center[None, :]) * scale[None, :] + shift[None, :]
    if ADD:
        value += tl.load(beside + start + offset, mask=there, other=0.0).to(tl.float32)
    if RELU:
        value = _relu(value)
    tl.store(out + start + offset, value.to(out.dtype.element_ty), mask=there)


@triton.jit
def _sum_slopes(
    x,
    moments,
    weight,
    bias,
    slope,
    out,
    beside,
    parts,
    rows,
    chunk,
    units,
    epsilon,
    ADD: tl.constexpr,
    RELU: tl.constexpr,
    UNIT: tl.constexpr,
    BR: tl.constexpr,
    BC: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Sum over positions the gradients before ReLU, and their products with the centered values."""
    channels = units * UNIT
    first = tl.program_id(0) * chunk
    offset, column, inside, _ = _tile(first, rows, channels, BR, BC)
    variance = moments + channels
    center, _, scale, shift = _channel(moments, variance, weight, bias, column, inside, epsilon)
    place = first.to(tl.int64) * channels
    total = tl.zeros((BR, BC), tl.float32)
    products = tl.zeros((BR, BC), tl.float32)
    for start in range(0, chunk, BR):
        there = ((first + start + tl.arange(0, BR)) < rows)[:, None] & inside[None, :]
        value = tl.load(x + place + offset, mask=there, other=0.0).to(tl.float32) - center[None, :]
        step = tl.load(slope + place + offset, mask=there, other=0.0).to(tl.float32)
        if RELU:
            if ADD:
                after = tl.load(out + place + offset, mask=there, other=0.0).to(tl.float32)
                step = tl.where(after <= 0, 0.0, step)
                tl.store(beside + place + offset, step.to(beside.dtype.element_ty), mask=there)
            else:
                step = tl.where(value * scale[None, :] + shift[None, :] <= 0, 0.0, step)
        total += step
        products += step * tl.where(there, value, 0.0)
        place += BR * channels
    where = parts + tl.program_id(0) * channels + column
    tl.store(where, tl.sum(total, axis=0), mask=inside)
    tl.store(where + PARTS * channels, tl.sum(products, axis=0), mask=inside)


@triton.jit
def _finish_slopes(
    parts, moments, learned, channels, epsilon, PARTS: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr
):
    """Slopes of the bias and, after them, of the weight of each channel."""
    column = tl.program_id(0) * BC + tl.arange(0, BC)
    inside = column < channels
    deviation = _deviation(tl.load(moments + channels + column, mask=inside, other=1.0), epsilon)
    total = _add_up(parts, channels, column, inside, PARTS, BP, BC)
    products = _add_up(parts + PARTS * channels, channels, column, inside, PARTS, BP, BC)
    tl.store(learned + column, total, mask=inside)
    tl.store(learned + channels + column, products * deviation, mask=inside)


@triton.jit
def _apply_back(
    x,
    moments,
    weight,
    bias,
    learned,
    slope,
    out,
    rows,
    units,
    epsilon,
    RELU: tl.constexpr,
    UNIT: tl.constexpr,
    BR: tl.constexpr,
    BC: tl.constexpr,
):
    """Compute the gradient of the input; with `RELU`, the given gradient is that after the ReLU."""
    channels = units * UNIT
    first = tl.program_id(0) * BR
    offset, column, inside, there = _tile(first, rows, channels, BR, BC)
    start = first.to(tl.int64) * channels
    variance = moments + channels
    center, deviation, scale, shift = _channel(moments, variance, weight, bias, column, inside, epsilon)
    mean = tl.load(learned + column, mask=inside, other=0.0) / rows
    along = tl.load(learned + channels + column, mask=inside, other=0.0) / rows * deviation
    value = tl.load(x + start + offset, mask=there, other=0.0).to(tl.float32) - center[None, :]
    step = tl.load(slope + start + offset, mask=there, other=0.0).to(tl.float32)
    if RELU:
        step = tl.where(value * scale[None, :] + shift[None, :] <= 0, 0.0, step)
    step = (step - mean[None, :] - value * along[None, :]) * scale[None, :]
    tl.store(out + start + offset, step.to(out.dtype.element_ty), mask=there)


def normalize(
    x: Any, mean: Any, variance: Any, weight: Any, bias: Any, beside: Any, *, epsilon: float, relu: bool
) -> Any:
    """Return normalized features, plus `beside` if given, after ReLU if wanted."""
    out = torch.empty_like(x)
    shape = _Shape(x)
    _apply[shape.tiles](
        x,
        mean,
        variance,
        weight,
        bias,
        x if beside is None else beside,
        out,
        shape.rows,
        shape.units,
        epsilon,
        ADD=beside is not None,
        RELU=relu,
        **shape.options,
    )
    return out


def normalize_learning(x: Any, norm: Any, beside: Any, *, relu: bool) -> tuple[Any, Any]:
    """Normalize with the mean and variance of the batch, update the running ones, and return both."""
    shape = _Shape(x)
    parts = x.new_empty((2, shape.parts, shape.channels), dtype=torch.float32)
    moments = x.new_empty((2, shape.channels), dtype=torch.float32)
    _sum_moments[shape.chunks](
        x, parts, shape.rows, shape.chunk, shape.units, PARTS=shape.parts, **shape.options
    )
    track = norm.track_running_stats
    _finish_moments[shape.columns](
        x,
        parts,
        moments,
        norm.running_mean if track else moments,
        norm.running_var if track else moments,
        norm.num_batches_tracked if track else moments,
        shape.rows,
        shape.channels,
        norm.momentum,
        TRACK=track,
        **shape.finish,
    )
    out = normalize(x, moments[0], moments[1], norm.weight, norm.bias, beside, epsilon=norm.eps, relu=relu)
    return out, moments


def normalize_back(
    x: Any, moments: Any, weight: Any, bias: Any, slope: Any, out: Any, *, epsilon: float, relu: bool
) -> tuple[Any, Any, Any]:
    """Return the gradients of the input, of weight and bias (one row each), and of `beside`.

    `out` is the result of `normalize_learning` if it had `beside`, else None.
    """
    shape = _Shape(x)
    parts = x.new_empty((2, shape.parts, shape.channels), dtype=torch.float32)
    learned = x.new_empty((2, shape.channels), dtype=torch.float32)
    beside = torch.empty_like(x) if out is not None and relu else slope
    _sum_slopes[shape.chunks](
        x,
        moments,
        weight,
        bias,
        slope,
        x if out is None else out,
        beside,
        parts,
        shape.rows,
        shape.chunk,
        shape.units,
        epsilon,
        ADD=out is not None,
        RELU=relu,
        PARTS=shape.parts,
        **shape.options,
    )
    _finish_slopes[shape.columns](parts, moments, learned, shape.channels, epsilon, **shape.finish)
    back = torch.empty_like(x)
    _apply_back[shape.tiles](
        x,
        moments,
        weight,
        bias,
        learned,
        beside,
        back,
        shape.rows,
        shape.units,
        epsilon,
        RELU=relu and out is None,
        **shape.options,
    )
    return back, learned, beside


class _Shape:
    """How features `(n, channels, height, width)` are split among program instances."""

    def __init__(self, x: Any) -> None:
        self.channels = x.shape[1]
        self.rows = x.numel() // self.channels
        unit = next(unit for unit in (8, 4, 2, 1) if self.channels % unit == 0)
        wide = max(16, min(64, triton.next_power_of_2(self.channels)))
        high = _TILE // wide
        across = triton.cdiv(self.channels, wide)
        self.units = self.channels // unit  # their product is known to be a multiple, so loads can be wide
        self.options = {"UNIT": unit, "BR": high, "BC": wide, "num_warps": _WARPS}
        self.tiles = (triton.cdiv(self.rows, high), across)
        self.parts = max(1, min(self.tiles[0], _PARTS // across))
        self.chunk = triton.cdiv(triton.cdiv(self.rows, self.parts), high) * high
        self.chunks = (self.parts, across)
        self.columns = (triton.cdiv(self.channels, 16),)
        self.finish = {"PARTS": self.parts, "BP": 128, "BC": 16}
