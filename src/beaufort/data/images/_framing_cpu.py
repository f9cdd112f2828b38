"""The two passes of Pillow's resizing in Numba."""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from beaufort._core.compiled import exact_kernel

i32, u8 = np.int32, np.uint8
_BITS = 22
_HALF = 1 << 21


@intrinsic
def _weigh_pixels(typing_context, target, at, source, start, weights, count):
    """Write the weighted sum of `count` pixels from `source[start]` on to `target[at]`, as 8-bit values.

    Four values are read and written instead of three; the next pixel overwrites the fourth.
    """
    place = numba.intp
    signature = numba.void(target, place, source, place, weights, place)

    def code(context, builder, signature, arguments):
        target, at, source, start, weights, count = arguments
        out, values, factors = (
            context.make_array(kind)(context, builder, array).data
            for kind, array in zip(signature.args[::2], (target, source, weights), strict=True)
        )
        wide, bytes4 = ir.VectorType(ir.IntType(32), 4), ir.VectorType(ir.IntType(8), 4)
        total = cgutils.alloca_once_value(builder, ir.Constant(wide, [_HALF] * 4))
        builder.store(ir.Constant(wide, [_HALF] * 4), total)
        with cgutils.for_range(builder, count) as loop:
            here = builder.gep(values, [builder.add(start, builder.mul(loop.index, start.type(3)))])
            pixel = builder.zext(builder.load(builder.bitcast(here, bytes4.as_pointer()), align=1), wide)
            factor = builder.load(builder.gep(factors, [loop.index]))
            empty = ir.Constant(wide, ir.Undefined)
            first = builder.insert_element(empty, factor, ir.IntType(32)(0))
            four = builder.shuffle_vector(first, empty, ir.Constant(wide, [0] * 4))
            builder.store(builder.add(builder.load(total), builder.mul(pixel, four)), total)
        level = builder.lshr(builder.load(total), ir.Constant(wide, [_BITS] * 4))
        there = builder.bitcast(builder.gep(out, [at]), bytes4.as_pointer())
        builder.store(builder.trunc(level, bytes4), there, align=1)
        return context.get_dummy_value()

    return signature, code


@exact_kernel
def resize_rows(pixels, starts, counts, weights, out):
    """Resize the rows of `pixels` `(h, w, c)` into `out`, which is flat and has an extra value."""
    height, width, channels = pixels.shape
    values = pixels.reshape(pixels.size)
    for y in range(height):
        for x in range(starts.size):
            at = (y * starts.size + x) * channels
            begin = (y * width + starts[x]) * channels
            if channels == 3 and begin + 3 * counts[x] < values.size:
                _weigh_pixels(out, at, values, begin, weights[x], counts[x])
                continue
            for c in range(channels):
                total = i32(_HALF)
                for k in range(counts[x]):
                    total += i32(values[begin + k * channels + c]) * weights[x, k]
                out[at + c] = u8(total >> _BITS)


@exact_kernel
def resize_down(rows, starts, counts, weights, out):
    """Resize the columns of `rows` `(h, w, c)` into `out`, four rows at a time."""
    last, line = len(rows) - 1, rows.shape[1] * rows.shape[2]
    lines, targets = rows.reshape(len(rows), line), out.reshape(len(out), line)
    total = np.empty(line, np.int32)
    for y in range(starts.size):
        total[:] = _HALF
        for k in range(0, counts[y], 4):
            at, (r, s, t, u) = starts[y] + k, weights[y, k : k + 4]
            a, b = lines[min(at, last)], lines[min(at + 1, last)]
            c, d = lines[min(at + 2, last)], lines[min(at + 3, last)]
            for x in range(line):
                total[x] += i32(a[x]) * r + i32(b[x]) * s + i32(c[x]) * t + i32(d[x]) * u
        target = targets[y]
        for x in range(line):
            target[x] = u8(total[x] >> _BITS)
