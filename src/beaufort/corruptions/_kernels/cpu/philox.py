"""Philox-4x32-10 (Salmon et al., 2011) and the fields of random numbers made from it.

Layout, the same on every backend: key = the two words of `Key`; counter = (block, field, low and
high word of the image id). A field of m values takes ⌈m/4⌉ blocks, and word j of block b is value
`j·⌈m/4⌉ + b`: four contiguous runs, so that the loop over blocks vectorizes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import inlined, kernel
from beaufort.corruptions.rng import FieldKey

i32, u32, u64, f32 = np.int32, np.uint32, np.uint64, np.float32


_M0, _M1 = u64(0xD2511F53), u64(0xCD9E8D57)

_W0, _W1 = u32(0x9E3779B9), u32(0xBB67AE85)

_SHIFT = u64(32)

# sin(πy)/y as a polynomial in y² on [0, 1/4]; -2·ln(m) as one in m on [1, 2]. Least squares at
# Chebyshev points; largest errors 7e-9 and 4e-7.
SINE = tuple(map(f32, (3.14159264, -5.16771008, 2.55007752, -0.59829129, 0.07765766)))

LOG = tuple(
    f32(-2 * v)
    for v in (
        -2.24628355,
        4.92830086,
        -5.15969968,
        3.96715949,
        -2.04146138,
        0.66671493,
        -0.12497428,
        0.01024383,
    )
)

LN2 = f32(-2 * math.log(2))

_S0, _S1, _S2, _S3, _S4 = SINE

_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7 = LOG


@inlined
def philox_block(c0, c1, c2, c3, k0, k1):
    """Four words of a counter (block, field, low and high word of an id) and the two words of a key."""
    for _ in range(10):
        p0 = _M0 * u64(c0)
        p1 = _M1 * u64(c2)
        c0 = u32(p1 >> _SHIFT) ^ c1 ^ k0
        c1 = u32(p1)
        c2 = u32(p0 >> _SHIFT) ^ c3 ^ k1
        c3 = u32(p0)
        k0 = u32(k0 + _W0)
        k1 = u32(k1 + _W1)
    return c0, c1, c2, c3


@inlined
def _sin_pi(y):
    q = y * y
    return y * (_S0 + q * (_S1 + q * (_S2 + q * (_S3 + q * _S4))))


@inlined
def _normal_pair(a, b):
    """Box-Muller on two words, in polynomials that vectorize."""
    x = np.float32(f32(i32(a >> u32(8))) + f32(0.5))  # 2²⁴ times a number in (0, 1)
    bits = np.float32(x).view(np.int32)
    exponent = f32((bits >> i32(23)) - i32(127 + 24))
    m = np.int32((bits & i32(0x7FFFFF)) | i32(0x3F800000)).view(np.float32)
    log = _L0 + m * (_L1 + m * (_L2 + m * (_L3 + m * (_L4 + m * (_L5 + m * (_L6 + m * _L7))))))
    radius = f32(math.sqrt(max(LN2 * exponent + log, f32(0))))
    z = f32(i32(b)) * f32(2.0**-31)  # the angle over π, in [-1, 1)
    turn = abs(z)
    cosine = _sin_pi(f32(0.5) - turn)
    sine = _sin_pi(f32(0.5) - abs(turn - f32(0.5)))
    return radius * cosine, radius * (-sine if z < f32(0) else sine)


@kernel
def _fill_words(out, size, k0, k1, field, ids):
    blocks = (size + 3) // 4
    for i in range(len(ids)):
        row = out[i * size : i * size + 4 * blocks]
        low, high = u32(ids[i]), u32(ids[i] >> _SHIFT)
        for b in range(blocks):
            w0, w1, w2, w3 = philox_block(u32(b), u32(field), low, high, u32(k0), u32(k1))
            row[b] = w0
            row[blocks + b] = w1
            row[2 * blocks + b] = w2
            row[3 * blocks + b] = w3


@kernel
def _fill_normal(out, size, k0, k1, field, ids):
    blocks = (size + 3) // 4
    for i in range(len(ids)):
        row = out[i * size : i * size + 4 * blocks]
        low, high = u32(ids[i]), u32(ids[i] >> _SHIFT)
        for b in range(blocks):
            w0, w1, w2, w3 = philox_block(u32(b), u32(field), low, high, u32(k0), u32(k1))
            x, y = _normal_pair(w0, w1)
            row[b] = x
            row[blocks + b] = y
            x, y = _normal_pair(w2, w3)
            row[2 * blocks + b] = x
            row[3 * blocks + b] = y


@kernel
def _fill_uniform(out, size, k0, k1, field, ids, low_value, width):
    blocks = (size + 3) // 4
    unit = f32(width * 2.0**-24)
    for i in range(len(ids)):
        row = out[i * size : i * size + 4 * blocks]
        low, high = u32(ids[i]), u32(ids[i] >> _SHIFT)
        for b in range(blocks):
            w0, w1, w2, w3 = philox_block(u32(b), u32(field), low, high, u32(k0), u32(k1))
            row[b] = low_value + unit * f32(i32(w0 >> u32(8)))
            row[blocks + b] = low_value + unit * f32(i32(w1 >> u32(8)))
            row[2 * blocks + b] = low_value + unit * f32(i32(w2 >> u32(8)))
            row[3 * blocks + b] = low_value + unit * f32(i32(w3 >> u32(8)))


@kernel
def _fill_bernoulli(out, size, k0, k1, field, ids, threshold):
    blocks = (size + 3) // 4
    for i in range(len(ids)):
        row = out[i * size : i * size + 4 * blocks]
        low, high = u32(ids[i]), u32(ids[i] >> _SHIFT)
        for b in range(blocks):
            w0, w1, w2, w3 = philox_block(u32(b), u32(field), low, high, u32(k0), u32(k1))
            row[b] = w0 < threshold
            row[blocks + b] = w1 < threshold
            row[2 * blocks + b] = w2 < threshold
            row[3 * blocks + b] = w3 < threshold


@kernel
def _fill_impulses(out, size, k0, k1, field, ids, threshold):
    blocks = (size + 3) // 4
    half = threshold >> u32(1)
    for i in range(len(ids)):
        row = out[i * size : i * size + 4 * blocks]
        low, high = u32(ids[i]), u32(ids[i] >> _SHIFT)
        for b in range(blocks):
            w0, w1, w2, w3 = philox_block(u32(b), u32(field), low, high, u32(k0), u32(k1))
            row[b] = np.uint8(w0 < threshold) + np.uint8(w0 < half)
            row[blocks + b] = np.uint8(w1 < threshold) + np.uint8(w1 < half)
            row[2 * blocks + b] = np.uint8(w2 < threshold) + np.uint8(w2 < half)
            row[3 * blocks + b] = np.uint8(w3 < threshold) + np.uint8(w3 < half)


@kernel
def _fill_integers(out, size, k0, k1, field, ids, lowest, spans):
    blocks = (size + 3) // 4
    for i in range(len(ids)):
        row, span = out[i * size : i * size + 4 * blocks], spans[i]
        low, high = u32(ids[i]), u32(ids[i] >> _SHIFT)
        for b in range(blocks):
            w0, w1, w2, w3 = philox_block(u32(b), u32(field), low, high, u32(k0), u32(k1))
            row[b] = lowest + i32((u64(w0) * span) >> _SHIFT)
            row[blocks + b] = lowest + i32((u64(w1) * span) >> _SHIFT)
            row[2 * blocks + b] = lowest + i32((u64(w2) * span) >> _SHIFT)
            row[3 * blocks + b] = lowest + i32((u64(w3) * span) >> _SHIFT)


@kernel
def _pick_aliases(words, values, tables, column_bits, out):
    """Walker's method: a column by the top bits of the word, it or its alias by the next sixteen."""
    shift = u32(32 - column_bits)
    low_shift = u32(16 - column_bits)
    for i in range(values.size):
        word = words[i]
        column = word >> shift
        coin = (word >> low_shift) & u32(0xFFFF)
        entry = tables[(u32(values[i]) << u32(column_bits)) + column]
        out[i] = column if coin < entry >> u32(16) else entry & u32(0xFFFF)


