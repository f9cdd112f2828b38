"""Instructions of the CPU by name, for kernels in which the compiler finds none.

A pixel of three values is no vector. It becomes one with a value more, which is read, worked on and written,
and then overwritten by the next pixel. Arrays are contiguous, and nobody checks indices.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from beaufort._core.compiled import FAST


@intrinsic
def copy4(typing_context, target, at, source, start):
    """Copy four values from `source[start]` on to `target[at]` on: a pixel, and one value more."""
    signature = numba.void(target, numba.intp, source, numba.intp)

    def code(context, builder, signature, arguments):
        place, origin = (
            _four_at(context, builder, kind, array, index)
            for kind, array, index in zip(signature.args[::2], arguments[::2], arguments[1::2], strict=True)
        )
        builder.store(builder.load(origin, align=1), place, align=1)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def mix4(typing_context, target, at, source, a, b, d, e, s, t):
    """Four float32 values between those from a, b, d and e on: s of the way to the right, t of the way down.

    The source has bytes or float32 values.
    """
    f32_, place = numba.float32, numba.intp
    signature = numba.void(target, place, source, place, place, place, place, f32_, f32_)

    def code(context, builder, signature, arguments):
        out, at, source, *corners, s, t = arguments
        a, b, d, e = (
            _floats(
                builder, builder.load(_four_at(context, builder, signature.args[2], source, corner), align=1)
            )
            for corner in corners
        )
        upper = _toward(builder, a, b, _four(builder, s))
        lower = _toward(builder, d, e, _four(builder, s))
        made = _toward(builder, upper, lower, _four(builder, t))
        builder.store(made, _four_at(context, builder, signature.args[0], out, at), align=4)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def toward(typing_context, near, far, weight):
    """Return near + (far - near)·weight / 2¹⁵ of bytes, rounded, halves up; the weight is an int16.

    In 16 bits: the upper half of a product of 16 bits is one instruction, which Numba's integers of 64 bits
    do not lead to.
    """
    signature = numba.uint8(numba.uint8, numba.uint8, numba.int16)

    def code(context, builder, signature, arguments):
        short, wide = ir.IntType(16), ir.IntType(32)
        near, far = (builder.zext(value, short) for value in arguments[:2])
        difference = builder.shl(builder.sub(far, near), ir.Constant(short, 2))
        product = builder.mul(builder.sext(difference, wide), builder.sext(arguments[2], wide))
        halves = builder.trunc(builder.ashr(product, ir.Constant(wide, 16)), short)
        step = builder.ashr(builder.add(halves, ir.Constant(short, 1)), ir.Constant(short, 1))
        return builder.trunc(builder.add(near, step), ir.IntType(8))

    return signature, code


@intrinsic
def sum_between4(typing_context, target, at, base, source, starts, weights, first, count):
    """Four float32 values and what lies between others, one after the other: a pixel of many images.

    The four stand in `base`, their sums in the target, from `at` on. Of `count` starts and weights, from the
    place `first` on, each says where four values begin, and how far the sample is on the way to those three
    places on.
    """
    place = numba.intp
    signature = numba.void(target, place, base, source, starts, weights, place, place)

    def code(context, builder, signature, arguments):
        out, at, base, source, starts, weights, first, count = arguments
        kinds = signature.args
        start, weight = (
            builder.gep(context.make_array(kind)(context, builder, array).data, [first])
            for kind, array in zip(kinds[4:6], (starts, weights), strict=True)
        )
        given = builder.load(_four_at(context, builder, kinds[2], base, at), align=4)
        total = cgutils.alloca_once_value(builder, given)
        with cgutils.for_range(builder, count) as loop:
            begin = builder.sext(builder.load(builder.gep(start, [loop.index])), ir.IntType(64))
            near, far = (
                builder.load(_four_at(context, builder, kinds[3], source, index), align=4)
                for index in (begin, builder.add(begin, ir.Constant(ir.IntType(64), 3)))
            )
            way = _four(builder, builder.load(builder.gep(weight, [loop.index])))
            between = _toward(builder, near, far, way)
            builder.store(builder.fadd(builder.load(total), between, flags=tuple(FAST)), total)
        place = _four_at(context, builder, kinds[0], out, at)
        builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return signature, code


def _four_at(context, builder, kind, array, index):
    """A pointer to four values of an array."""
    data = context.make_array(kind)(context, builder, array).data
    place = builder.gep(data, [index])
    return builder.bitcast(place, ir.VectorType(data.type.pointee, 4).as_pointer())


def _floats(builder, values):
    """Four values as float32."""
    if not isinstance(values.type.element, ir.IntType):
        return values
    return builder.uitofp(values, ir.VectorType(ir.FloatType(), 4))


def _four(builder, value):
    """The same number four times."""
    empty = ir.Constant(ir.VectorType(value.type, 4), ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4))


def _toward(builder, a, b, weight):
    """a + (b - a)·weight, with the flags of `kernel`."""
    flags = tuple(FAST)
    way = builder.fmul(builder.fsub(b, a, flags=flags), weight, flags=flags)
    return builder.fadd(a, way, flags=flags)


def _of_32_bits(instruction: str) -> Any:
    """Arithmetic that keeps 32 bits and wraps around.

    Numba makes 64 bits of the sum of two `int32`, and where a shift to the right follows, the compiler keeps
    them: half as many values fit a vector.
    """

    @intrinsic
    def operation(typing_context, a, b):
        def code(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments)

        return numba.int32(numba.int32, numba.int32), code

    return operation


add, sub, mul, shl, shr = (_of_32_bits(name) for name in ("add", "sub", "mul", "shl", "ashr"))
