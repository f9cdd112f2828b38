"""Philox-4x32-10 and its fields in torch, with the layout and the numbers of the CPU.

Ids are int64 tensors whose bits are those of the 64-bit words; raw words come as int32 in the same way.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from beaufort._core.arrays import Bytes
from beaufort._core.device import beside, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.cpu import philox as cpu
from beaufort.corruptions._kernels.torch.values import look_up
from beaufort.corruptions.rng import FieldKey

_M0, _M1 = 0xD2511F53, 0xCD9E8D57

_W0, _W1 = 0x9E3779B9, 0xBB67AE85

_LOW = 0xFFFFFFFF


def _words(at: FieldKey, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four words of every block, `(n, blocks)` each, as int64 numbers from 0 to 2³² - 1."""
    (k0, k1), ids, field = at
    shape = len(ids), (size + 3) // 4
    c0 = torch.arange(shape[1], device=ids.device).expand(shape)
    c1 = torch.full_like(c0, field)
    c2, c3 = (part[:, None].expand(shape) for part in (ids & _LOW, (ids >> 32) & _LOW))
    for _ in range(10):
        p0, p1 = c0 * _M0, c2 * _M1  # the sign bit overflows, the bits are right
        c0, c1 = ((p1 >> 32) & _LOW) ^ c1 ^ k0, p1 & _LOW
        c2, c3 = ((p0 >> 32) & _LOW) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0, c1, c2, c3


def _field(parts: tuple[Tensor, ...], shape: tuple[int, ...]) -> Tensor:
    """Four runs of values an image as one field."""
    return torch.cat(parts, dim=1)[:, : math.prod(shape)].reshape(len(parts[0]), *shape)


def philox_words(at: FieldKey, shape: tuple[int, ...]) -> Tensor:
    """Return the raw 32-bit words of a field as int32."""
    if kernels := triton_kernels("philox", at.ids):
        return kernels.filled(at, shape, torch.int32, kernels.WORDS)
    words = _field(_words(at, math.prod(shape)), shape)
    return torch.where(words > 0x7FFFFFFF, words - (1 << 32), words).int()


def philox_normal(at: FieldKey, shape: tuple[int, ...], dtype: type = np.float32) -> Tensor:
    if kernels := triton_kernels("philox", at.ids):
        return kernels.filled(at, shape, torch.float32, kernels.NORMAL)
    words = _words(at, math.prod(shape))
    return _field((*_normal_pair(*words[:2]), *_normal_pair(*words[2:])), shape)