_RUN = 256
"""Blocks whose words are used up while they are in the first cache."""


@kernel
def _fill_levels(images, size, k0, k1, field, ids, tables, column_bits, out):
    """As `_pick_aliases`, on words that are drawn here. An entry is a coin, the column's level, its alias's.

    What vectorizes and what does not, the look at the table, are loops of their own.
    """
    blocks = (size + 3) // 4
    shift, low_shift = u32(32 - column_bits), u32(16 - column_bits)
    words, places, entries = (
        np.empty((4, _RUN), np.uint32),
        np.empty(_RUN, np.uint32),
        np.empty(_RUN, np.uint32),
    )
    first, second, third, fourth = words[0], words[1], words[2], words[3]
    for i in range(len(ids)):
        low, high = u32(ids[i]), u32(ids[i] >> _SHIFT)
        for start in range(0, blocks, _RUN):
            for b in range(min(_RUN, blocks - start)):
                found = philox_block(u32(start + b), u32(field), low, high, u32(k0), u32(k1))
                first[b], second[b], third[b], fourth[b] = found
            for j in range(4):
                since, upto = j * blocks + start, min(j * blocks + min(start + _RUN, blocks), size)
                source, target, word = images[i, since:upto], out[i, since:upto], words[j]
                for x in range(source.size):
                    places[x] = (u32(source[x]) << u32(column_bits)) + (word[x] >> shift)
                for x in range(source.size):
                    entries[x] = tables[places[x]]
                for x in range(source.size):
                    entry, coin = entries[x], (word[x] >> low_shift) & u32(0xFFFF)
                    target[x] = np.uint8(entry >> u32(8)) if coin < entry >> u32(16) else np.uint8(entry)


