"""The transforms of JPEG on many blocks of 8 × 8 values at once, with the integers of libjpeg's `islow`."""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numpy.typing import NDArray

from beaufort._core.compiled import inlined, kernel
from beaufort.corruptions._kernels.cpu.vectors import add, mul, shl, shr, sub

i32, u32, f32 = np.int32, np.uint32, np.float32

BLOCKS = 16
"""Blocks worked on at a time: a vector of today's widest, and a work space that stays in the first cache."""


@inlined
def _odd(a, b, c, d):
    """Return the rotations that the odd halves of both transforms have in common."""
    e = mul(add(add(a, c), add(b, d)), 9633)
    ad, bc = mul(add(a, d), -7373), mul(add(b, c), -20995)
    ac, bd = sub(e, mul(add(a, c), 16069)), sub(e, mul(add(b, d), 3196))
    return (
        add(add(mul(a, 2446), ad), ac),
        add(add(mul(b, 16819), bc), bd),
        add(add(mul(c, 25172), bc), ac),
        add(add(mul(d, 12299), ad), bd),
    )


@inlined
def _forward(values, first):
    """DCT of eight values, times √8; two more bits are kept between the first pass and the second.

    The first pass takes bytes; that they are meant to be 128 less changes their sum alone.
    """
    x0, x1, x2, x3, x4, x5, x6, x7 = values
    bits = 11 if first else 15
    half = 1 << (bits - 1)
    a, b, c, d = add(x0, x7), add(x1, x6), add(x2, x5), add(x3, x4)
    e, f, g, h = sub(x3, x4), sub(x2, x5), sub(x1, x6), sub(x0, x7)
    outer, inner, across, within = add(a, d), add(b, c), sub(a, d), sub(b, c)
    low, high = add(outer, inner), sub(outer, inner)
    turned = add(mul(add(within, across), 4433), half)
    seven, five, three, one = _odd(e, f, g, h)
    return (
        shl(sub(low, 8 * 128), 2) if first else shr(add(low, 2), 2),
        shr(add(one, half), bits),
        shr(add(turned, mul(across, 6270)), bits),
        shr(add(three, half), bits),
        shl(high, 2) if first else shr(add(high, 2), 2),
        shr(add(five, half), bits),
        shr(sub(turned, mul(within, 15137)), bits),
        shr(add(seven, half), bits),
    )


@inlined
def _inverse(values, bits, offset):
    """Apply the inverse DCT to eight values; `offset` is added before truncation."""
    x0, x1, x2, x3, x4, x5, x6, x7 = values
    turned = mul(add(x2, x6), 4433)
    inner, outer = sub(turned, mul(x6, 15137)), add(turned, mul(x2, 6270))
    low, high = add(shl(add(x0, x4), 13), offset), add(shl(sub(x0, x4), 13), offset)
    a, b, c, d = add(low, outer), add(high, inner), sub(high, inner), sub(low, outer)
    h, g, f, e = _odd(x7, x5, x3, x1)
    return (
        shr(add(a, e), bits),
        shr(add(b, f), bits),
        shr(add(c, g), bits),
        shr(add(d, h), bits),
        shr(sub(d, h), bits),
        shr(sub(c, g), bits),
        shr(sub(b, f), bits),
        shr(sub(a, e), bits),
    )


@intrinsic
def _signed_like(typing_context, size, other):
    """Return the first number with the sign of the second; both float32."""
    single = ir.FloatType()

    def code(context, builder, signature, arguments):
        kind = ir.FunctionType(single, [single, single])
        return builder.call(builder.module.declare_intrinsic("llvm.copysign", [single], kind), arguments)

    return numba.float32(numba.float32, numba.float32), code


@inlined
def quantized(value, step, scale, half):
    """Return the multiple of a step nearest to an eighth of the value; halves are rounded away from zero."""
    size = f32(value)
    return mul(i32(size * scale + _signed_like(half, size)), step)