def _normal_pair(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Box-Muller with the polynomials of the CPU backend, rounded where it rounds."""
    x = (a >> 8).float() + 0.5
    bits = x.view(torch.int32)
    exponent = ((bits >> 23) - (127 + 24)).float()
    m = ((bits & 0x7FFFFF) | 0x3F800000).view(torch.float32)
    log = _polynomial(m, cpu.LOG)
    radius = fma(exponent, float(cpu.LN2), log).clamp_(min=0).double().sqrt_().float()
    z = torch.where(b > 0x7FFFFFFF, b - (1 << 32), b).float() * 2.0**-31
    turn = z.abs()
    cosine = _sin_pi(0.5 - turn)
    sine = _sin_pi(0.5 - (turn - 0.5).abs())
    return radius * cosine, radius * torch.where(z < 0, -sine, sine)


def _sin_pi(y: Tensor) -> Tensor:
    return y * _polynomial(y * y, cpu.SINE)


def _polynomial(x: Tensor, coefficients: tuple[Any, ...]) -> Tensor:
    total = torch.full_like(x, float(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        total = fma(x, total, float(coefficient))
    return total


def philox_uniform(
    at: FieldKey, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32
) -> Tensor:
    unit, low = float(np.float32((high - low) * 2.0**-24)), float(np.float32(low))
    if kernels := triton_kernels("philox", at.ids):
        return kernels.filled(at, shape, torch.float32, kernels.UNIFORM, low, unit)
    parts = _words(at, math.prod(shape))
    return _field(tuple(fma((word >> 8).float(), unit, low) for word in parts), shape)


def _threshold(probability: float) -> int:
    return min(round(probability * 2**32), 2**32 - 1)


def philox_bernoulli(at: FieldKey, shape: tuple[int, ...], probability: float) -> Tensor:
    threshold = _threshold(probability)
    if kernels := triton_kernels("philox", at.ids):
        return kernels.filled(at, shape, torch.bool, kernels.BERNOULLI, kernels.signed(threshold))
    parts = _words(at, math.prod(shape))
    return _field(tuple(word < threshold for word in parts), shape)


def philox_impulses(at: FieldKey, shape: tuple[int, ...], probability: float) -> Tensor:
    threshold = _threshold(probability)
    if kernels := triton_kernels("philox", at.ids):
        return kernels.filled(at, shape, torch.uint8, kernels.IMPULSES, kernels.signed(threshold))
    parts = _words(at, math.prod(shape))
    hits = ((word < threshold).byte() + (word < threshold >> 1).byte() for word in parts)
    return _field(tuple(hits), shape)


def philox_integers(
    at: FieldKey, shape: tuple[int, ...], low: int, high: int | Any, dtype: type = np.int32
) -> Tensor:
    kind = _DTYPES[np.dtype(dtype).name]
    if (kernels := triton_kernels("philox", at.ids)) and isinstance(high, int):
        return kernels.filled(at, shape, kind, kernels.INTEGERS, low, kernels.signed(high - low))
    span = high - low if isinstance(high, int) else beside(high, at.ids)[:, None] - low
    parts = _words(at, math.prod(shape))
    return _field(tuple((low + ((word * span) >> 32)).to(kind) for word in parts), shape)


_DTYPES = {"int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64}


def philox_poisson(at: FieldKey, images: Tensor, rate: float) -> Tensor:
    """Draw Poisson counts (int32) with means rate × value / 255, exact to 2⁻¹⁶ of a column's probability."""
    tables, column_bits = _poisson_tables(rate, images.device)
    if kernels := triton_kernels("philox", at.ids):
        return kernels.poisson(at, images, tables, column_bits)
    shape = tuple(images.shape[1:])
    words = _field(_words(at, math.prod(shape)), shape)
    column = words >> (32 - column_bits)
    coin = (words >> (16 - column_bits)) & 0xFFFF
    entry = tables.long()[(images.long() << column_bits) + column] & _LOW
    return torch.where(coin < entry >> 16, column, entry & 0xFFFF).int()


def philox_levels(at: FieldKey, images: Tensor, rate: float, table: Bytes) -> Tensor:
    return look_up(philox_poisson(at, images, rate), table)


@lru_cache(maxsize=64)
def _poisson_tables(rate: float, device: torch.device) -> tuple[Tensor, int]:
    tables, column_bits = cpu.poisson_tables(rate)
    return torch.from_numpy(tables.view(np.int32)).to(device), column_bits


_PLACE, _MIX, _SPREAD = (
    value - (1 << 64) for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
"""The constants of `cpu.philox.content_ids` as signed numbers of the same bits."""


def content_ids(images: Tensor) -> Tensor:
    rows = images.reshape(len(images), math.prod(images.shape[1:]))
    size = rows.shape[1]
    whole = size // 8
    if (kernels := triton_kernels("philox", images)) and whole * 8 == size:
        with torch.cuda.device_of(images):
            total = kernels.hash_words(rows.view(torch.int64)) + size
    else:
        places = torch.arange(size, device=images.device)
        words = rows[:, : whole * 8].contiguous().view(torch.int64)
        mixed = (words ^ (places[:whole] * _PLACE)) * _MIX
        mixed = mixed ^ ((mixed >> 32) & _LOW)
        total = (mixed * _SPREAD).sum(dim=1) + size
        rest = (rows[:, whole * 8 :].long() + 1) * (places[whole * 8 :] * _PLACE + 1)
        total = total + rest.sum(dim=1)
    total = total ^ ((total >> 29) & ((1 << 35) - 1))
    return (total * _MIX) & 0x7FFFFFFFFFFFFFFF