@kernel
def _hash_bytes(images, out):
    """Sum 8-byte words, each mixed with its position, so that the order of summation does not matter."""
    for i in range(images.shape[0]):
        row = images[i]
        whole = row.size // 8
        words = row[: whole * 8].view(np.uint64)
        total = u64(row.size)
        for j in range(whole):
            x = (words[j] ^ (u64(j) * u64(0x9E3779B97F4A7C15))) * u64(0xBF58476D1CE4E5B9)
            x ^= x >> _SHIFT
            total += x * u64(0x94D049BB133111EB)
        for j in range(whole * 8, row.size):
            total += (u64(row[j]) + u64(1)) * (u64(j) * u64(0x9E3779B97F4A7C15) + u64(1))
        total ^= total >> u64(29)
        out[i] = total * u64(0xBF58476D1CE4E5B9) & u64(0x7FFFFFFFFFFFFFFF)


def _filled(kernel: Any, at: FieldKey, shape: tuple[int, ...], dtype: Any, *arguments: Any) -> Array:
    """Return one field per image.

    Whole blocks are written one after the other. Up to three words of a field's last block reach into the
    next field, which is written afterwards, or into the spare room behind the last field.
    """
    size = math.prod(shape)
    out = np.empty(len(at.ids) * size + 3, dtype)
    kernel(out, size, *at.key, at.field, at.ids, *arguments)
    return out[:-3].reshape(len(at.ids), *shape)


def philox_words(at: FieldKey, shape: tuple[int, ...]) -> Array:
    return _filled(_fill_words, at, shape, np.uint32)


def philox_normal(at: FieldKey, shape: tuple[int, ...], dtype: type = np.float32) -> Array:
    return _filled(_fill_normal, at, shape, np.float32).astype(dtype, copy=False)


def philox_uniform(
    at: FieldKey, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32
) -> Array:
    field = _filled(_fill_uniform, at, shape, np.float32, f32(low), float(high - low))
    return field.astype(dtype, copy=False)


def _threshold(probability: float) -> np.uint32:
    return u32(min(round(probability * 2**32), 2**32 - 1))


def philox_bernoulli(at: FieldKey, shape: tuple[int, ...], probability: float) -> Array:
    return _filled(_fill_bernoulli, at, shape, np.bool_, _threshold(probability))


