"""How Numba kernels are compiled: once, kept on disk, without the interpreter's lock.

Kernels have no type annotations: Numba infers their types from each call, and mypy is told so in
`pyproject.toml`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

__all__ = ["exact_kernel", "fused", "inlined", "kernel", "to_byte"]

i32, f32 = np.int32, np.float32


_FAST = {"contract", "nnan", "nsz"}
"""Products and sums may be fused, and no value is NaN or minus zero; nothing is reordered."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over arrays."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")(
        function
    )
    return compiled


def exact_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop in which every rounding counts."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function into the kernels that call it."""
    compiled: Callable[..., Any] = numba.njit(inline="always", fastmath=_FAST, error_model="numpy")(function)
    return compiled


@intrinsic
def fused(typing_context, a, b, c):
    """a·b + c with one rounding, where it must be this product that is fused; all float32."""
    signature = numba.float32(numba.float32, numba.float32, numba.float32)

    def code(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return signature, code


@intrinsic
def copy4(typing_context, target, at, source, start):
    """Copy four values, from `source[start]` on to `target[at]` on: a pixel, and one value more.

    Pixels copied in ascending order overwrite what the one before wrote too much. It takes one instruction
    each way instead of three. The arrays are contiguous; nobody checks that there is room for the fourth.
    """
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

    The source has bytes or float32 values. As for `copy4`, the fourth is one too many.
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


def _toward(builder, a, b, share):
    """a + (b - a)·share, with the flags of `kernel`."""
    flags = tuple(_FAST)
    way = builder.fmul(builder.fsub(b, a, flags=flags), share, flags=flags)
    return builder.fadd(a, way, flags=flags)


@inlined
def to_byte(value, nearest):
    """Clip to 0…255 and cut the fraction off, or round half to even where `nearest`."""
    value = min(max(value, f32(0)), f32(255))
    if nearest:
        value = np.rint(value)
    return np.uint8(i32(value))