def scales_of(steps: NDArray[np.int32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What `quantized` multiplies by and adds, for each step.

    A value's distance from the next half is at least an eighth of a step's part. Half of that is added, so
    that what float32 rounds decides nothing.
    """
    scales = (np.float32(0.125) / steps).astype(np.float32)
    return scales, (np.float32(0.5) + np.float32(0.5) * scales).astype(np.float32)


@inlined
def _bytes(a, b, c, d):
    """Pack four values, truncated to bytes, into a word."""
    low = u32(_byte(a)) | u32(_byte(b)) << u32(8)
    return u32(low | u32(_byte(c)) << u32(16) | u32(_byte(d)) << u32(24))


@inlined
def _byte(value):
    return min(max(value, i32(0)), i32(255))


@inlined
def _parts(word):
    """Return the four bytes of a word."""
    return (
        i32(word & u32(255)),
        i32((word >> u32(8)) & u32(255)),
        i32((word >> u32(16)) & u32(255)),
        i32(word >> u32(24)),
    )


@inlined
def _eight(of, at, step):
    """Return every `step`-th entry: numbers of a table, or rows of the workspace."""
    a, b, c, d = of[at], of[at + step], of[at + 2 * step], of[at + 3 * step]
    return a, b, c, d, of[at + 4 * step], of[at + 5 * step], of[at + 6 * step], of[at + 7 * step]


@inlined
def _get(rows, k):
    a, b, c, d, e, f, g, h = rows
    return a[k], b[k], c[k], d[k], e[k], f[k], g[k], h[k]


@inlined
def _put(rows, k, values):
    a, b, c, d, e, f, g, h = rows
    a[k], b[k], c[k], d[k], e[k], f[k], g[k], h[k] = values


@inlined
def _quantize(values, steps, scales, halves):
    a, b, c, d, e, f, g, h = values
    return (
        quantized(a, steps[0], scales[0], halves[0]),
        quantized(b, steps[1], scales[1], halves[1]),
        quantized(c, steps[2], scales[2], halves[2]),
        quantized(d, steps[3], scales[3], halves[3]),
        quantized(e, steps[4], scales[4], halves[4]),
        quantized(f, steps[5], scales[5], halves[5]),
        quantized(g, steps[6], scales[6], halves[6]),
        quantized(h, steps[7], scales[7], halves[7]),
    )


@kernel
def round_trip(words, steps, scales, halves):
    """Transform each block, quantize it, and transform it back.

    Row y of `words` holds row y of all blocks, two words of four bytes each; the number of blocks is a
    multiple of `BLOCKS`. Value (x, y) of those that are worked on is row 8·x + y of `work`. The pass down the
    columns ends the way there and begins the way back: the levels between the two are never stored.
    """
    work = np.empty((64, BLOCKS), np.int32)
    for start in range(0, words.shape[1], 2 * BLOCKS):
        for y in range(8):
            line, rows = words[y, start : start + 2 * BLOCKS], _eight(work, y, 8)
            for k in range(BLOCKS):
                a, b, c, d = _parts(line[2 * k])
                e, f, g, h = _parts(line[2 * k + 1])
                _put(rows, k, _forward((a, b, c, d, e, f, g, h), True))
        for x in range(8):
            rows = _eight(work, 8 * x, 1)
            step, scale, half = _eight(steps, x, 8), _eight(scales, x, 8), _eight(halves, x, 8)
            for k in range(BLOCKS):
                levels = _quantize(_forward(_get(rows, k), False), step, scale, half)
                _put(rows, k, _inverse(levels, 11, 1 << 10))
        for y in range(8):
            line, rows = words[y, start : start + 2 * BLOCKS], _eight(work, y, 8)
            for k in range(BLOCKS):
                a, b, c, d, e, f, g, h = _inverse(_get(rows, k), 18, (128 << 18) + (1 << 17))
                line[2 * k], line[2 * k + 1] = _bytes(a, b, c, d), _bytes(e, f, g, h)