def philox_impulses(at: FieldKey, shape: tuple[int, ...], probability: float) -> Array:
    return _filled(_fill_impulses, at, shape, np.uint8, _threshold(probability))


def philox_integers(
    at: FieldKey, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32
) -> Array:
    spans = np.empty(len(at.ids), np.uint64)
    spans[:] = high - low
    return _filled(_fill_integers, at, shape, dtype, i32(low), spans)


def philox_poisson(at: FieldKey, images: Bytes, rate: float) -> Array:
    tables, column_bits = poisson_tables(rate)
    words = philox_words(at, images.shape[1:])
    out = np.empty(images.shape, np.uint16)
    _pick_aliases(words.ravel(), images.ravel(), tables, column_bits, out.ravel())
    return out


def philox_levels(at: FieldKey, images: Bytes, rate: float, table: Bytes) -> Bytes:
    tables, column_bits = _level_tables(rate, table.tobytes())
    out = np.empty_like(images)
    size = math.prod(images.shape[1:])
    flat = len(images), size
    _fill_levels(
        images.reshape(flat), size, *at.key, at.field, at.ids, tables, column_bits, out.reshape(flat)
    )
    return out


@lru_cache(maxsize=64)
def _level_tables(rate: float, table: bytes) -> tuple[NDArray[np.uint32], int]:
    """As `poisson_tables`, with the levels of a column and of its alias instead of the alias."""
    tables, column_bits = poisson_tables(rate)
    columns = 1 << column_bits
    levels = np.frombuffer(table, np.uint8)[np.minimum(np.arange(columns), len(table) - 1)].astype(np.uint32)
    own = np.tile(levels, len(tables) // columns)
    return (tables & u32(0xFFFF0000)) | own << 8 | levels[tables & u32(0xFFFF)], column_bits


@lru_cache(maxsize=64)
def poisson_tables(rate: float) -> tuple[NDArray[np.uint32], int]:
    """Walker tables for the 256 means an 8-bit value can have: threshold and alias of each column.

    The columns reach twelve standard deviations above the largest mean: what lies beyond has no
    probability that a coin of sixteen bits could show.
    """
    largest = rate + 12 * math.sqrt(rate) + 12
    column_bits = max(4, math.ceil(math.log2(largest)))
    counts = np.arange(1 << column_bits)
    log_factorial = np.cumsum(np.log(np.maximum(counts, 1)))
    means = rate * np.arange(256)[:, None] / 255
    with np.errstate(divide="ignore", invalid="ignore"):
        probabilities = np.exp(counts * np.log(means) - means - log_factorial)
    probabilities[0] = counts == 0
    tables = np.empty(probabilities.shape, np.uint32)
    _split_columns(probabilities / probabilities.sum(axis=1, keepdims=True), tables)
    return tables.ravel(), column_bits


@kernel
def _split_columns(probabilities, tables):
    """Split probabilities over equal columns: in each, a coin decides between the column and one alias."""
    columns = probabilities.shape[1]
    stack = np.empty(columns, np.int64)
    alias = np.empty(columns, np.int64)
    for row in range(probabilities.shape[0]):
        height = probabilities[row] * columns
        small, large = 0, columns  # two stacks, from the two ends of one array
        for i in range(columns):
            alias[i] = i
            if height[i] < 1:
                stack[small] = i
                small += 1
            else:
                large -= 1
                stack[large] = i
        while small > 0 and large < columns:
            small -= 1
            low, high = stack[small], stack[large]
            alias[low] = high
            height[high] -= 1 - height[low]
            if height[high] < 1:
                large += 1
                stack[small] = high
                small += 1
        for i in range(columns):
            coin = 65535 if alias[i] == i else min(round(height[i] * 65536), 65535)
            tables[row, i] = u32(coin << 16 | alias[i])


def content_ids(images: Bytes) -> NDArray[np.uint64]:
    out = np.empty(len(images), np.uint64)
    _hash_bytes(images.reshape(len(images), math.prod(images.shape[1:])), out)
    return out
