"""Philox and its fields as Triton kernels: a program fills a run of blocks of one image."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from beaufort.corruptions._kernels.cpu import philox as cpu
from beaufort.corruptions.rng import FieldKey

_S0, _S1, _S2, _S3, _S4 = (tl.constexpr(float(value)) for value in cpu.SINE)

_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7 = (tl.constexpr(float(value)) for value in cpu.LOG)

_LN2 = tl.constexpr(float(cpu.LN2))

WORDS, NORMAL, UNIFORM, BERNOULLI, IMPULSES, INTEGERS = map(tl.constexpr, range(6))

_BLOCK = 1024


@triton.jit
def _philox(c0, c1, c2, c3, k0, k1):
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(c0, 0xD2511F53), c0 * 0xD2511F53
        high1, low1 = tl.umulhi(c2, 0xCD9E8D57), c2 * 0xCD9E8D57
        c0 = high1 ^ c1 ^ k0
        c1 = low1
        c2 = high0 ^ c3 ^ k1
        c3 = low0
        k0 = k0 + 0x9E3779B9
        k1 = k1 + 0xBB67AE85
    return c0, c1, c2, c3


@triton.jit
def _block_words(ids, image, blocks, k0, k1, field):
    word = tl.load(ids + image)
    c1 = tl.zeros_like(blocks) + field.to(tl.uint32)
    c2 = tl.zeros_like(blocks) + word.to(tl.uint32)
    c3 = tl.zeros_like(blocks) + (word >> 32).to(tl.uint32)
    return _philox(blocks, c1, c2, c3, k0.to(tl.uint32), k1.to(tl.uint32))


@triton.jit
def _sin_pi(y):
    q = y * y
    return y * tl.fma(q, tl.fma(q, tl.fma(q, tl.fma(q, q * 0 + _S4, _S3), _S2), _S1), _S0)


@triton.jit
def _normal_pair(a, b):
    x = (a >> 8).to(tl.int32).to(tl.float32) + 0.5
    bits = x.to(tl.int32, bitcast=True)
    exponent = ((bits >> 23) - 151).to(tl.float32)
    m = ((bits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
    log = tl.fma(m, tl.fma(m, tl.fma(m, tl.fma(m, m * 0 + _L7, _L6), _L5), _L4), _L3)
    log = tl.fma(m, tl.fma(m, tl.fma(m, log, _L2), _L1), _L0)
    radius = tl.sqrt_rn(tl.maximum(tl.fma(exponent, _LN2, log), 0.0))
    z = b.to(tl.int32, bitcast=True).to(tl.float32) * (2.0**-31)
    turn = tl.abs(z)
    cosine = _sin_pi(0.5 - turn)
    sine = _sin_pi(0.5 - tl.abs(turn - 0.5))
    return radius * cosine, radius * tl.where(z < 0, -sine, sine)


@triton.jit
def _value(word, a, b, KIND: tl.constexpr):
    if KIND == WORDS:
        made = word.to(tl.int32, bitcast=True)
    elif KIND == UNIFORM:
        made = tl.fma((word >> 8).to(tl.int32).to(tl.float32), b, a)
    elif KIND == BERNOULLI:
        made = word < a.to(tl.uint32)
    elif KIND == IMPULSES:
        threshold = a.to(tl.uint32)
        made = (word < threshold).to(tl.uint8) + (word < (threshold >> 1)).to(tl.uint8)
    else:
        made = a + tl.umulhi(word, tl.zeros_like(word) + b.to(tl.uint32)).to(tl.int32)
    return made


@triton.jit(do_not_specialize=["k0", "k1", "field", "a", "b"])
def _fill(out, ids, size, runs, k0, k1, field, a, b, KIND: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w0, w1, w2, w3 = _block_words(ids, image, block.to(tl.uint32), k0, k1, field)
    if KIND == NORMAL:
        v0, v1 = _normal_pair(w0, w1)
        v2, v3 = _normal_pair(w2, w3)
    else:
        v0, v1 = _value(w0, a, b, KIND), _value(w1, a, b, KIND)
        v2, v3 = _value(w2, a, b, KIND), _value(w3, a, b, KIND)
    row = out + image * size + block
    inside = block < runs
    kind = out.dtype.element_ty
    tl.store(row, v0.to(kind), mask=inside & (block < size))
    tl.store(row + runs, v1.to(kind), mask=inside & (runs + block < size))
    tl.store(row + 2 * runs, v2.to(kind), mask=inside & (2 * runs + block < size))
    tl.store(row + 3 * runs, v3.to(kind), mask=inside & (3 * runs + block < size))


def signed(value: int) -> int:
    """Return the signed number with the bits of a 32-bit word, so that kernels see one type."""
    return value - (1 << 32) if value >= 1 << 31 else value


def filled(
    at: FieldKey, shape: tuple[int, ...], dtype: torch.dtype, kind: tl.constexpr, a: float = 0, b: float = 0
) -> Tensor:
    """Return a field: the words themselves, or numbers made of them.

    Uniform numbers are a + b · (the upper 24 bits), integers a + the upper half of word · b. Booleans and
    impulses compare words with the threshold a.
    """
    size = math.prod(shape)
    runs = (size + 3) // 4
    out = torch.empty((len(at.ids), *shape), dtype=dtype, device=at.ids.device)
    block = min(_BLOCK, triton.next_power_of_2(runs))
    _fill[(triton.cdiv(runs, block), len(out))](
        out, at.ids, size, runs, *map(signed, at.key), at.field, a, b, kind, block, enable_fp_fusion=False
    )
    return out


@triton.jit
def _alias(word, values, tables, column_bits, mask):
    column = word >> (32 - column_bits).to(tl.uint32)
    coin = (word >> (16 - column_bits).to(tl.uint32)) & 0xFFFF
    entry = tl.load(tables + (values.to(tl.int32) << column_bits) + column.to(tl.int32), mask=mask, other=0)
    entry = entry.to(tl.uint32, bitcast=True)
    return tl.where(coin < (entry >> 16), column, entry & 0xFFFF).to(tl.int32)


@triton.jit(do_not_specialize=["k0", "k1", "field", "column_bits"])
def _poisson(out, images, tables, ids, size, runs, k0, k1, field, column_bits, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w0, w1, w2, w3 = _block_words(ids, image, block.to(tl.uint32), k0, k1, field)
    start = image * size
    for j in tl.static_range(4):
        at = j * runs + block
        mask = (block < runs) & (at < size)
        word = w0 if j == 0 else (w1 if j == 1 else (w2 if j == 2 else w3))
        values = tl.load(images + start + at, mask=mask, other=0)
        tl.store(out + start + at, _alias(word, values, tables, column_bits, mask), mask=mask)


def poisson(at: FieldKey, images: Tensor, tables: Tensor, column_bits: int) -> Tensor:
    """Return Poisson counts by Walker's method."""
    size = math.prod(images.shape[1:])
    runs = (size + 3) // 4
    out = torch.empty(images.shape, dtype=torch.int32, device=images.device)
    block = min(512, triton.next_power_of_2(runs))
    _poisson[(triton.cdiv(runs, block), len(images))](
        out, images, tables, at.ids, size, runs, *map(signed, at.key), at.field, column_bits, block
    )
    return out


@triton.jit
def _hash(out, rows, size, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    x = tl.load(rows + image * size + at, mask=mask, other=0).to(tl.uint64, bitcast=True)
    x = (x ^ (at.to(tl.uint64) * 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 32)) * 0x94D049BB133111EB
    total = tl.sum(tl.where(mask, x.to(tl.int64, bitcast=True), 0))
    tl.atomic_add(out + image, total, sem="relaxed")


def hash_words(rows: Tensor) -> Tensor:
    """The sum of the mixed 64-bit words of each row: integers, so that any order gives it."""
    out = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    _hash[(triton.cdiv(rows.shape[1], 2048), len(rows))](out, rows, rows.shape[1], 2048)
    return out
